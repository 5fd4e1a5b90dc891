/*
 * The upstream request if a span is stored or a range is requested, and the check that the response has the version of
 * the stored span: spans of two versions are never combined.
 */
#include "modules/gateway/cache/response_cache.h"

#include "base/limits.h"
#include "modules/gateway/cache/partial.h"
#include "modules/gateway/fields.h"

#include <errno.h>

/* Sets `missing`. False: the missing bytes are not a single range directly before or after the span. */
static bool find_missing(struct cached_partial *partial)
{
    const struct range cached_part = partial->cached_part.span, requested = partial->requested;
    bool is_behind = requested.first >= cached_part.first && requested.first <= cached_part.last + 1 &&
                     requested.last > cached_part.last;
    bool is_before = requested.first < cached_part.first && requested.last >= cached_part.first - 1 &&
                     requested.last <= cached_part.last;

    if (is_behind)
        partial->missing = (struct range){cached_part.last + 1, requested.last};
    else if (is_before)
        partial->missing = (struct range){requested.first, cached_part.first - 1};
    return is_behind || is_before;
}

static enum partial_request choose_request(struct cached *cached)
{
    struct cached_partial *partial = cached->partial;

    if (cached_is_partial(cached, cached->stale))
        return PARTIAL_COVERED;
    if (cached->stale) /* a complete response */
        return PARTIAL_WHOLE;
    if (partial->entry && partial->satisfiable && find_missing(partial))
        return PARTIAL_MISSING;
    return partial->takes_range ? PARTIAL_RANGE : PARTIAL_WHOLE;
}

bool cached_partial_passes(struct cached *cached)
{
    struct cached_partial *partial = cached->partial;

    partial->request = choose_request(cached);
    if (partial->request == PARTIAL_WHOLE && cached->stale && cached_exceeds_range_offset(cached->p))
        cached->stores = false; /* a range is requested; a stored complete response is not replaced */
    return partial->request == PARTIAL_RANGE || !cached->stores;
}

static int copy_field(struct cached *cached, struct headers *fields, struct str name)
{
    struct exchange *x = cached->p->x;
    struct str value = headers_value(&x->request.headers, name);

    return value.data ? headers_add(fields, &x->arena, name, value) : 0;
}

int cached_partial_fields(struct cached *cached, struct headers *fields)
{
    struct cached_partial *partial = cached->partial;
    struct arena *arena = &cached->p->x->arena;
    const struct stored_response *stored;
    struct str range, validator;

    if (partial->request == PARTIAL_WHOLE)
        return 0;
    if (partial->request == PARTIAL_COVERED) {
        if (copy_field(cached, fields, STR("Range")) < 0 || copy_field(cached, fields, STR("If-Range")) < 0)
            return -ENOMEM;
        return 0;
    }
    stored = partial->entry->parsed;
    validator = stored->validators.etag.length > 0 ? stored->validators.etag
                                                   : headers_value(&stored->headers, STR("Last-Modified"));
    range = arena_printf(arena, "bytes=%llu-%llu", (unsigned long long)partial->missing.first,
                         (unsigned long long)partial->missing.last);
    validator = arena_copy(arena, validator);
    if (!range.data || !validator.data || headers_add(fields, arena, STR("Range"), range) < 0 ||
        headers_add(fields, arena, STR("If-Range"), validator) < 0)
        return -ENOMEM;
    return 1;
}

/* True if the response has the requested bytes of the stored version. */
static bool is_missing_part(const struct cached *cached)
{
    const struct cached_partial *partial = cached->partial;
    const struct stored_response *stored = partial->entry->parsed;
    struct partial_content content;

    return cached->p->reply.status == 206 && partial_content_of(cached->p, &content) == 0 &&
           content.total == partial->cached_part.total && content.span.first == partial->missing.first &&
           content.span.last == partial->missing.last &&
           partial_same_version(&cached->p->reply.headers, &stored->headers);
}

static bool is_failure(int status)
{
    return status >= 500 || status == 429;
}

/* Handles other responses: the span is removed, unless the server failed or the status does not concern it. */
static int check_other_status(struct cached *cached)
{
    int status = cached->p->reply.status;
    bool about_missing = cached->partial->request == PARTIAL_MISSING;

    if (!about_missing && status == 416) /* concerns the range only */
        return 0;
    if (is_failure(status) || (!about_missing && status == 304))
        return -ENOTSUP;
    cached_partial_remove(cached);
    if (status != 206 && status != 304 && status != 416)
        return -ENOTSUP;
    cached->request_sent_s = cached_now_s(cached);
    return -EAGAIN;
}

/* The span combined with the received bytes. */
static struct partial_content combined_span(const struct cached_partial *partial)
{
    struct partial_content all = partial->cached_part;

    if (partial->missing.first < all.span.first)
        all.span.first = partial->missing.first;
    if (partial->missing.last > all.span.last)
        all.span.last = partial->missing.last;
    return all;
}

/* Sets the fields of a range or of the complete response. */
static int set_fields(struct cached *cached, const struct headers *merged)
{
    struct cached_partial *partial = cached->partial;
    struct arena *arena = &cached->p->x->arena;
    struct str value;

    if (headers_copy(&partial->fields, arena, merged) < 0)
        return -ENOMEM;
    headers_remove(&partial->fields, STR("Content-Range"));
    if (partial->whole)
        return headers_set(&partial->fields, arena, STR("Accept-Ranges"), STR("bytes"));
    value = arena_printf(arena, "bytes %llu-%llu/%llu", (unsigned long long)partial->requested.first,
                         (unsigned long long)partial->requested.last, (unsigned long long)partial->cached_part.total);
    return value.data ? headers_add(&partial->fields, arena, STR("Content-Range"), value) : -ENOMEM;
}

/* Evaluates the freshness rules as for the complete response: status 200. As cached_may_store. */
static int may_keep(struct cached *cached, const struct headers *from, struct received_response *received,
                    struct headers *counting, struct cache_control *control, struct stored_metadata *metadata)
{
    if (cached_policy(cached->p, from, received->received_s, counting, control) < 0)
        return -ENOMEM;
    received->headers = counting;
    received->response_control = control;
    received->status = 200;
    return cached_may_store(cached->p, received, metadata);
}

/* The client gets the stored span and the received bytes; both are stored as one span if allowed. */
static int combine_parts(struct cached *cached, struct received_response *received, struct stored_metadata *metadata)
{
    struct cached_partial *partial = cached->partial;
    const struct stored_response *stored = partial->entry->parsed;
    struct headers merged = {0}, counting = {0};
    struct partial_content all = combined_span(partial);
    struct cache_control control;
    int result = stored_response_merge(cached->p, stored, &merged);

    if (result == 0)
        result = stored_response_date(&merged, &cached->p->x->arena, received->received_s);
    if (result == 0)
        result = set_fields(cached, &merged);
    if (result < 0)
        return result;
    cached->base.combined = true;
    cached->base.status = CACHED_PARTIAL;
    result = may_keep(cached, &merged, received, &counting, &control, metadata);
    if (result > 0)
        return cached_partial_store(cached, &counting, &merged, metadata, &all);
    if (result == 0)
        cache_store_remove_entry(cached->store, partial->entry);
    return result;
}

/* True if the received span is the range that the client requested. */
static bool is_requested_range(const struct gateway_request *p, const struct partial_content *content)
{
    struct str value = headers_value(&p->x->request.headers, STR("Range"));
    struct range range;

    return range_parse(value, content->total, &range, 1) == 1 && range.first == content->span.first &&
           range.last == content->span.last;
}

static uint64_t length_of(const struct range *range)
{
    return range->last - range->first + 1;
}

/* Updates the head of an entry that already has all received bytes. 0 or -ENOMEM. */
static int update_stored_head(struct cached *cached, struct received_response *received,
                              struct stored_metadata *metadata)
{
    struct cached_partial *partial = cached->partial;
    struct headers merged = {0}, counting = {0};
    struct cache_control control;
    struct str head;
    int result = stored_response_merge(cached->p, partial->entry->parsed, &merged);

    if (result == 0)
        result = stored_response_date(&merged, &cached->p->x->arena, received->received_s);
    if (result == 0)
        result = may_keep(cached, &merged, received, &counting, &control, metadata);
    if (result <= 0)
        return result;
    metadata->status = 206;
    head = stored_response_write(metadata, STR(""), &merged, &cached->p->x->arena);
    if (!head.data)
        return -ENOMEM;
    cached_update_head(cached, partial->entry, head, &cached->origin.hash, cached->fill_lock);
    cached->fill_lock = 0;
    return 0;
}

/* Stores a span alone. The longer of two spans of one version that do not touch stays. */
static int store_alone(struct cached *cached, struct received_response *received, struct stored_metadata *metadata,
                       const struct partial_content *content)
{
    struct headers fields = {0}, counting = {0};
    struct cache_control control;
    int result = may_keep(cached, &cached->p->reply.headers, received, &counting, &control, metadata);

    if (result <= 0)
        return result;
    if (gateway_end_to_end_fields(cached->p, &cached->p->reply.headers, &fields) < 0 ||
        stored_response_date(&fields, &cached->p->x->arena, metadata->received_s) < 0)
        return -ENOMEM;
    return cached_partial_store(cached, &counting, &fields, metadata, content);
}

static int update_span(struct cached *cached, struct received_response *received, struct stored_metadata *metadata)
{
    struct cached_partial *partial = cached->partial;
    const struct headers *headers = &cached->p->reply.headers;
    const struct stored_response *stored = partial->entry ? partial->entry->parsed : NULL;
    const struct range *cached_part = &partial->cached_part.span;
    struct partial_content content;

    if (partial_content_of(cached->p, &content) < 0 || !is_requested_range(cached->p, &content) ||
        !partial_validated(headers, received->received_s, received->received_s))
        return 0;
    partial->minimum_length = 0;
    if (stored && (content.total != partial->cached_part.total || !partial_same_version(headers, &stored->headers))) {
        cached_partial_remove(cached);
    } else if (stored && partial->entry->updates < LIMIT_CACHE_UPDATES) {
        if (content.span.first >= cached_part->first && content.span.last <= cached_part->last)
            return update_stored_head(cached, received, metadata);
        partial->minimum_length = length_of(cached_part);
        if (length_of(&content.span) <= partial->minimum_length)
            return 0;
    }
    return store_alone(cached, received, metadata, &content);
}

int cached_partial_head(struct cached *cached, struct received_response *received, struct stored_metadata *metadata)
{
    struct cached_partial *partial = cached->partial;

    if (partial->request == PARTIAL_WHOLE)
        return -ENOTSUP;
    if (partial->request == PARTIAL_MISSING && is_missing_part(cached))
        return combine_parts(cached, received, metadata);
    if (partial->request != PARTIAL_MISSING && cached->p->reply.status == 206)
        return update_span(cached, received, metadata);
    return check_other_status(cached);
}

const struct headers *cached_combined_fields(const struct gateway_request *p, int *out_status)
{
    const struct cached_partial *partial = cached_of(p)->partial;

    *out_status = partial->whole ? 200 : 206;
    return &partial->fields;
}

int cached_combine(struct gateway_request *p)
{
    struct cached_partial *partial = cached_of(p)->partial;
    const struct range *cached_part = &partial->cached_part.span, *requested = &partial->requested;
    bool is_behind = partial->missing.first > cached_part->last;
    uint64_t first = is_behind ? requested->first : cached_part->first;
    uint64_t end = is_behind ? cached_part->last + 1 : requested->last + 1;
    struct body *stored, *parts[2];

    if (first >= end) /* the requested range is adjacent to the span and has none of its bytes */
        return 0;
    stored = cached_partial_body(cached_of(p), first, end - first);
    parts[0] = is_behind ? stored : &p->incoming.body;
    parts[1] = is_behind ? &p->incoming.body : stored;
    p->x->response.body = stored ? body_concat(&p->x->arena, parts, 2) : NULL;
    if (p->x->response.body)
        return 0;
    body_close(&stored);
    p->x->response.body = &p->incoming.body;
    return -ENOMEM;
}
