/*
 * Assembles responses from slices: a body that uses one subrequest per slice. The subrequest looks its slice up in
 * the cache, or fetches it; see slice.h.
 */
#include "modules/gateway/slice/slice.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "modules/gateway/fields.h"
#include "server/representation.h"

#include <errno.h>

struct slice_body {
    struct body body;
    struct slice_request *request;
    uint64_t at, left;
};

static uint64_t size_of(const struct slice_request *s)
{
    return s->p->conf->cache.slice;
}

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

/* Releases the subrequest. One that has no response yet continues detached. */
static void release_child(struct slice_request *s)
{
    struct exchange *child = s->child;
    bool had_response = s->has_response;

    s->child = NULL;
    s->has_response = false;
    if (child && had_response)
        cached_child_release(child);
}

static enum outcome slice_fetch(struct gateway_request *p);
static void child_responded(struct exchange *child, void *owner);

static int request_slice(struct slice_request *s, uint64_t index)
{
    struct gateway_request *p;
    int error;

    release_child(s);
    error = exchange_subrequest(s->p->x, (struct str){NULL, 0}, child_responded, s, &s->child);
    if (error < 0) {
        s->child = NULL;
        return error;
    }
    p = gateway_request_make(s->child);
    if (!p) {
        s->child = NULL; /* a subrequest that was answered is detached, too */
        return -ENOMEM;
    }
    p->slice = (struct slice_part){.functions = &slices, .of = s, .index = index};
    s->index = index;
    s->at = index * size_of(s);
    return 0;
}

static void child_body_woken(void *owner)
{
    struct slice_body *own = owner;

    own->body.wake(own->body.owner);
}

/* Trims the chunk to the wanted bytes. False: none are left. */
static bool trim_chunk(struct slice_body *own, struct chunk *chunk)
{
    struct slice_request *s = own->request;
    uint64_t skipped = u64_sub_sat(own->at, s->at), length = chunk_length(chunk);

    s->at += length;
    chunk_advance(chunk, skipped);
    length = chunk_length(chunk);
    if (length > own->left)
        length = own->left;
    if (chunk->kind == CHUNK_FILE)
        chunk->file.length = length;
    else
        chunk->bytes.length = (size_t)length;
    own->at += length;
    own->left -= length;
    return length > 0;
}

/* True if the response is the requested slice. After X-Accel-Redirect it may be another response with its own range. */
static bool has_piece(const struct exchange *child)
{
    const struct gateway_request *p = gateway_request_of(child);

    return p && p->slice.fits && child->response.status == 206;
}

/* As `next`, from the body of the subrequest; 2: no bytes, continue with the next chunk or slice. */
static int next_piece(struct slice_body *own, unsigned accept, size_t room, struct chunk *out)
{
    struct slice_request *s = own->request;
    struct body *body = s->child->response.body;
    uint64_t end = slice_range(&(struct slice_part){.of = s, .index = s->index}).last + 1;
    int result;

    if (!has_piece(s->child) || !body)
        return -EPROTO;
    body->wake = child_body_woken;
    body->owner = own;
    result = body->ops->next(body, accept & ~(unsigned)CHUNK_PIPE, room, out);
    if (result < 0)
        return result;
    if (result == 1 ? s->at + chunk_length(out) > end : s->at != end)
        return -EPROTO; /* the slice is longer or shorter than announced */
    if (result == 1)
        return trim_chunk(own, out) ? 1 : 2;
    release_child(s);
    return 2;
}

static int slice_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct slice_body *own = container_of(body, struct slice_body, body);
    struct slice_request *s = own->request;
    int result = 2;

    while (result == 2 && own->left > 0) {
        uint64_t index = own->at / size_of(s);

        if (s->error < 0)
            return s->error;
        if (!s->child || s->index != index || s->at > own->at)
            result = request_slice(s, index);
        if (result < 0)
            return result;
        if (!s->has_response) {
            s->waiting = own;
            return -EAGAIN;
        }
        result = next_piece(own, accept, room, out);
    }
    return result == 2 ? 0 : result;
}

static void slice_closed(struct body *body)
{
    struct slice_body *own = container_of(body, struct slice_body, body);
    struct slice_request *s = own->request;

    if (s->waiting == own)
        s->waiting = NULL;
    release_child(s);
}

static struct body *slice_span(struct arena *arena, void *resource, uint64_t at, uint64_t length)
{
    static const struct body_ops ops = {.next = slice_next, .close = slice_closed};
    struct slice_body *own = arena_zalloc(arena, 1, sizeof(*own));

    if (!own)
        return NULL;
    *own = (struct slice_body){
        .body = {.ops = &ops, .length = length}, .request = resource, .at = at, .left = length};
    return &own->body;
}

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
        release_child(s);
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
        s->first = at / size_of(s);
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

/* Passes on the subrequest's body, which is a complete response instead of a slice, or an error. */
static int whole_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct slice_body *own = container_of(body, struct slice_body, body);
    struct body *inner = own->request->child->response.body;

    inner->wake = child_body_woken;
    inner->owner = own;
    return inner->ops->next(inner, accept, room, out);
}

static void whole_closed(struct body *body)
{
    release_child(container_of(body, struct slice_body, body)->request);
}

static int pass_on(struct slice_request *s)
{
    static const struct body_ops ops = {.next = whole_next, .close = whole_closed};
    struct response *from = &s->child->response, *to = &s->p->x->response;
    struct arena *arena = &s->p->x->arena;
    struct slice_body *own = arena_zalloc(arena, 1, sizeof(*own));

    to->headers.count = 0;
    if (!own || headers_copy(&to->headers, arena, &from->headers) < 0)
        return -ENOMEM;
    own->body = (struct body){.ops = &ops, .length = from->body->length};
    own->request = s;
    to->status = from->status;
    to->body = &own->body;
    return 0;
}

static enum outcome follow_redirect(struct slice_request *s)
{
    enum outcome outcome = cached_child_follow_redirect(s->p, gateway_request_of(s->child));

    unlock_metadata(s);
    s->begun = true;
    s->p->stage = GATEWAY_DONE;
    release_child(s);
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
        release_child(s);
        s->p->cached->status = CACHED_STALE;
    }
    if (s->known || s->serve_stale) {
        s->known = true;
        unlock_metadata(s);
        return respond_slices(s);
    }
    if (s->plain || (status == 416 && s->first == 0)) {
        release_child(s);
        return fetch_whole(s);
    }
    if (status == 416) { /* the resource ends before this slice: slice 0 gives its length */
        s->first = 0;
        return request_slice(s, 0) < 0 ? exchange_error_response(x, 500) : OUTCOME_PENDING;
    }
    unlock_metadata(s);
    s->begun = true;
    s->p->stage = GATEWAY_DONE;
    if (!s->child->response.body || pass_on(s) < 0) {
        release_child(s);
        return exchange_error_response(x, status < 300 ? 500 : status);
    }
    return OUTCOME_RESPONDED;
}

static void child_responded(struct exchange *child, void *owner)
{
    struct slice_request *s = owner;
    struct slice_body *waiting = s->waiting;

    if (child != s->child) {
        cached_child_release(child);
        return;
    }
    s->has_response = true;
    s->waiting = NULL;
    if (!s->begun)
        gateway_resume(s->p, use_child_response(s));
    else if (waiting)
        waiting->body.wake(waiting->body.owner);
}

/* Parses the metadata of an entry into this arena. False: malformed, or for another slice size. */
static bool read_metadata(struct slice_request *s, const struct stored_response *stored)
{
    struct str place = headers_value(&stored->headers, STR("Content-Range"));
    struct str size = str_cut(&place, '/');
    uint64_t slice;

    if (!place.data || str_to_u64(size, &slice) < 0 || slice != size_of(s) ||
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

static enum outcome slice_begin(struct gateway_request *p)
{
    struct slice_request *s = arena_zalloc(&p->x->arena, 1, sizeof(*s));

    if (!s)
        return exchange_error_response(p->x, 500);
    p->slice_request = s;
    s->p = p;
    s->key = cached_metadata_key(p, cached_of(p)->primary);
    if (!s->key.data)
        return exchange_error_response(p->x, 500);
    cache_store_hash(s->key, &s->origin.hash);
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
    return request_slice(s, s->first) < 0 ? exchange_error_response(p->x, 500) : OUTCOME_PENDING;
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
