/*
 * `proxy_intercept_errors`: replaces an upstream server's error by error_page.
 */
#include "response.h"

#include <errno.h>

/* Keeps fields that a client needs after an error, all occurrences. 0 or -ENOMEM. */
static int keep_retry_after(struct exchange *x, int status, const struct headers *response_headers)
{
    static const struct {
        struct str name;
        int status;                 /* 0: any */
    } advice[] = {{{"WWW-Authenticate", 16}, 401}, {{"Allow", 5}, 405}, {{"Retry-After", 11}, 0}};
    int error = 0;

    for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
        struct str name = advice[i].name;
        const struct header *field = headers_find(response_headers, name);

        if (advice[i].status && advice[i].status != status)
            continue;
        for (; field && error == 0; field = headers_next(response_headers, name, field)) {
            struct str value = arena_copy(&x->arena, field->value);

            error = value.data ? headers_add(&x->response.headers, &x->arena, name, value) : -ENOMEM;
        }
    }
    return error;
}

bool gateway_intercept(struct gateway_request *p, int status, const struct headers *response_headers)
{
    struct exchange *x = p->x;

    if (!p->conf->intercept_errors || status < 300 || !exchange_has_error_page(x, status))
        return false;
    (void)exchange_error_response(x, status);
    if (keep_retry_after(x, status, response_headers) < 0)
        (void)exchange_error_response(x, 500);
    return true;
}
