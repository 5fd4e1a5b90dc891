/*
 * Decides how a request is answered from slices: looks the metadata up, fetches the first slice on a miss, and
 * responds; see slice.h.
 */
#include "modules/gateway/slice/slice.h"

#include "base/limits.h"
#include "modules/gateway/fields.h"
#include "server/representation.h"

#include <errno.h>

static struct str slice_key(const struct gateway_request *child)
{
    const struct slice_request *s = child->slice.of;

    if (!s->known)
        return STR("");
    return arena_printf(&child->x->arena, STR_FMT "\n%llx\n%llu", STR_ARG(s->key),
                        (unsigned long long)s->metadata.stored.salt, (unsigned long long)child->slice.index);
}

static void unlock_metadata(struct slice_request *s)
{
    if (s->fill_lock)
        cache_store_fill_unlock(cached_of(s->p)->store, &s->origin.hash, s->fill_lock);
    s->fill_lock = 0;
}

static enum outcome slice_fetch(struct gateway_request *p);

static enum outcome respond_slices(struct slice_request *s)
{
    struct gateway_request *p = s->p;
    struct headers *fields = &p->x->response.headers;
    struct str type = headers_value(&s->metadata.headers, STR("Content-Type"));
    const struct representation whole = {.size = s->metadata.total,
                                         .media_type = type.data ? type : STR(""),
                                         .validators = s->metadata.validators,
                                         .max_ranges = LIMIT_RANGES,
                                         .span = slice_span,
                                         .resource = s};

    s->begun = true;
    p->stage = GATEWAY_DONE;
    fields->count = 0;
    if (gateway_pass_fields(p, &s->metadata.headers, &p->x->arena, fields) < 0 ||
        cached_add_age(cached_of(p), &s->metadata.stored) < 0)
        return exchange_error_response(p->x, 500);
    if (representation_respond(p->x, &whole) < 0)
        return exchange_error_response(p->x, 500);
    if (!p->x->response.body) /* 304, 412, 416 */
        slice_child_release(s);
    return OUTCOME_RESPONDED;
}

/* Sets `first` to the slice of the first requested byte; 0 if that byte is unknown. */
static void find_first(struct slice_request *s)
{
    struct str value = headers_value(&s->p->x->request.headers, STR("Range"));
    uint64_t at;

    if (s->p->x->request.method != METHOD_GET || !str_starts(value, STR("bytes=")))
        return;
    value = str_skip(value, 6);
    if (str_to_u64(str_cut(&value, '-'), &at) == 0 && at <= INT64_MAX / 2)
        s->first = at / slice_size(s);
}

/* Continues without slices. If nothing is stored, a range may be requested unchanged. */
static enum outcome fetch_whole(struct slice_request *s)
{
    s->plain = true;
    cached_of(s->p)->sliced = false;
    unlock_metadata(s);
    if (headers_find(&s->p->x->request.headers, STR("Range")))
        cached_of(s->p)->stores = false;
    return cached_slices_missed(s->p);
}

static enum outcome follow_redirect(struct slice_request *s)
{
    enum outcome outcome = cached_child_follow_redirect(s->p, gateway_request_of(s->child));

    unlock_metadata(s);
    s->begun = true;
    s->p->stage = GATEWAY_DONE;
    slice_child_release(s);
    return outcome;
}

static bool is_redirected(const struct exchange *child)
{
    const struct gateway_request *p = gateway_request_of(child);

    return p && p->slice.redirected;
}

static enum outcome use_child_response(struct slice_request *s)
{
    struct exchange *x = s->p->x;
    int status = s->child->response.status;

    if (is_redirected(s->child))
        return follow_redirect(s);
    if (s->serve_stale) {
        slice_child_release(s);
        s->p->cached->status = CACHED_STALE;
    }
    if (s->known || s->serve_stale) {
        s->known = true;
        unlock_metadata(s);
        return respond_slices(s);
    }
    if (s->plain || (status == 416 && s->first == 0)) {
        slice_child_release(s);
        return fetch_whole(s);
    }
    if (status == 416) { /* the resource ends before this slice: slice 0 gives its length */
        s->first = 0;
        return slice_child_request(s, 0) < 0 ? exchange_error_response(x, 500) : OUTCOME_PENDING;
    }
    unlock_metadata(s);
    s->begun = true;
    s->p->stage = GATEWAY_DONE;
    if (!s->child->response.body || slice_child_pass_on(s) < 0) {
        slice_child_release(s);
        return exchange_error_response(x, status < 300 ? 500 : status);
    }
    return OUTCOME_RESPONDED;
}

/* Parses the metadata of an entry into this arena. False: malformed, or for another slice size. */
static bool read_metadata(struct slice_request *s, const struct stored_response *stored)
{
    struct str place = headers_value(&stored->headers, STR("Content-Range"));
    struct str size = str_cut(&place, '/');
    uint64_t slice;

    if (!place.data || str_to_u64(size, &slice) < 0 || slice != slice_size(s) ||
        str_to_u64(place, &s->metadata.total) < 0 || s->metadata.total == 0)
        return false;
    s->metadata.stored = stored->metadata;
    return slice_copy_fields(s, &stored->headers) == 0;
}

static enum outcome use_stored_metadata(struct slice_request *s, struct cache_entry *entry)
{
    struct cached *cached = cached_of(s->p);
    const struct stored_response *stored =
        entry ? stored_response_of(entry, clock_wall_s(exchange_clock(s->p->x))) : NULL;
    enum reuse reuse;

    if (!stored || !read_metadata(s, stored)) {
        cache_entry_unref(entry);
        return s->waited ? slice_fetch(s->p) : OUTCOME_DECLINED;
    }
    reuse = cached_reuse(cached, stored);
    if (reuse == REUSE_FRESH || reuse == REUSE_STALE) {
        cache_entry_unref(entry);
        unlock_metadata(s);
        s->known = true;
        cached->base.status = reuse == REUSE_FRESH ? CACHED_HIT : CACHED_STALE;
        return respond_slices(s);
    }
    cache_entry_unref(s->stale);
    s->stale = entry;
    cached->base.status = CACHED_EXPIRED;
    return cached->request_control.only_if_cached ? exchange_error_response(s->p->x, 504) : slice_fetch(s->p);
}

static void metadata_lookup_done(struct cache_lookup *lookup, struct cache_entry *entry)
{
    struct slice_request *s = container_of(lookup, struct slice_request, lookup);

    cached_slices_looked_up(s->p, use_stored_metadata(s, entry));
}

static enum outcome find_metadata(struct slice_request *s)
{
    struct cache_entry *entry;
    bool pending;

    s->lookup.found = metadata_lookup_done;
    entry = cache_store_get(cached_of(s->p)->store, &s->lookup, s->key, &pending);
    return pending ? OUTCOME_PENDING : use_stored_metadata(s, entry);
}

static void first_slice_responded(struct slice_request *s)
{
    gateway_resume(s->p, use_child_response(s));
}

static enum outcome slice_begin(struct gateway_request *p)
{
    struct slice_request *s = arena_zalloc(&p->x->arena, 1, sizeof(*s));

    if (!s)
        return exchange_error_response(p->x, 500);
    p->slice_request = s;
    s->p = p;
    s->responded = first_slice_responded;
    s->key = cached_metadata_key(p, cached_of(p)->primary);
    if (!s->key.data)
        return exchange_error_response(p->x, 500);
    cache_hash_key(s->key, &s->origin.hash);
    find_first(s);
    return find_metadata(s);
}

static void lock_wait_done(struct cache_waiter *waiter, bool late)
{
    struct slice_request *s = container_of(waiter, struct slice_request, waiter);

    s->waited = true;
    if (late)
        cached_of(s->p)->stores = false;
    cached_slices_looked_up(s->p, late ? fetch_whole(s) : find_metadata(s));
}

static enum outcome slice_fetch(struct gateway_request *p)
{
    const struct gateway_cache_conf *conf = &p->conf->cache;
    struct slice_request *s = p->slice_request;
    struct cache_store *store = cached_of(p)->store;

    if (conf->lock && !s->fill_lock)
        s->fill_lock = cache_store_fill_lock(store, &s->origin.hash, conf->lock_age_ms);
    if (conf->lock && !s->fill_lock) {
        s->waiter.hash = s->origin.hash;
        s->waiter.until_ms = exchange_clock(p->x)->monotonic_ms + conf->lock_timeout_ms;
        s->waiter.woken = lock_wait_done;
        cache_store_wait(store, &s->waiter);
        return OUTCOME_PENDING;
    }
    s->origin.since = cache_zone_sequence(cache_store_conf(store)->zone);
    return slice_child_request(s, s->first) < 0 ? exchange_error_response(p->x, 500) : OUTCOME_PENDING;
}

static void slice_end(struct gateway_request *p)
{
    struct slice_request *s = p->slice_request;

    if (!s)
        return;
    cache_lookup_cancel(&s->lookup);
    cache_waiter_cancel(&s->waiter);
    cache_entry_unref(s->stale);
    s->stale = NULL;
    s->child = NULL; /* it has ended, or continues detached */
    unlock_metadata(s);
}

static void slice_failed(struct gateway_request *child, unsigned reason)
{
    struct slice_request *s = child->slice.of;

    s->serve_stale = cached_may_serve_stale(cached_of(s->p), s->stale, reason);
}

const struct cache_slices slices = {
    .begin = slice_begin,
    .fetch = slice_fetch,
    .key = slice_key,
    .range = slice_range,
    .response_head = slice_response_head,
    .failed = slice_failed,
    .end = slice_end,
};
