/*
 * What is asked so that it can be kept, whether it may be, and keeping it while it passes.
 */
#include "modules/gateway/gateway.h"

#include "base/limits.h"
#include "modules/gateway/fields.h"
#include "modules/gateway/response_body.h"

#include <errno.h>

/* What the client alone wants to know, or to have a part of: the server is asked for the whole. */
static const char *const of_client[] = {"Range",         "If-Range",          "If-Match",
                                        "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"};

static int set_range(struct gateway_request *p, struct headers *fields)
{
    struct range range = slice_range(&p->slice);
    struct str value = arena_printf(&p->x->arena, "bytes=%llu-%llu", (unsigned long long)range.first,
                                    (unsigned long long)range.last);

    return value.data ? headers_add(fields, &p->x->arena, STR("Range"), value) : -ENOMEM;
}

int cached_request_fields(struct gateway_request *p, struct headers *fields)
{
    struct cached *cached = p->cached;
    struct arena *arena = &p->x->arena;
    const struct stored_response *stored;
    struct str modified;

    if (!cached || (!cached->stores && !p->slice.of))
        return 0;
    for (size_t i = 0; i < sizeof(of_client) / sizeof(of_client[0]); i++)
        headers_remove(fields, str_from(of_client[i]));
    if (p->slice.of)
        return set_range(p, fields);
    if (!cached->stale || !p->conf->cache.revalidate || cached->stale->updates >= LIMIT_CACHE_UPDATES)
        return 0;
    if (p->sent.content_length != 0) /* it could not be asked again */
        return 0;
    stored = cached->stale->parsed;
    modified = headers_value(&stored->headers, STR("Last-Modified"));
    cached->revalidates = stored->validators.etag.length > 0 || modified.length > 0;
    if (stored->validators.etag.length > 0 &&
        headers_add(fields, arena, STR("If-None-Match"), arena_copy(arena, stored->validators.etag)) < 0)
        return -ENOMEM;
    return modified.length > 0 ? headers_add(fields, arena, STR("If-Modified-Since"), arena_copy(arena, modified)) : 0;
}

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

/* "60", "0", "@784111777"; anything else says nothing. */
static int64_t accel_expires(struct str value, int64_t now_s)
{
    bool absolute = str_starts(value, STR("@"));
    int64_t seconds;

    if (!value.data || delta_read(str_skip(value, absolute), &seconds) < 0)
        return DELTA_NONE;
    if (absolute)
        return seconds > now_s ? seconds - now_s : 0;
    return seconds;
}

/* What the first targeted field that can be read says, else Cache-Control. */
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

/* What decides later whether it may be said again: of the fields that count, which proxy_ignore_headers has chosen. */
static void set_rules(const struct arrival *arrival, struct stored_metadata *metadata)
{
    struct freshness freshness;

    freshness_init(&freshness, arrival->response_control);
    freshness_arrived(&freshness, metadata->lifetime_s, metadata->initial_age_s);
    metadata->no_cache = freshness.no_cache;
    metadata->never_stale = freshness.never_stale;
    metadata->stale_while_revalidate = freshness.stale_while_revalidate;
    metadata->stale_if_error = freshness.stale_if_error;
}

/* The age of an answer does not count where the configuration gives the time. */
void cached_set_times(const struct gateway_request *p, const struct arrival *arrival, struct stored_metadata *metadata)
{
    int64_t accel = accel_expires(headers_value(arrival->headers, STR("X-Accel-Expires")), arrival->received_s);
    int64_t said = freshness_lifetime(arrival);

    metadata->received_s = arrival->received_s;
    metadata->initial_age_s = freshness_initial_age(arrival);
    if (accel != DELTA_NONE || said == DELTA_NONE) {
        metadata->lifetime_s = accel != DELTA_NONE ? accel : configured_lifetime(&p->conf->cache, arrival->status);
        if (metadata->lifetime_s > 0)
            metadata->lifetime_s += metadata->initial_age_s;
        else if (accel == 0) /* not to be kept at all */
            metadata->lifetime_s = DELTA_NONE;
    } else {
        metadata->lifetime_s = said;
    }
    if (metadata->lifetime_s == DELTA_NONE && accel == DELTA_NONE && p->conf->cache.heuristic_ms > 0)
        metadata->lifetime_s = freshness_heuristic(arrival, (int64_t)(p->conf->cache.heuristic_ms / 1000));
    set_rules(arrival, metadata);
}

/* One that must be validated before it is said again is worth keeping where the configuration validates. */
static bool is_worth_storing(const struct gateway_request *p, const struct arrival *arrival,
                             struct stored_metadata *metadata)
{
    bool validated =
        headers_find(arrival->headers, STR("ETag")) || headers_find(arrival->headers, STR("Last-Modified"));

    if (!metadata->no_cache && metadata->lifetime_s >= 0)
        return true;
    if (metadata->lifetime_s == DELTA_NONE && arrival->response_control->no_cache)
        metadata->lifetime_s = 0;
    return metadata->lifetime_s != DELTA_NONE && p->conf->cache.revalidate && validated;
}

/* Bytes of the largest answer that is stored. */
static uint64_t max_stored_size(const struct gateway_request *p)
{
    uint64_t all = p->conf->cache.cache->max_size;

    return all < LIMIT_CACHE_BODY ? all : LIMIT_CACHE_BODY;
}

int cached_may_store(struct gateway_request *p, const struct arrival *arrival, struct stored_metadata *metadata)
{
    const struct cached *cached = p->cached;
    const struct gateway_cache_conf *conf = &p->conf->cache;
    int refused;

    if (!cached->stores || p->sent.method == METHOD_HEAD || p->reply.status == 101)
        return 0;
    if (!freshness_may_store(arrival) || headers_find(arrival->headers, STR("Set-Cookie")))
        return 0;
    if (p->reply.content_length != BODY_LENGTH_UNKNOWN && p->reply.content_length > max_stored_size(p))
        return 0;
    cached_set_times(p, arrival, metadata);
    if (!is_worth_storing(p, arrival, metadata))
        return 0;
    refused = cached_any_holds(p->x, &conf->no_cache);
    return refused < 0 ? refused : !refused;
}

static bool is_publishing(const struct cached *cached)
{
    return cached->publishing[0] || cached->publishing[1];
}

static void fill_published(struct cache_fill *fill)
{
    struct cached *cached = fill->owner;

    for (size_t i = 0; i < 2; i++) {
        if (cached->publishing[i] == fill)
            cached->publishing[i] = NULL;
    }
    if (is_publishing(cached) || cached->fill)
        return;
    if (cached->holds_head)
        exchange_resume(cached->p->x, OUTCOME_ANSWERED);
    else
        gateway_wake_body(cached->p);
    cached->holds_head = false;
}

void cached_publish(struct cached *cached, struct cache_fill *fill)
{
    size_t place = cached->publishing[0] ? 1 : 0;

    if (cached->background || cached->publishing[place])
        return;
    cached->publishing[place] = fill;
    fill->owner = cached;
    fill->ended = fill_published;
}

bool cached_delays_body(const struct gateway_request *p)
{
    const struct cached *cached = p->cached;

    if (!cached || cached->background)
        return false;
    return cached->fill ? cached->stored_bytes == p->reply.content_length : is_publishing(cached);
}

bool cached_delays_head(struct gateway_request *p)
{
    struct cached *cached = p->cached;

    if (!cached || !cached->fill || cached->background || p->reply.content_length != 0)
        return false;
    cached->holds_head = true;
    return true;
}

/* Under the key stands by which fields there are several. */
static int store_names(struct cached *cached, struct str names)
{
    struct stored_metadata metadata = {.salt = cached->salt};
    struct headers fields = {0};
    struct cache_fill *fill;
    struct str head;

    if (headers_add(&fields, &cached->p->x->arena, STR("Vary"), names) < 0)
        return -ENOMEM;
    head = stored_response_write(&metadata, &fields, &cached->p->x->arena);
    fill = head.data ? cache_fill_begin(cached->store, cached->primary, &cached->origin, 0) : NULL;
    if (!fill)
        return -ENOMEM;
    cached_publish(cached, fill);
    cache_fill_end(fill, head);
    return 0;
}

/* The key of this answer. 0; -ENOTSUP where it has none; or -ENOMEM. */
static int find_variant_key(struct cached *cached, const struct headers *counting)
{
    struct arena *arena = &cached->p->x->arena;
    struct str names;
    int error = vary_read(counting, arena, &names);

    if (error < 0)
        return error;
    if (str_empty(names)) {
        cached->key = cached->primary;
        return 0;
    }
    if (!cached->names.data || !str_equal(names, cached->names)) {
        cached->names = names;
        cached->salt = cache_zone_sequence(cache_store_conf(cached->store)->zone);
        error = store_names(cached, names);
    }
    if (error < 0)
        return error;
    cached->key = cached_key(cached, vary_text(names, &cached->p->x->request.headers, arena));
    return cached->key.data && cached->key.length <= LIMIT_CACHE_KEY ? 0 : -ENOTSUP;
}

static void fill_has_room(void *owner)
{
    gateway_read(owner);
}

/* The key of a slice depends on nothing but what it is a slice of. Who hears of the others now waits for this one. */
static int find_slice_key(struct cached *cached)
{
    const struct gateway_cache_conf *conf = &cached->p->conf->cache;

    cached->key = slice_key(cached->p);
    if (!cached->key.data)
        return -ENOMEM;
    cache_store_hash(cached->key, &cached->origin.hash);
    if (conf->lock && !cached->fill_lock)
        cached->fill_lock = cache_store_fill_lock(cached->store, &cached->origin.hash, conf->lock_age_ms);
    return 0;
}

static int start_fill(struct cached *cached, const struct headers *counting, const struct stored_metadata *metadata)
{
    struct gateway_request *p = cached->p;
    struct headers fields = {0};
    bool slice = p->slice.of && metadata->status == 206;
    int error = slice ? find_slice_key(cached) : find_variant_key(cached, counting);

    if (error == -ENOTSUP)
        return 0;
    if (error == 0)
        error = gateway_end_to_end_fields(p, &p->reply.headers, &fields);
    if (error == 0)
        error = stored_response_date(&fields, &p->x->arena, metadata->received_s);
    if (error < 0)
        return error;
    cached->head = stored_response_write(metadata, &fields, &p->x->arena);
    if (!cached->head.data)
        return -ENOMEM;
    cached->fill = cache_fill_begin(cached->store, cached->key, &cached->origin, cached->fill_lock);
    if (!cached->fill)
        return -ENOMEM;
    cached->fill_lock = 0;
    cached->fill->owner = p;
    cached->fill->room = fill_has_room;
    return 0;
}

/* 1: it is kept; 0 or -ENOMEM. */
static int decide_storing(struct gateway_request *p, struct arrival *arrival, struct stored_metadata *metadata)
{
    int result = p->slice.of ? slice_response_head(p, arrival, metadata) : -ENOTSUP;

    return result == -ENOTSUP ? cached_may_store(p, arrival, metadata) : result;
}

static bool is_safe(enum method method)
{
    return method == METHOD_GET || method == METHOD_HEAD || method == METHOD_OPTIONS || method == METHOD_TRACE;
}

int cached_response_head(struct gateway_request *p)
{
    struct cached *cached = p->cached;
    struct headers counting = {0};
    struct cache_control said;
    struct stored_metadata metadata = {.status = p->reply.status};
    struct arrival arrival = {.authorized = headers_find(&p->x->request.headers, STR("Authorization")) != NULL,
                              .response_control = &said,
                              .headers = &counting,
                              .status = p->reply.status,
                              .received_s = clock_wall_s(exchange_clock(p->x))};
    int result;

    if (p->conf->cache.cache && !is_safe(p->sent.method) && p->reply.status >= 200 && p->reply.status < 400)
        cached_invalidate(p);
    if (!cached)
        return 0;
    if (!is_safe(p->sent.method)) /* what it forgets is what was before it: its own answer may be kept */
        cached->origin.since = cache_zone_sequence(cache_store_conf(cached->store)->zone);
    arrival.request_control = &cached->request_control;
    arrival.request_sent_s = cached->request_sent_s;
    if (cached->revalidates && p->reply.status == 304)
        return cached_revalidated(p, &arrival);
    if (cached_policy(p, &p->reply.headers, arrival.received_s, &counting, &said) < 0)
        return -ENOMEM;
    result = decide_storing(p, &arrival, &metadata);
    if (result > 0)
        result = start_fill(cached, &counting, &metadata);
    if (result == 0 && !cached->fill)
        cached_release_lock(p);
    return result;
}

void cached_put(struct gateway_request *p, struct str part)
{
    struct cached *cached = p->cached;

    if (!cached || !cached->fill)
        return;
    cached->stored_bytes += part.length;
    if (cached->stored_bytes <= max_stored_size(p)) {
        cache_fill_add(cached->fill, part);
        return;
    }
    cache_fill_discard(cached->fill); /* nobody had said how long it would be */
    cached->fill = NULL;
}

bool cached_fill_is_full(const struct gateway_request *p)
{
    return p->cached && p->cached->fill && cache_fill_must_wait(p->cached->fill);
}

void cached_fill_end(struct gateway_request *p)
{
    struct cached *cached = p->cached;
    struct cache_fill *fill = cached ? cached->fill : NULL;

    if (!fill)
        return;
    cached_publish(cached, fill);
    cached->fill = NULL;
    if (p->slice.of && p->reply.status == 206 && cached->stored_bytes != slice_length(&p->slice))
        cache_fill_discard(fill);
    else
        cache_fill_end(fill, cached->head);
}

void cached_fill_failed(struct gateway_request *p)
{
    struct cached *cached = p->cached;

    if (!cached)
        return;
    cache_fill_discard(cached->fill);
    cached->fill = NULL;
    if (cached->holds_head)
        exchange_resume(p->x, OUTCOME_ANSWERED);
    cached->holds_head = false;
}
