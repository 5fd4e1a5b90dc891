/*
 * Whether a response may be stored, and how long it is fresh (RFC 9111 3 and 4.2).
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"

#include <errno.h>

static int counting_fields(const struct gateway_request *p, const struct headers *from, struct headers *to)
{
    static const struct {
        const char *name;
        unsigned bit;
    } ignorable[] = {{"X-Accel-Expires", IGNORE_X_ACCEL_EXPIRES}, {"Expires", IGNORE_EXPIRES},
                     {"Cache-Control", IGNORE_CACHE_CONTROL},     {"Set-Cookie", IGNORE_SET_COOKIE},
                     {"Vary", IGNORE_VARY}};

    for (unsigned i = 0; i < from->count; i++) {
        bool ignored = false;

        for (size_t k = 0; k < sizeof(ignorable) / sizeof(ignorable[0]); k++)
            ignored |= (p->conf->cache.ignore & ignorable[k].bit) &&
                       str_equal_nocase(from->items[i].name, str_from(ignorable[k].name));
        if (!ignored && headers_add(to, &p->x->arena, from->items[i].name, from->items[i].value) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* "60", "0", "@784111777"; other values are ignored. */
static int64_t accel_expires(struct str value, int64_t now_s)
{
    bool absolute = str_starts(value, STR("@"));
    int64_t seconds;

    if (!value.data || delta_seconds_parse(str_skip(value, absolute), &seconds) < 0)
        return DELTA_NONE;
    if (absolute)
        return seconds > now_s ? seconds - now_s : 0;
    return seconds;
}

/* The first valid targeted field, else Cache-Control. */
static void read_control(const struct conf_words *targeted, struct headers *counting, struct cache_control *out)
{
    for (size_t i = 0; i < targeted->count; i++) {
        if (cache_control_read_targeted(counting, targeted->items[i], out) < 0)
            continue;
        headers_remove(counting, STR("Cache-Control"));
        headers_remove(counting, STR("Expires"));
        return;
    }
    cache_control_read(counting, CACHE_OF_RESPONSE, out);
}

int cached_policy(const struct gateway_request *p, const struct headers *from, int64_t received_s, struct headers *to,
                  struct cache_control *out)
{
    if (counting_fields(p, from, to) < 0)
        return -ENOMEM;
    read_control(&p->conf->cache.targeted, to, out);
    if (accel_expires(headers_value(to, STR("X-Accel-Expires")), received_s) != DELTA_NONE)
        out->no_store = out->no_cache = out->is_private = out->must_understand = out->malformed = false;
    return 0;
}

static int64_t configured_lifetime(const struct gateway_cache_conf *conf, int status)
{
    const struct gateway_cache_valid *rows = conf->valid.items;

    for (size_t i = 0; i < conf->valid.count; i++) {
        for (size_t k = 0; k < rows[i].count; k++) {
            if (rows[i].statuses[k] == (unsigned)status)
                return (int64_t)rows[i].seconds;
        }
        if (rows[i].count == 0)
            return (int64_t)rows[i].seconds;
    }
    return DELTA_NONE;
}

/* Rules for later reuse, from the fields left by proxy_ignore_headers. */
static void set_rules(const struct received_response *received, struct stored_metadata *metadata)
{
    struct freshness freshness;

    freshness_init(&freshness, received->response_control);
    freshness_set_received(&freshness, metadata->lifetime_s, metadata->initial_age_s);
    metadata->no_cache = freshness.no_cache;
    metadata->never_stale = freshness.never_stale;
    metadata->stale_while_revalidate = freshness.stale_while_revalidate;
    metadata->stale_if_error = freshness.stale_if_error;
}

/* A lifetime from X-Accel-Expires or proxy_cache_valid counts from the arrival, regardless of Age. */
void cached_set_times(const struct gateway_request *p, const struct received_response *received,
                      struct stored_metadata *metadata)
{
    int64_t accel = accel_expires(headers_value(received->headers, STR("X-Accel-Expires")), received->received_s);
    int64_t declared_s = freshness_lifetime(received);

    metadata->received_s = received->received_s;
    metadata->initial_age_s = freshness_initial_age(received);
    if (accel != DELTA_NONE || declared_s == DELTA_NONE) {
        metadata->lifetime_s = accel != DELTA_NONE ? accel : configured_lifetime(&p->conf->cache, received->status);
        if (metadata->lifetime_s > 0)
            metadata->lifetime_s += metadata->initial_age_s;
        else if (accel == 0) /* must not be stored */
            metadata->lifetime_s = DELTA_NONE;
    } else {
        metadata->lifetime_s = declared_s;
    }
    if (metadata->lifetime_s == DELTA_NONE && accel == DELTA_NONE && p->conf->cache.heuristic_ms > 0)
        metadata->lifetime_s = freshness_heuristic(received, (int64_t)(p->conf->cache.heuristic_ms / 1000));
    set_rules(received, metadata);
}

/* A response that must be validated on every use is stored only with proxy_cache_revalidate. */
static bool is_worth_storing(const struct gateway_request *p, const struct received_response *received,
                             struct stored_metadata *metadata)
{
    bool validated =
        headers_find(received->headers, STR("ETag")) || headers_find(received->headers, STR("Last-Modified"));

    if (!metadata->no_cache && metadata->lifetime_s >= 0)
        return true;
    if (metadata->lifetime_s == DELTA_NONE && received->response_control->no_cache)
        metadata->lifetime_s = 0;
    return metadata->lifetime_s != DELTA_NONE && p->conf->cache.revalidate && validated;
}

uint64_t cached_max_stored_size(const struct gateway_request *p)
{
    uint64_t all = p->conf->cache.cache->max_size;

    return all < LIMIT_CACHE_BODY ? all : LIMIT_CACHE_BODY;
}

/* True if no field of the response forbids to store it. The absence of a lifetime is no such field. */
static bool is_storable(const struct received_response *received, const struct stored_metadata *metadata, bool is_worth)
{
    if (headers_list_has(received->headers, STR("Vary"), STR("*")))
        return false;
    return is_worth ||
           (metadata->lifetime_s == DELTA_NONE && !headers_find(received->headers, STR("X-Accel-Expires")));
}

int cached_may_store(struct gateway_request *p, const struct received_response *received,
                     struct stored_metadata *metadata)
{
    struct cached *cached = cached_of(p);
    const struct gateway_cache_conf *conf = &p->conf->cache;
    bool is_worth;
    int rejected;

    if (!cached->stores || p->sent.method == METHOD_HEAD || p->reply.status == 101)
        return 0;
    if (!freshness_is_storable(received) || headers_find(received->headers, STR("Set-Cookie")))
        return 0;
    cached_set_times(p, received, metadata);
    is_worth = is_worth_storing(p, received, metadata);
    cached->storable = is_storable(received, metadata, is_worth);
    if (!is_worth || !freshness_may_store(received))
        return 0;
    if (p->reply.content_length != BODY_LENGTH_UNKNOWN && p->reply.content_length > cached_max_stored_size(p))
        return 0;
    rejected = cached_test_predicates(p->x, &conf->no_cache);
    return rejected < 0 ? rejected : !rejected;
}
