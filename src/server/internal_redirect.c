/*
 * Internal redirects: a module replaces the URI, and the exchange is located again.
 */
#include "server/internal_redirect.h"

#include "base/limits.h"
#include "http/url.h"
#include "server/route.h"

#include <errno.h>
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
        return exchange_error_response_log(x, 500, LOG_ERROR,
                                           "invalid path for an internal redirect: \"" STR_FMT "\": %s",
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

enum outcome exchange_relocate(struct exchange *x)
{
    enum outcome outcome = exchange_internal_redirect(x, x->request.path, (struct str){NULL, 0});

    request_state_of(x)->rules_checked = outcome == OUTCOME_INTERNAL_REDIRECT;
    return outcome;
}

int exchange_override_headers(struct exchange *x, const struct headers *fields)
{
    struct request_state *request = request_state_of(x);
    int error = 0;

    request->override_headers.count = 0;
    for (unsigned i = 0; i < fields->count && error == 0; i++)
        error = headers_add(&request->override_headers, &x->arena, fields->items[i].name, fields->items[i].value);
    return error;
}

/* multipart/byteranges has its own Content-Type; a 304 has none. */
static bool has_own_type(const struct response *response)
{
    struct str type = headers_value(&response->headers, STR("Content-Type"));

    return response->status == 304 || str_starts(type, STR("multipart/byteranges"));
}

int internal_redirect_override_headers(struct request_state *request)
{
    struct response *response = &request->x->response;
    struct headers *fields = &request->override_headers;
    struct header *type;
    int error = 0;

    if (fields->count == 0 || request->error_page || (response->status >= 300 && response->status != 304))
        return 0;
    if (has_own_type(response))
        headers_remove(fields, STR("Content-Type"));
    type = headers_find(fields, STR("Content-Type"));
    if (type && exchange_add_charset(request->x, &type->value) < 0)
        return -ENOMEM;
    error = headers_remove_named(&response->headers, &request->x->arena, fields);
    for (unsigned i = 0; i < fields->count && error == 0; i++)
        error = headers_add(&response->headers, &request->x->arena, fields->items[i].name, fields->items[i].value);
    return error;
}
