/*
 * Where a request goes, and what its request line says there.
 */
#include "proxy.h"

#include "http/url.h"
#include "http/url_climb.h"

#include <errno.h>

/* "unix:/path" or "unix:/path:/uri" */
static int parse_unix(struct str rest, struct gateway_target *out_target)
{
    ssize_t colon = str_find(str_skip(rest, 5), ':');

    if (!str_starts(str_skip(rest, 5), STR("/")))
        return -EINVAL;
    *out_target = (struct gateway_target){.authority = rest};
    if (colon < 0)
        return 0;
    out_target->authority = str_slice(rest, 0, (size_t)colon + 5);
    if ((size_t)colon + 6 == rest.length)
        return 0;
    out_target->uri = str_skip(rest, (size_t)colon + 6);
    return out_target->uri.data[0] == '/' ? 0 : -EINVAL;
}

int proxy_target_parse(struct str text, struct gateway_target *out_target)
{
    struct str rest = text;
    size_t end = 0;
    bool https = str_starts(text, STR("https://"));

    if (https || str_starts(text, STR("http://")))
        rest = str_skip(text, https ? 8 : 7);
    else if (!str_starts(text, STR("unix:")))
        return -EINVAL;
    if (str_starts(rest, STR("unix:")))
        return https ? -EINVAL : parse_unix(rest, out_target);
    while (end < rest.length && rest.data[end] != '/' && rest.data[end] != '?')
        end++;
    if (end == 0)
        return -EINVAL;
    *out_target = (struct gateway_target){.https = https, .authority = str_slice(rest, 0, end)};
    if (end < rest.length)
        out_target->uri = str_skip(rest, end);
    return out_target->uri.data && out_target->uri.data[0] != '/' ? -EINVAL : 0;
}

struct str gateway_target_host(const struct gateway_target *target)
{
    return str_starts(target->authority, STR("unix:")) ? STR("localhost") : target->authority;
}

uint16_t proxy_target_port(const struct gateway_target *target)
{
    return target->https ? 443 : 80;
}

const char *gateway_scheme(const struct gateway_request *p)
{
    return p->target.https ? p->conf->gateway->tls_scheme : p->conf->gateway->scheme;
}

/* The path as it is now, encoded again, with the query. */
static struct str made_of(struct exchange *x, struct str front, struct str path)
{
    struct str encoded = str_empty(path) ? STR("") : url_path_encode(&x->arena, path);
    struct str query = x->request.query;

    if (!encoded.data)
        return encoded;
    if (str_empty(query))
        return arena_printf(&x->arena, STR_FMT STR_FMT, STR_ARG(front), STR_ARG(encoded));
    return arena_printf(&x->arena, STR_FMT STR_FMT "?" STR_FMT, STR_ARG(front), STR_ARG(encoded),
                        STR_ARG(query));
}

/* What is left behind the location's prefix ("../x" of "/api../x") leads out of the path that it is added to. */
static bool rest_climbs(struct str front, struct str rest)
{
    struct url_climb climb = {0};

    if (str_search(rest, STR("..")) < 0 && !str_starts(rest, STR(".")))
        return false;
    url_climb_add(&climb, front, false);
    url_climb_add(&climb, rest, true);
    return url_climb_end(&climb);
}

/*
 * Without a URI in proxy_pass, what the client asked for, as it came. With one, it takes the place of the
 * location's prefix. Where variables made it, it is the whole.
 */
int gateway_target_uri(const struct gateway_request *p, struct str *out_uri)
{
    struct exchange *x = p->x;
    struct str location = exchange_location(x);
    struct str front = p->target.uri;
    struct str rest = STR("");

    if (!front.data)
        *out_uri = exchange_is_rerouted(x) ? made_of(x, STR(""), x->request.path) : x->request.target;
    else if (!p->conf->pass.upstream)
        *out_uri = front;
    else {
        if (location.data && str_starts(x->request.path, location))
            rest = str_skip(x->request.path, location.length);
        if (rest_climbs(front, rest))
            return 404;
        *out_uri = made_of(x, front, rest);
    }
    return out_uri->data ? 0 : 500;
}
