/*
 * Sets length, validators and fields of the complete response from the first slice, and compares all other slices with
 * them: slices of two versions are never combined.
 */
#include "modules/gateway/slice/slice.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "modules/gateway/fields.h"

#include <errno.h>

#define STRONG_AFTER_S 60 /* RFC 9110 8.8.2.2: a Last-Modified this much older is a strong validator */

struct range slice_range(const struct slice_part *slice)
{
    uint64_t size = slice->of->p->conf->cache.slice, first = slice->index * size;
    uint64_t last = first + size - 1;

    if (slice->of->known && last >= slice->of->facts.total)
        last = u64_sub_sat(slice->of->facts.total, 1);
    return (struct range){first, last};
}

int slice_copy_fields(struct slicing *s, const struct headers *from)
{
    struct slice_facts *facts = &s->facts;
    struct arena *arena = &s->p->x->arena;

    facts->headers.count = 0;
    if (headers_copy(&facts->headers, arena, from) < 0)
        return -ENOMEM;
    headers_remove(&facts->headers, STR("Content-Range"));
    headers_remove(&facts->headers, STR("Content-Length"));
    headers_remove(&facts->headers, STR("Accept-Ranges"));
    stored_response_validators(&facts->headers, facts->metadata.received_s, clock_wall_s(exchange_clock(s->p->x)),
                               &facts->validators);
    return 0;
}

/* True if it is the requested slice of a representation of that length. */
static bool is_piece(const struct gateway_request *child, uint64_t *out_total)
{
    struct range expected = slice_range(&child->slice), got;

    if (child->reply.status != 206 ||
        content_range_parse(headers_value(&child->reply.headers, STR("Content-Range")), &got, out_total) < 0)
        return false;
    if (expected.last >= *out_total)
        expected.last = *out_total - 1;
    return got.first == expected.first && got.last == expected.last &&
           (child->reply.content_length == BODY_LENGTH_UNKNOWN ||
            child->reply.content_length == got.last - got.first + 1);
}

/* True if equal validators imply equal bytes. */
static bool is_strong(const struct slice_facts *facts)
{
    if (facts->validators.etag.length > 0 && !str_starts(facts->validators.etag, STR("W/")))
        return true;
    return facts->validators.modified >= 0 && facts->metadata.received_s - facts->validators.modified >= STRONG_AFTER_S;
}

static bool same_field(const struct headers *a, const struct headers *b, struct str name)
{
    struct str one = headers_value(a, name), other = headers_value(b, name);

    return (one.data != NULL) == (other.data != NULL) && (!one.data || str_equal(one, other));
}

static bool same_version(const struct headers *a, const struct headers *b)
{
    return same_field(a, b, STR("ETag")) && same_field(a, b, STR("Last-Modified"));
}

/* True if stale facts equal the new ones: the facts and their slices remain valid. */
static bool facts_still_match(const struct slicing *s, const struct headers *headers, uint64_t total)
{
    return s->stale && s->facts.total == total && same_version(&s->facts.headers, headers);
}

/* Stores the facts. The slice of `owner` is delayed until they are stored. 0 or -ENOMEM. */
static int store_facts(struct slicing *s, bool renewed, struct cached *owner)
{
    struct arena *arena = &s->p->x->arena;
    struct cache_store *store = cached_of(s->p)->store;
    struct headers fields = {0};
    struct cache_fill *fill;
    struct str head, place = arena_printf(arena, "%llu/%llu", (unsigned long long)s->p->conf->cache.slice,
                                          (unsigned long long)s->facts.total);
    int error = place.data ? 0 : -ENOMEM;

    for (unsigned i = 0; i < s->facts.headers.count && error == 0; i++)
        error = headers_add(&fields, arena, s->facts.headers.items[i].name, s->facts.headers.items[i].value);
    if (error == 0)
        error = headers_add(&fields, arena, STR("Content-Range"), place);
    head = error == 0 ? stored_response_write(&s->facts.metadata, STR(""), &fields, arena) : (struct str){NULL, 0};
    if (!head.data)
        return -ENOMEM;
    if (renewed && s->stale->updates < LIMIT_CACHE_UPDATES) {
        cached_renew(owner, s->stale, head, &s->origin.hash, s->fill_lock);
        s->fill_lock = 0;
        return 0;
    }
    fill = cache_fill_begin(store, s->key, &s->origin, s->fill_lock);
    if (!fill)
        return -ENOMEM;
    s->fill_lock = 0;
    cached_publish(owner, fill);
    cache_fill_end(fill, head);
    return 0;
}

/* Sets and stores the facts. 1; 0: slicing or storing is impossible; or -ENOMEM. */
static int update_facts(struct gateway_request *child, struct arrival *arrival, struct stored_metadata *metadata,
                        uint64_t total)
{
    struct slicing *s = child->slice.of;
    uint64_t salt = s->facts.metadata.salt;
    struct headers fields = {0};
    bool renewed;
    int result;

    arrival->status = 200; /* the complete representation is stored, in slices */
    result = cached_may_store(child, arrival, metadata);
    if (result <= 0 || headers_find(arrival->headers, STR("Vary")))
        return result < 0 ? result : 0;
    if (gateway_end_to_end_fields(child, &child->reply.headers, &fields) < 0 ||
        stored_response_date(&fields, &child->x->arena, metadata->received_s) < 0)
        return -ENOMEM;
    renewed = facts_still_match(s, &fields, total);
    s->facts.total = total;
    s->facts.metadata = *metadata;
    if (slice_copy_fields(s, &fields) < 0)
        return -ENOMEM;
    if (!is_strong(&s->facts))
        return 0;
    s->facts.metadata.salt = renewed ? salt : cache_zone_sequence(cache_store_conf(cached_of(child)->store)->zone);
    result = store_facts(s, renewed, cached_of(child));
    s->known = result == 0;
    if (renewed && result == 0)
        s->p->cached->status = CACHED_REVALIDATED;
    return result < 0 ? result : 1;
}

/* Aborts the response, because the version has changed, and removes the facts: the next request sets them again. */
static void version_changed(struct gateway_request *child)
{
    struct slicing *s = child->slice.of;

    s->error = -EPROTO;
    (void)cache_store_remove(cached_of(s->p)->store, s->key);
    exchange_log_error(
        child->x, LOG_ERROR,
        "slice response differs from the previous slices: the response is aborted, upstream: \"%s://" STR_FMT
            STR_FMT "\"",
        gateway_scheme(child), STR_ARG(child->attempt->server), STR_ARG(child->sent.uri));
}

int slice_response_head(struct gateway_request *child, struct arrival *arrival, struct stored_metadata *metadata)
{
    struct slicing *s = child->slice.of;
    uint64_t total;
    bool piece = is_piece(child, &total);
    int result;

    arrival->request_control = &cached_of(s->p)->request_control;
    if (s->known) {
        if (piece && total == s->facts.total && same_version(&child->reply.headers, &s->facts.headers)) {
            metadata->received_s = arrival->received_s;
            child->slice.fits = true;
            return cached_of(child)->stores;
        }
        version_changed(child);
        return 0;
    }
    if (child->reply.status != 206) /* only a complete response may be stored */
        return child->reply.status == 416 ? 0 : -ENOTSUP;
    result = piece ? update_facts(child, arrival, metadata, total) : 0;
    s->plain = result == 0;
    cached_of(s->p)->sliced = !s->plain;
    child->slice.fits = result > 0;
    return result;
}
