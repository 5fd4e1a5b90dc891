/*
 * The functions of module.h that make or change the response: errors, redirects, its type, policy and rate.
 */
#include "base/limits.h"
#include "http/mime.h"
#include "server/connection.h"
#include "server/descriptors.h"

#include <errno.h>

enum outcome exchange_error_response(struct exchange *x, int status)
{
    body_close(&x->response.body);
    request_state_of(x)->has_security_policy = false;
    request_state_of(x)->response_type = (struct str){NULL, 0};
    x->response.headers.count = x->response.trailers.count = 0;
    x->response.status = status;
    return OUTCOME_RESPONDED;
}

int exchange_out_of_descriptors(struct exchange *x)
{
    (void)descriptors_reclaim(request_state_of(x)->worker);
    client_request_state_of(x)->x->response.close_after = true;
    return 503;
}

/*
 * Returns "https://name:port" according to `server_name_in_redirect` and `port_in_redirect`; empty if no server name
 * is known.
 */
static struct str redirect_origin(struct exchange *x)
{
    const struct request_state *request = request_state_of(x);
    const struct core_site *site = request->location->site;
    const struct endpoint *endpoint = request->connection->endpoint;
    struct str name = x->request.host;
    unsigned port = 0;

    if (site->server_name_in_redirect || str_empty(name))
        name = request->server->name;
    if (str_empty(name))
        return name;
    if (site->port_in_redirect)
        port = listen_address_port(&endpoint->address);
    if (port == 0 || port == (endpoint->ssl ? 443u : 80u))
        return arena_printf(&x->arena, "%s://" STR_FMT, endpoint->ssl ? "https" : "http", STR_ARG(name));
    return arena_printf(&x->arena, "%s://" STR_FMT ":%u", endpoint->ssl ? "https" : "http", STR_ARG(name),
                        port);
}

/* Reduces leading slashes and backslashes to one slash: browsers interpret "//name" and "/\name" as another host. */
static struct str normalize_redirect_path(struct exchange *x, struct str location)
{
    size_t count = 0;

    while (count < location.length && (location.data[count] == '/' || location.data[count] == '\\'))
        count++;
    if (count < 2)
        return location;
    return arena_join(&x->arena, (const struct str[]){STR("/"), str_skip(location, count)}, 2);
}

enum outcome exchange_redirect(struct exchange *x, int status, struct str location)
{
    struct request_state *request = request_state_of(x);

    exchange_error_response(x, status);
    request->error_status = 0; /* an error page that redirects has the status of the redirect, as in nginx */
    location = normalize_redirect_path(x, location);
    if (str_starts(location, STR("/")) && request->location->site->absolute_redirect) {
        struct str origin = redirect_origin(x);

        if (!origin.data)
            return exchange_error_response(x, 500);
        if (origin.length)
            location = arena_join(&x->arena, (const struct str[]){origin, location}, 2);
    }
    if (!location.data || headers_add(&x->response.headers, &x->arena, STR("Location"), location) < 0)
        return exchange_error_response(x, 500);
    return OUTCOME_RESPONDED;
}

enum outcome exchange_close_without_response(struct exchange *x)
{
    exchange_error_response(x, STATUS_CLOSE);
    x->response.close_after = true;
    return OUTCOME_RESPONDED;
}

struct str exchange_set_response_type(struct exchange *x, struct str type)
{
    request_state_of(x)->response_type = type;
    return type;
}

struct str exchange_media_type(struct exchange *x, struct str path)
{
    return exchange_set_response_type(x, mime_lookup(&request_state_of(x)->location->site->mime, path));
}

struct str exchange_text_type(struct exchange *x)
{
    const struct core_site *site = request_state_of(x)->location->site;
    bool by_path = !str_empty(site->default_type) || mime_find(&site->mime, x->request.path);

    return exchange_set_response_type(x, mime_lookup(&site->mime, by_path ? x->request.path : STR(".txt")));
}

int exchange_add_charset(struct exchange *x, struct str *type)
{
    struct str charset = request_state_of(x)->location->site->charset, whole;

    if (str_empty(charset) || str_equal(charset, STR("off")) || !mime_takes_charset(*type))
        return 0;
    whole = arena_join(&x->arena, (const struct str[]){*type, STR("; charset="), charset}, 3);
    if (!whole.data)
        return -ENOMEM;
    *type = exchange_set_response_type(x, whole);
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

void exchange_set_rate(struct exchange *x, uint64_t rate)
{
    struct request_state *request = request_state_of(x);

    request->rate = rate;
    for (unsigned i = 0; module_table[i] && i < LIMIT_MODULES; i++) {
        if (module_table[i]->limits_rate)
            request->filtering |= UINT64_C(1) << i;
    }
}

bool exchange_rate(const struct exchange *x, uint64_t *out_rate)
{
    const struct request_state *request = request_state_of(x);

    if (request->filtering == 0)
        return false;
    *out_rate = request->rate;
    return true;
}
