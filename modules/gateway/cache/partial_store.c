/*
 * Storing a span: alone, combined with the stored span, or after an interruption.
 */
#include "modules/gateway/cache/response_cache.h"

#include "modules/gateway/cache/partial.h"

#include <errno.h>

#define STRONG_AFTER_S 60 /* RFC 9110 8.8.2.2: an older Last-Modified is a strong validator */

static bool is_repeated(const struct headers *headers, struct str name)
{
    const struct header *field = headers_find(headers, name);

    return field && headers_next(headers, name, field);
}

bool partial_validated(const struct headers *headers, int64_t received_s, int64_t now_s)
{
    struct validators validators;

    if (is_repeated(headers, STR("ETag")) || is_repeated(headers, STR("Last-Modified")))
        return false;
    stored_response_validators(headers, received_s, now_s, &validators);
    if (validators.etag.data)
        return etag_is_strong(validators.etag);
    if (validators.dated > received_s)
        validators.dated = received_s;
    return validators.modified >= 0 && validators.dated - validators.modified >= STRONG_AFTER_S;
}

/* True if both have equal values. */
static bool is_same(const struct headers *a, const struct headers *b, struct str name)
{
    struct str one = headers_value(a, name), other = headers_value(b, name);

    return one.data && other.data && str_equal(one, other) && !is_repeated(a, name);
}

bool partial_same_version(const struct headers *received, const struct headers *known)
{
    struct str name = STR("Content-Encoding");

    if (headers_find(received, name) && !is_same(received, known, name)) /* a 206 may omit it */
        return false;
    if (headers_find(received, STR("ETag")) || headers_find(known, STR("ETag")))
        return is_same(received, known, STR("ETag")) && etag_is_strong(headers_value(known, STR("ETag")));
    return is_same(received, known, STR("Last-Modified"));
}

int partial_content_of(const struct gateway_request *p, struct partial_content *out)
{
    const struct headers *headers = &p->reply.headers;
    struct str value = headers_value(headers, STR("Content-Range"));
    struct str type = headers_value(headers, STR("Content-Type"));
    struct partial_content content;

    if (!value.data || is_repeated(headers, STR("Content-Range")) ||
        content_range_parse(value, &content.span, &content.total) < 0)
        return -EINVAL;
    if (p->reply.content_length == BODY_LENGTH_UNKNOWN ||
        p->reply.content_length != content.span.last - content.span.first + 1)
        return -EINVAL;
    if (type.data && str_equal_nocase(str_trim(str_cut(&type, ';')), STR("multipart/byteranges")))
        return -EINVAL;
    *out = content;
    return 0;
}

static bool is_everything(const struct partial_content *content)
{
    return content->span.first == 0 && content->span.last == content->total - 1;
}

/* The head of an entry with this span, with the standard phrase of its status. data NULL: out of memory. */
static struct str write_head(struct cached *cached, const struct partial_content *content)
{
    struct cached_partial *partial = cached->partial;
    struct arena *arena = &cached->p->x->arena;
    struct headers fields = {0};
    struct str value = arena_printf(arena, "bytes %llu-%llu/%llu", (unsigned long long)content->span.first,
                                    (unsigned long long)content->span.last, (unsigned long long)content->total);

    partial->metadata.status = is_everything(content) ? 200 : 206;
    if (!value.data || headers_copy(&fields, arena, &partial->stored) < 0)
        return (struct str){NULL, 0};
    headers_remove(&fields, STR("Content-Range"));
    if (!is_everything(content) && headers_add(&fields, arena, STR("Content-Range"), value) < 0)
        return (struct str){NULL, 0};
    return stored_response_write(&partial->metadata, STR(""), &fields, arena);
}

/* Copies the part of the stored span that the new bytes do not cover. */
static void splice_parts(struct cached *cached)
{
    struct cached_partial *partial = cached->partial;
    uint64_t length = partial->cached_part.span.last - partial->cached_part.span.first + 1;

    partial->splices = true;
    if (partial->missing.first > partial->cached_part.span.last)
        cache_fill_prepend(cached->base.fill, partial->entry, 0, length);
    else
        cache_fill_append(cached->base.fill, partial->entry, 0, length);
}

int cached_partial_store(struct cached *cached, const struct headers *counting, const struct headers *fields,
                         const struct stored_metadata *metadata, const struct partial_content *content)
{
    struct cached_partial *partial = cached->partial;
    int error;

    if (content->span.last - content->span.first >= cached_max_stored_size(cached->p))
        return 0;
    error = cached_find_key(cached, counting);
    if (error < 0)
        return error == -ENOTSUP ? 0 : error;
    partial->key = cached_partial_key(cached->p, cached->key);
    partial->metadata = *metadata;
    partial->stored = *fields;
    cached->head = write_head(cached, content);
    if (!partial->key.data || !cached->head.data)
        return -ENOMEM;
    error = cached_fill_begin(cached, is_everything(content) ? cached->key : partial->key);
    if (error < 0)
        return error;
    partial->storing = *content;
    if (cached->base.combined)
        splice_parts(cached);
    return 0;
}

void cached_partial_record(struct cached *cached, const struct headers *fields, const struct stored_metadata *metadata)
{
    struct cached_partial *partial = cached->partial;
    const struct stored_response *stored = partial->entry ? partial->entry->parsed : NULL;
    uint64_t length = cached->p->reply.content_length;

    partial->key = cached_partial_key(cached->p, cached->key);
    partial->storing.total = 0;
    if (metadata->status != 200 || length == BODY_LENGTH_UNKNOWN || length == 0 || length > INT64_MAX ||
        !partial_validated(fields, metadata->received_s, metadata->received_s))
        return;
    partial->metadata = *metadata;
    partial->stored = *fields;
    partial->storing = (struct partial_content){{0, length - 1}, length};
    if (stored && partial->cached_part.total == length && partial_same_version(fields, &stored->headers))
        partial->minimum_length = partial->cached_part.span.last - partial->cached_part.span.first + 1;
}

bool cached_partial_whole(struct cached *cached)
{
    struct cached_partial *partial = cached->partial;
    uint64_t length = cached->p->reply.content_length;

    if (length != BODY_LENGTH_UNKNOWN && cached->stored_bytes != length)
        return false;
    if ((partial->storing.total == 0 || is_everything(&partial->storing)) && partial->key.data)
        (void)cache_store_discard(cached->store, partial->key);
    return true;
}

/* The received bytes, after the copied span if any. False: not storable, or not longer than `minimum_length`. */
static bool find_prefix(const struct cached *cached, struct partial_content *out)
{
    const struct cached_partial *partial = cached->partial;
    uint64_t length = cached->stored_bytes;

    if (partial->storing.total == 0 || !partial->key.data || cached->stored_bytes == 0)
        return false;
    if (partial->splices && partial->missing.first < partial->cached_part.span.first) /* there is a gap */
        return false;
    if (partial->splices)
        length += partial->cached_part.span.last - partial->cached_part.span.first + 1;
    *out = partial->storing;
    if (length <= partial->minimum_length || length > out->span.last - out->span.first)
        return false;
    out->span.last = out->span.first + length - 1;
    return true;
}

void cached_partial_store_interrupted(struct cached *cached)
{
    struct partial_content content;
    struct str head;

    if (!cached->base.fill || !find_prefix(cached, &content))
        return;
    head = write_head(cached, &content);
    if (!head.data)
        return;
    cache_fill_end_as(cached->base.fill, cached->partial->key, head);
    cached->base.fill = NULL;
}
