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
    uint64_t size = slice_size(slice->of), first = slice->index * size;
    uint64_t last = first + size - 1;

    if (slice->of->known && last >= slice->of->metadata.total)
        last = u64_sub_sat(slice->of->metadata.total, 1);
    return (struct range){first, last};
}

int slice_copy_fields(struct slice_request *s, const struct headers *from)
{
    struct slice_metadata *metadata = &s->metadata;
    struct arena *arena = &s->p->x->arena;

    metadata->headers.count = 0;
    if (headers_copy(&metadata->headers, arena, from) < 0)
        return -ENOMEM;
    headers_remove(&metadata->headers, STR("Content-Range"));
    headers_remove(&metadata->headers, STR("Content-Length"));
    headers_remove(&metadata->headers, STR("Accept-Ranges"));
    stored_response_validators(&metadata->headers, metadata->stored.received_s, clock_wall_s(exchange_clock(s->p->x)),
                               &metadata->validators);
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
static bool is_strong(const struct slice_metadata *metadata)
{
    if (metadata->validators.etag.length > 0 && !str_starts(metadata->validators.etag, STR("W/")))
        return true;
    return metadata->validators.modified >= 0 &&
           metadata->stored.received_s - metadata->validators.modified >= STRONG_AFTER_S;
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

/* True if stale metadata equals the new one: it and its slices remain valid. */
static bool metadata_still_matches(const struct slice_request *s, const struct headers *headers, uint64_t total)
{
    return s->stale && s->metadata.total == total && same_version(&s->metadata.headers, headers);
}

/* Stores the metadata. The slice of `owner` is delayed until it is stored. 0 or -ENOMEM. */
static int store_metadata(struct slice_request *s, bool renewed, struct cached *owner)
{
    struct arena *arena = &s->p->x->arena;
    struct cache_store *store = cached_of(s->p)->store;
    struct headers fields = {0};
    struct cache_fill *fill;
    struct str head, place = arena_printf(arena, "%llu/%llu", (unsigned long long)s->p->conf->cache.slice,
                                          (unsigned long long)s->metadata.total);
    int error = place.data ? 0 : -ENOMEM;

    for (unsigned i = 0; i < s->metadata.headers.count && error == 0; i++)
        error = headers_add(&fields, arena, s->metadata.headers.items[i].name, s->metadata.headers.items[i].value);
    if (error == 0)
        error = headers_add(&fields, arena, STR("Content-Range"), place);
    head = error == 0 ? stored_response_write(&s->metadata.stored, STR(""), &fields, arena) : (struct str){NULL, 0};
    if (!head.data)
        return -ENOMEM;
    if (renewed && s->stale->updates < LIMIT_CACHE_UPDATES) {
        cached_update_head(owner, s->stale, head, &s->origin.hash, s->fill_lock);
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

/* Sets and stores the metadata. 1; 0: slicing or storing is impossible; or -ENOMEM. */
static int update_metadata(struct gateway_request *child, struct received_response *received,
                        struct stored_metadata *metadata, uint64_t total)
{
    struct slice_request *s = child->slice.of;
    uint64_t salt = s->metadata.stored.salt;
    struct headers fields = {0};
    bool renewed;
    int result;

    received->status = 200; /* the complete representation is stored, in slices */
    result = cached_may_store(child, received, metadata);
    if (result <= 0 || headers_find(received->headers, STR("Vary")))
        return result < 0 ? result : 0;
    if (gateway_end_to_end_fields(child, &child->reply.headers, &fields) < 0 ||
        stored_response_date(&fields, &child->x->arena, metadata->received_s) < 0)
        return -ENOMEM;
    renewed = metadata_still_matches(s, &fields, total);
    s->metadata.total = total;
    s->metadata.stored = *metadata;
    if (slice_copy_fields(s, &fields) < 0)
        return -ENOMEM;
    if (!is_strong(&s->metadata))
        return 0;
    s->metadata.stored.salt = renewed ? salt : cache_zone_sequence(cache_store_conf(cached_of(child)->store)->zone);
    result = store_metadata(s, renewed, cached_of(child));
    s->known = result == 0;
    if (renewed && result == 0)
        s->p->cached->status = CACHED_REVALIDATED;
    return result < 0 ? result : 1;
}

/* Aborts the response, because the version has changed, and removes the metadata: the next request sets it again. */
static void version_changed(struct gateway_request *child)
{
    struct slice_request *s = child->slice.of;

    s->error = -EPROTO;
    (void)cache_store_remove(cached_of(s->p)->store, s->key);
    exchange_log_error(
        child->x, LOG_ERROR,
        "slice response differs from the previous slices: the response is aborted, upstream: \"%s://" STR_FMT
            STR_FMT "\"",
        gateway_scheme(child), STR_ARG(child->attempt->server), STR_ARG(child->sent.uri));
}

int slice_response_head(struct gateway_request *child, struct received_response *received,
                        struct stored_metadata *metadata)
{
    struct slice_request *s = child->slice.of;
    uint64_t total;
    bool piece = is_piece(child, &total);
    int result;

    received->request_control = &cached_of(s->p)->request_control;
    if (s->known) {
        if (piece && total == s->metadata.total && same_version(&child->reply.headers, &s->metadata.headers)) {
            metadata->received_s = received->received_s;
            child->slice.fits = true;
            return cached_of(child)->stores;
        }
        version_changed(child);
        return 0;
    }
    if (child->reply.status != 206) /* only a complete response may be stored */
        return child->reply.status == 416 ? 0 : -ENOTSUP;
    result = piece ? update_metadata(child, received, metadata, total) : 0;
    s->plain = result == 0;
    cached_of(s->p)->sliced = !s->plain;
    child->slice.fits = result > 0;
    return result;
}
