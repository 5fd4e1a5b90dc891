/*
 * Header fields of responses that differ by Accept-Encoding: Vary and weak ETags, for encoded and decoded responses.
 */
#include "compress.h"

#include "http/conditional.h"

#include <errno.h>

int compress_add_vary(struct exchange *x)
{
    struct headers *headers = &x->response.headers;

    if (headers_list_has(headers, STR("Vary"), STR("Accept-Encoding")) ||
        headers_list_has(headers, STR("Vary"), STR("*")))
        return 0;
    return headers_add(headers, &x->arena, STR("Vary"), STR("Accept-Encoding"));
}

/* Returns the weak form of the response's strong ETag; data NULL without one, or with *out_error. */
static struct str weak_etag(struct exchange *x, int *out_error)
{
    struct str etag = headers_value(&x->response.headers, STR("ETag"));

    *out_error = 0;
    if (!etag.data || str_starts(etag, STR("W/")))
        return (struct str){NULL, 0};
    etag = arena_join(&x->arena, (const struct str[]){STR("W/"), etag}, 2);
    *out_error = etag.data ? 0 : -ENOMEM;
    return etag;
}

int compress_weaken_etag(struct exchange *x)
{
    int error;
    struct str etag = weak_etag(x, &error);

    return etag.data ? headers_set(&x->response.headers, &x->arena, STR("ETag"), etag) : error;
}

int compress_not_modified(struct exchange *x)
{
    int error = compress_add_vary(x);
    struct str etag = {NULL, 0};

    if (error == 0)
        etag = weak_etag(x, &error);
    if (etag.data && conditional_lists_etag(&x->request, etag))
        error = headers_set(&x->response.headers, &x->arena, STR("ETag"), etag);
    return error;
}

bool compress_is_whole(const struct exchange *x)
{
    const struct response *response = &x->response;

    return response->status >= 200 && !status_bodiless(response->status) && response->body;
}
