/*
 * Internal redirects: a module replaces the URI, and the exchange is located again.
 */
#include "server/internal_redirect.h"

#include "base/limits.h"
#include "http/url.h"
#include "server/route.h"

#include <string.h>

enum outcome exchange_internal_redirect(struct exchange *x, struct str path, struct str query)
{
    struct request_state *request = request_state_of(x);
    struct str normal;
    int error;

    if (++request->internal_redirects > LIMIT_INTERNAL_REDIRECTS)
        return exchange_error_response_log(
            x, 500, LOG_ERROR, "internally redirected more than %d times, last to \"" STR_FMT "\"",
            LIMIT_INTERNAL_REDIRECTS, STR_ARG(path));
    error = url_path_normalise(&x->arena, path, request->location->site->merge_slashes, &normal);
    if (error < 0)
        return exchange_error_response_log(x, 500, LOG_ERROR, "cannot go on with the path \"" STR_FMT "\": %s",
                                           STR_ARG(path), strerror(-error));
    x->request.path = normal;
    if (query.data)
        x->request.query = query;
    request->internal = true;
    request->rules_checked = false;
    request->rewritten = true;
    return OUTCOME_INTERNAL_REDIRECT;
}

enum outcome exchange_internal_redirect_named(struct exchange *x, struct str name)
{
    struct request_state *request = request_state_of(x);

    if (++request->internal_redirects > LIMIT_INTERNAL_REDIRECTS)
        return exchange_error_response_log(
            x, 500, LOG_ERROR, "internally redirected more than %d times, last to \"" STR_FMT "\"",
            LIMIT_INTERNAL_REDIRECTS, STR_ARG(name));
    request->named = route_named(request, name);
    if (!request->named)
        return exchange_error_response_log(x, 500, LOG_ERROR, "there is no location \"" STR_FMT "\"",
                                           STR_ARG(name));
    request->internal = true;
    return OUTCOME_INTERNAL_REDIRECT;
}

int exchange_rewrite(struct exchange *x, struct str path, struct str query)
{
    struct request_state *request = request_state_of(x);
    struct str normal;
    int error = url_path_normalise(&x->arena, path, request->location->site->merge_slashes, &normal);

    if (error < 0)
        return error;
    x->request.path = normal;
    x->request.query = query;
    request->rewritten = true;
    return 0;
}

int exchange_set_security_policy(struct exchange *x, struct str policy)
{
    request_state_of(x)->has_security_policy = true;
    return headers_set(&x->response.headers, &x->arena, STR("Content-Security-Policy"), policy);
}

bool exchange_has_security_policy(const struct exchange *x)
{
    return request_state_of(x)->has_security_policy;
}

enum outcome exchange_relocate(struct exchange *x)
{
    enum outcome outcome = exchange_internal_redirect(x, x->request.path, (struct str){NULL, 0});

    request_state_of(x)->rules_checked = outcome == OUTCOME_INTERNAL_REDIRECT;
    return outcome;
}

void exchange_enter_internal(struct exchange *x)
{
    request_state_of(x)->internal = true;
}

bool exchange_in_server(const struct exchange *x)
{
    return request_state_of(x)->in_server;
}

void exchange_skip_return(struct exchange *x)
{
    request_state_of(x)->return_skipped = request_state_of(x)->location;
}

bool exchange_return_skipped(const struct exchange *x)
{
    return request_state_of(x)->return_skipped == request_state_of(x)->location;
}

void exchange_drop_body(struct exchange *x)
{
    x->request.content_length = 0;
    x->request.body = body_empty();
}

void exchange_become_get(struct exchange *x)
{
    if (x->request.method == METHOD_HEAD || x->request.method == METHOD_GET)
        return;
    x->request.method = METHOD_GET;
    x->request.method_name = STR("GET");
    exchange_drop_body(x);
}

int exchange_set_headers_always(struct exchange *x, const struct headers *fields)
{
    struct request_state *request = request_state_of(x);
    int error = 0;

    request->headers_always.count = 0;
    for (unsigned i = 0; i < fields->count && error == 0; i++)
        error = headers_add(&request->headers_always, &x->arena, fields->items[i].name, fields->items[i].value);
    return error;
}

/* multipart/byteranges has its own Content-Type; a 304 has none. */
static bool has_own_type(const struct response *response)
{
    struct str type = headers_value(&response->headers, STR("Content-Type"));

    return response->status == 304 || str_starts(type, STR("multipart/byteranges"));
}

int internal_redirect_set_headers(struct request_state *request)
{
    struct response *response = &request->x->response;
    struct headers *fields = &request->headers_always;
    int error = 0;

    if (fields->count == 0 || request->error_page || (response->status >= 300 && response->status != 304))
        return 0;
    if (has_own_type(response))
        headers_remove(fields, STR("Content-Type"));
    error = headers_remove_named(&response->headers, &request->x->arena, fields);
    for (unsigned i = 0; i < fields->count && error == 0; i++)
        error = headers_add(&response->headers, &request->x->arena, fields->items[i].name, fields->items[i].value);
    return error;
}
