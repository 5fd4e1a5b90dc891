/*
 * Incomplete entries: their lookup if no complete response is stored, and responses to ranges inside their span.
 */
#include "modules/gateway/cache/response_cache.h"

#include "modules/gateway/cache/partial.h"
#include "server/representation.h"

#include <errno.h>

/* True if the client requests a single range, and no module transforms the body. */
static bool requests_single_range(const struct exchange *x)
{
    const struct header *field = headers_find(&x->request.headers, STR("Range"));
    struct range range;

    return field && !headers_next(&x->request.headers, STR("Range"), field) && str_find(field->value, ',') < 0 &&
           range_parse(field->value, INT64_MAX, &range, 1) == 1 && !exchange_needs_whole_body(x) &&
           !exchange_is_error_page(x);
}

int cached_partial_begin(struct cached *cached)
{
    const struct gateway_request *p = cached->p;
    const struct gateway_cache_conf *conf = &p->conf->cache;

    if (conf->slice > 0 || p->conf->method || p->conf->set_body ||
        p->x->request.method != METHOD_GET)
        return 0;
    cached->partial = arena_zalloc(&p->x->arena, 1, sizeof(*cached->partial));
    if (!cached->partial)
        return -ENOMEM;
    cached->partial->takes_range = requests_single_range(p->x) &&
                                   (!conf->max_range_offset.set || cached_exceeds_range_offset(p));
    return 0;
}

static void release_entry(struct cached_partial *partial)
{
    cache_entry_unref(partial->entry);
    partial->entry = NULL;
    partial->request = PARTIAL_WHOLE;
}

void cached_partial_reset(struct cached *cached)
{
    struct cached_partial *partial = cached->partial;

    if (cached_is_partial(cached, cached->stale)) {
        cache_entry_unref(cached->stale);
        cached->stale = NULL;
    }
    release_entry(partial);
    partial->looked_up = false;
}

void cached_partial_remove(struct cached *cached)
{
    struct cached_partial *partial = cached->partial;

    if (partial->entry)
        cache_store_remove_entry(cached->store, partial->entry);
    release_entry(partial);
}

void cached_partial_end(struct cached *cached)
{
    cached_partial_store_interrupted(cached);
    cache_lookup_cancel(&cached->partial->lookup);
    release_entry(cached->partial);
}

/* Sets `requested`, `whole` and `satisfiable` from the Range of the client. */
static void find_requested_range(struct cached *cached, const struct stored_response *stored)
{
    struct cached_partial *partial = cached->partial;
    const struct exchange *x = cached->p->x;
    struct str value = headers_value(&x->request.headers, STR("Range"));
    int count = 0;

    if (requests_single_range(x) && conditional_range_allowed(&x->request, &stored->validators, cached_now_s(cached)))
        count = range_parse(value, partial->cached_part.total, &partial->requested, 1);
    partial->satisfiable = count >= 0;
    partial->whole = count == 0;
    if (count == 0)
        partial->requested = (struct range){0, partial->cached_part.total - 1};
}

static bool is_covered(const struct cached_partial *partial)
{
    const struct range *cached_part = &partial->cached_part.span;

    return partial->satisfiable && !partial->whole && partial->requested.first >= cached_part->first &&
           partial->requested.last <= cached_part->last;
}

/* Parses the span from the entry's head. False: not an incomplete entry. */
static bool read_entry(struct cached *cached, const struct cache_entry *entry, const struct stored_response *stored)
{
    struct cached_partial *partial = cached->partial;
    struct str value = headers_value(&stored->headers, STR("Content-Range"));
    struct partial_content cached_part;

    if (stored->metadata.status != 206 || !value.data ||
        content_range_parse(value, &cached_part.span, &cached_part.total) < 0 ||
        cached_part.span.last - cached_part.span.first + 1 != entry->body_length ||
        !partial_validated(&stored->headers, stored->metadata.received_s, cached_now_s(cached)))
        return false;
    partial->cached_part = cached_part;
    return true;
}

static enum outcome partial_outcome(struct cached *cached, struct cache_entry *entry)
{
    struct cached_partial *partial = cached->partial;
    const struct stored_response *stored = entry ? stored_response_of(entry, cached_now_s(cached)) : NULL;

    if (!stored || !read_entry(cached, entry, stored)) {
        cache_entry_unref(entry);
        return partial->done(cached, NULL);
    }
    partial->entry = entry;
    find_requested_range(cached, stored);
    if (is_covered(partial))
        return partial->done(cached, cache_entry_ref(entry));
    return partial->done(cached, NULL);
}

static void entry_found(struct cache_lookup *lookup, struct cache_entry *entry)
{
    struct cached_partial *partial = container_of(lookup, struct cached_partial, lookup);

    gateway_resume(partial->cached->p, partial_outcome(partial->cached, entry));
}

enum outcome cached_partial_lookup(struct cached *cached,
                                enum outcome (*done)(struct cached *cached, struct cache_entry *entry))
{
    struct cached_partial *partial = cached->partial;
    struct cache_entry *entry;
    bool pending;

    partial->looked_up = true;
    partial->done = done;
    partial->cached = cached;
    partial->key = cached_partial_key(cached->p, cached->key);
    if (!partial->key.data)
        return exchange_error_response(cached->p->x, 500);
    partial->lookup.found = entry_found;
    entry = cache_store_peek(cached->store, &partial->lookup, partial->key, &pending);
    return pending ? OUTCOME_PENDING : partial_outcome(cached, entry);
}

static void release_referenced(void *resource)
{
    cache_entry_unref(resource);
}

struct body *cached_partial_body(struct cached *cached, uint64_t at, uint64_t length)
{
    const struct cached_partial *partial = cached->partial;
    const struct range *cached_part = &partial->cached_part.span;
    struct exchange *x = cached->p->x;
    struct cache_entry *entry = partial->entry;
    struct body *body;

    if (!entry || length == 0 || at < cached_part->first || at > cached_part->last ||
        length - 1 > cached_part->last - at)
        return NULL;
    at -= cached_part->first;
    if (entry->content.data) {
        body = body_referenced(&x->arena, str_of(entry->content.data + at, (size_t)length), release_referenced, entry);
    } else {
        body = body_file(&x->arena, entry->fd, (int64_t)at, length, release_referenced, entry);
        if (body)
            body_file_read_with(body, worker_reader(exchange_worker(x)));
    }
    if (body)
        cache_entry_ref(entry);
    return body;
}

static struct body *span_body(struct arena *arena, void *resource, uint64_t at, uint64_t length)
{
    return cached_partial_body(resource, at, length);
}

void cached_partial_represent(struct cached *cached, struct representation *whole)
{
    headers_remove(&cached->p->x->response.headers, STR("Content-Range"));
    whole->size = cached->partial->cached_part.total;
    whole->max_ranges = 1;
    whole->span = span_body;
    whole->resource = cached;
}
