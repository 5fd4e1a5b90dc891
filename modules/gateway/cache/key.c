/*
 * Cache keys, and removal of entries: by purge, or after an unsafe method.
 */
#include "modules/gateway/cache/response_cache.h"

#include "cache/cache_purge.h"
#include "http/url.h"
#include "modules/gateway/cache/partial.h"
#include "modules/gateway/fields.h"

/*
 * Method and body that replace those of the client; empty for GET or HEAD without a body. data NULL: out of memory.
 */
static struct str replaced_request_key(struct gateway_request *p)
{
    const struct gateway_conf *conf = p->conf;
    struct str method = conf->method ? exchange_eval(p->x, conf->method) : STR("");
    struct str body = conf->set_body ? exchange_eval(p->x, conf->set_body) : STR("");

    if (!method.data || !body.data)
        return (struct str){NULL, 0};
    if (str_equal(method, STR("GET")) || str_equal(method, STR("HEAD")))
        method = STR("");
    if (str_empty(method) && str_empty(body))
        return STR("");
    return arena_join(&p->x->arena, (const struct str[]){STR(" "), method, STR(" "), body}, 4);
}

struct str cached_primary_key(struct gateway_request *p)
{
    const struct request *request = &p->x->request;
    struct str scheme, host, changed, forwarded[3];

    if (p->conf->cache.key)
        return exchange_eval(p->x, p->conf->cache.key);
    scheme = exchange_eval(p->x, p->conf->scheme);
    changed = replaced_request_key(p);
    host = gateway_request_host(p->x);
    forwarded[0] = gateway_forwarded_field(p->x, STR("X-Forwarded-Proto"));
    forwarded[1] = gateway_forwarded_field(p->x, STR("X-Forwarded-Host"));
    forwarded[2] = gateway_forwarded_field(p->x, STR("X-Forwarded-Port"));
    if (!scheme.data || !changed.data || (request->port && !host.data) || !forwarded[0].data || !forwarded[1].data ||
        !forwarded[2].data)
        return (struct str){NULL, 0};
    const struct str parts[] = {scheme, STR(" "), gateway_target_host(&p->target), STR(" "), str_or_empty(host),
                                STR(" "), request->target, STR(" "), request->path, STR("?"),
                                str_or_empty(request->query), STR(" "), forwarded[0], STR(" "), forwarded[1], STR(" "),
                                forwarded[2], changed};

    return arena_join(&p->x->arena, parts, sizeof(parts) / sizeof(parts[0]));
}

struct str cached_metadata_key(struct gateway_request *p, struct str key)
{
    return arena_join(&p->x->arena, (const struct str[]){key, STR(CACHE_KEY_SLICES)}, 2);
}

bool cached_remove(struct gateway_request *p, struct cache_store *store, struct str key)
{
    struct str metadata = cached_metadata_key(p, key), partial = cached_partial_key(p, key);
    bool whole = cache_store_remove(store, key);
    bool sliced = metadata.data && cache_store_remove(store, metadata);
    bool incomplete = partial.data && cache_store_discard(store, partial);

    return whole || sliced || incomplete;
}

struct str cached_key(const struct cached *cached, struct str text)
{
    if (!text.data)
        return text;
    return arena_printf(&cached->p->x->arena, STR_FMT "\n%llx\n" STR_FMT, STR_ARG(cached->primary),
                        (unsigned long long)cached->salt, STR_ARG(text));
}

static bool may_purge(const struct gateway_request *p)
{
    const struct gateway_cache_purge *purge = &p->conf->cache.purge;

    for (size_t i = 0; i < purge->count; i++) {
        if (cidr_contains(&purge->from[i], exchange_client(p->x)))
            return true;
    }
    return false;
}

bool cached_is_purge(const struct gateway_request *p)
{
    const struct gateway_cache_conf *conf = &p->conf->cache;

    return conf->cache && conf->purge.count > 0 && str_equal(p->x->request.method_name, conf->purge.method);
}

enum outcome cached_purge(struct gateway_request *p)
{
    struct exchange *x = p->x;
    struct str key = cached_primary_key(p);
    struct cache_store *store = worker_cache(exchange_worker(x), p->conf->cache.cache);

    if (!may_purge(p))
        return exchange_error_response_log(x, 403, LOG_ERROR, "proxy_cache_purge: access forbidden by rule");
    if (!key.data)
        return exchange_error_response(x, 500);
    return exchange_error_response(x, cached_remove(p, store, key) ? 204 : 404);
}

static void invalidate_key(struct cached *cached)
{
    struct str key = cached_primary_key(cached->p);

    if (key.data)
        (void)cached_remove(cached->p, cached->store, key);
}

/* Removes the entry of another URI of this server. */
static void remove_uri(struct cached *cached, struct str target)
{
    struct request *request = &cached->p->x->request;
    const struct request was = *request;
    struct url_target parsed;

    if (url_target_parse(&cached->p->x->arena, target, true, &parsed) < 0)
        return;
    request->target = target;
    request->path = parsed.path;
    request->query = parsed.query;
    invalidate_key(cached);
    *request = was;
}

/* Converts a location of the same server to a target; data NULL: another server, or none. */
static struct str target_of_location(const struct gateway_request *p, struct str location)
{
    ssize_t scheme = str_search(location, STR("://"));
    struct str host;

    if (scheme >= 0) {
        location = str_skip(location, (size_t)scheme + 3);
        host = str_slice(location, 0, str_find(location, '/') >= 0 ? (size_t)str_find(location, '/') : location.length);
        location = str_skip(location, host.length);
        if (!str_equal_nocase(str_cut(&host, ':'), p->x->request.host))
            return (struct str){NULL, 0};
    }
    return str_starts(location, STR("/")) && !str_starts(location, STR("//")) ? location : (struct str){NULL, 0};
}

void cached_invalidate(struct gateway_request *p)
{
    static const char *const places[] = {"Location", "Content-Location"};
    struct cached cached = {.p = p, .store = worker_cache(exchange_worker(p->x), p->conf->cache.cache)};

    invalidate_key(&cached);
    for (size_t i = 0; i < 2; i++) {
        struct str value = headers_value(&p->reply.headers, str_from(places[i]));
        struct str target = value.data ? target_of_location(p, value) : value;

        if (target.data)
            remove_uri(&cached, target);
    }
}

struct str cached_partial_key(struct gateway_request *p, struct str key)
{
    return arena_printf(&p->x->arena, STR_FMT CACHE_KEY_PARTIAL, STR_ARG(key));
}
