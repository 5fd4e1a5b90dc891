/*
 * The functions of module.h that read and change the request: its URI, its method and body, and its progress from
 * the server-level rules to a location.
 */
#include "http/url.h"
#include "server/request_state.h"

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

void exchange_drop_body(struct exchange *x)
{
    x->request.content_length = 0;
    x->request.body = body_empty();
}

void exchange_change_to_get(struct exchange *x)
{
    if (x->request.method == METHOD_HEAD || x->request.method == METHOD_GET)
        return;
    x->request.method = METHOD_GET;
    x->request.method_name = STR("GET");
    exchange_drop_body(x);
}

void exchange_enter_internal(struct exchange *x)
{
    request_state_of(x)->internal = true;
}

bool exchange_in_server_rules(const struct exchange *x)
{
    return request_state_of(x)->in_server_rules;
}

void exchange_skip_return(struct exchange *x)
{
    request_state_of(x)->return_skipped = request_state_of(x)->location;
}

bool exchange_return_skipped(const struct exchange *x)
{
    return request_state_of(x)->return_skipped == request_state_of(x)->location;
}

bool exchange_uri_changed(const struct exchange *x)
{
    return request_state_of(x)->rewritten;
}

bool exchange_is_internally_redirected(const struct exchange *x)
{
    return request_state_of(x)->internal_redirects > 0;
}

bool exchange_is_subrequest(const struct exchange *x)
{
    return request_state_of(x)->parent != NULL;
}

struct exchange *exchange_main(const struct exchange *x)
{
    return client_request_state_of(x)->x;
}

void exchange_end_with_client(struct exchange *x, bool ends)
{
    request_state_of(x)->ends_with_client = ends;
}
