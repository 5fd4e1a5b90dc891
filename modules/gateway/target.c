/*
 * The request target and the host of a request to an upstream server.
 */
#include "gateway.h"

#include "http/url.h"
#include "http/url_traversal.h"

struct str gateway_target_host(const struct gateway_target *target)
{
    return str_starts(target->authority, STR("unix:")) ? STR("localhost") : target->authority;
}

const char *gateway_scheme(const struct gateway_request *p)
{
    return p->target.https ? p->conf->gateway->tls_scheme : p->conf->gateway->scheme;
}

/* True if the path of the client's request line has no "%": the path is then sent without encoding. */
static bool is_target_unescaped(const struct exchange *x)
{
    struct str target = x->request.target;

    return !exchange_uri_changed(x) && str_find(str_cut(&target, '?'), '%') < 0;
}

/*
 * Joins `front`, the path and the current query. The path is encoded again, unless the client's path had no escapes (as
 * in nginx).
 */
static struct str build_uri(struct exchange *x, struct str front, struct str path)
{
    struct str encoded = str_empty(path)  ? STR("")
                         : is_target_unescaped(x) ? path
                                         : url_path_encode(&x->arena, path);
    struct str query = x->request.query;

    if (!encoded.data)
        return encoded;
    return arena_join(&x->arena, (const struct str[]){front, encoded, STR("?"), query}, str_empty(query) ? 2 : 4);
}

static bool breaks_line(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Encodes blanks and control characters of a URI from variables: they would break the request line (RFC 9112 3.2). */
static struct str encode_blanks(struct arena *arena, struct str uri)
{
    size_t count = 0, length;
    char *made, *at;

    for (size_t i = 0; i < uri.length; i++)
        count += breaks_line(uri.data[i]);
    if (count == 0)
        return uri;
    if (__builtin_mul_overflow(count, (size_t)2, &length) || __builtin_add_overflow(length, uri.length, &length))
        return (struct str){NULL, 0};
    made = at = arena_alloc(arena, length);
    if (!made)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < uri.length; i++) {
        unsigned char c = (unsigned char)uri.data[i];

        if (!breaks_line(uri.data[i])) {
            *at++ = uri.data[i];
            continue;
        }
        *at++ = '%';
        *at++ = "0123456789ABCDEF"[c >> 4];
        *at++ = "0123456789ABCDEF"[c & 15];
    }
    return str_of(made, length);
}

/*
 * Returns true if the path after the location's prefix ("../x" of "/api../x") leaves the path that it is appended
 * to.
 */
static bool rest_traverses(struct str front, struct str rest)
{
    struct url_traversal traversal = {0};

    if (str_search(rest, STR("..")) < 0 && !str_starts(rest, STR(".")))
        return false;
    url_traversal_add(&traversal, front, false);
    url_traversal_add(&traversal, rest, true);
    return url_traversal_end(&traversal);
}

/*
 * Without a URI in proxy_pass, the client's target is sent unchanged. With one, it replaces the location's prefix.
 * With variables, it is the complete target.
 */
int gateway_target_uri(const struct gateway_request *p, struct str *out_uri)
{
    struct exchange *x = p->x;
    struct str location = exchange_location(x);
    struct str front = p->target.uri;
    struct str rest = STR("");

    if (!front.data)
        *out_uri = exchange_uri_changed(x) ? build_uri(x, STR(""), x->request.path) : x->request.target;
    else if (!p->conf->pass.upstream)
        *out_uri = encode_blanks(&x->arena, front);
    else {
        if (location.data && str_starts(x->request.path, location))
            rest = str_skip(x->request.path, location.length);
        if (rest_traverses(front, rest))
            return 404;
        *out_uri = build_uri(x, front, rest);
    }
    return out_uri->data ? 0 : 500;
}
