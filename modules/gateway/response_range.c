/*
 * `proxy_force_ranges`: the upstream server sends the complete response, and the client gets the requested part. A
 * single range only: several would have to be buffered.
 */
#include "response.h"

#include "http/conditional.h"
#include "http/date.h"
#include "http/range.h"

#include <errno.h>

/* The complete body as it arrives: `skip` bytes are discarded and body.length bytes passed on. */
struct range_body {
    struct body body;
    struct body *inner;
    uint64_t skip;
    bool reads_all;                 /* being stored: the last byte is sent at the end */
    bool has_last;
    char last;
};

static void clip_chunk(struct chunk *chunk, uint64_t max)
{
    if (chunk->kind == CHUNK_FILE && chunk->file.length > max)
        chunk->file.length = max;
    else if (chunk->kind == CHUNK_BYTES && chunk->bytes.length > max)
        chunk->bytes.length = (size_t)max;
}

/* Reads the bytes after the range, then produces the last byte of the range, even if reading them failed. */
static int produce_last_part(struct range_body *selected, size_t room, struct chunk *out)
{
    struct chunk dropped;
    int result;

    do
        result = selected->inner->ops->next(selected->inner, CHUNK_BYTES, room, &dropped);
    while (result == 1);
    if (result == -EAGAIN)
        return result;
    selected->has_last = false;
    selected->body.length = 0;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_of(&selected->last, 1)};
    return 1;
}

/* Keeps the last byte back: after it the session would end the exchange, and reading. False: the chunk is empty now. */
static bool hold_last(struct range_body *selected, struct chunk *chunk)
{
    if (!selected->reads_all || chunk_length(chunk) < selected->body.length)
        return true;
    chunk->bytes.length--;
    selected->last = chunk->bytes.data[chunk->bytes.length];
    selected->has_last = true;
    return chunk->bytes.length > 0;
}

/* Does not accept pipes, since bytes in a pipe cannot be discarded. */
static int ranged_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct range_body *selected = container_of(body, struct range_body, body);
    uint64_t dropped = 0;
    int result = body->length > 0;

    if (selected->reads_all)
        accept = CHUNK_BYTES;
    if (selected->has_last)
        return produce_last_part(selected, room, out);
    while (result == 1) {
        result = selected->inner->ops->next(selected->inner, accept & ~(unsigned)CHUNK_PIPE, room, out);
        if (result != 1)
            return result;
        dropped = chunk_length(out) < selected->skip ? chunk_length(out) : selected->skip;
        selected->skip -= dropped;
        chunk_advance(out, dropped);
        if (chunk_length(out) == 0)
            continue;
        clip_chunk(out, body->length);
        if (!hold_last(selected, out))
            return produce_last_part(selected, room, out);
        body->length -= chunk_length(out);
        break;
    }
    return result;
}

static void ranged_close(struct body *body)
{
    body_close(&container_of(body, struct range_body, body)->inner);
}

static void range_inner_woken(void *owner)
{
    struct range_body *selected = owner;

    selected->body.wake(selected->body.owner);
}

static struct body *wrap_in_range(struct exchange *x, const struct range *range, bool reads_all)
{
    static const struct body_ops ops = {.next = ranged_next, .close = ranged_close};
    struct range_body *selected = arena_zalloc(&x->arena, 1, sizeof(*selected));

    if (!selected)
        return NULL;
    *selected = (struct range_body){.body = {.ops = &ops, .length = range->last - range->first + 1},
                                    .inner = x->response.body,
                                    .skip = range->first,
                                    .reads_all = reads_all};
    selected->inner->wake = range_inner_woken;
    selected->inner->owner = selected;
    return &selected->body;
}

static bool is_stored(const struct gateway_request *p)
{
    return p->cached && p->cached->fill;
}

static bool may_select_range(const struct gateway_request *p)
{
    const struct exchange *x = p->x;

    return (p->conf->force_ranges || is_stored(p)) && x->response.status == 200 &&
           p->incoming.body.length != BODY_LENGTH_UNKNOWN && !p->slice.of && !exchange_is_error_page(x) &&
           !headers_find(&x->response.headers, STR("Content-Range")) && !exchange_needs_whole_body(x);
}

/* Range applies to GET only (RFC 9110 14.2). */
static struct str requested_range(const struct exchange *x)
{
    const struct headers *headers = &x->response.headers;
    struct validators validators = {.etag = headers_value(headers, STR("ETag")), .modified = -1};
    struct str modified = headers_value(headers, STR("Last-Modified"));
    int64_t now_s = clock_wall_s(exchange_clock(x));

    if (modified.data && date_parse(modified, now_s, &validators.modified) < 0)
        validators.modified = -1;
    if (x->request.method != METHOD_GET || !conditional_range_allowed(&x->request, &validators, now_s))
        return (struct str){NULL, 0};
    return headers_value(&x->request.headers, STR("Range"));
}

static int respond_unsatisfiable(struct exchange *x, uint64_t length)
{
    struct str value = arena_printf(&x->arena, "bytes */%llu", (unsigned long long)length);

    (void)exchange_error_response(x, 416); /* closes the body, and with it the upstream request */
    return value.data ? headers_add(&x->response.headers, &x->arena, STR("Content-Range"), value) : -ENOMEM;
}

int gateway_apply_range(struct gateway_request *p)
{
    struct exchange *x = p->x;
    uint64_t length = p->incoming.body.length;
    struct range range;
    struct str value;
    struct body *body;
    int count;

    if (!may_select_range(p))
        return 0;
    if (headers_set(&x->response.headers, &x->arena, STR("Accept-Ranges"), STR("bytes")) < 0)
        return -ENOMEM;
    value = requested_range(x);
    count = value.data ? range_parse(value, length, &range, 1) : 0;
    if (count < 0)
        return respond_unsatisfiable(x, length);
    if (count == 0)
        return 0;
    value = arena_printf(&x->arena, "bytes %llu-%llu/%llu", (unsigned long long)range.first,
                         (unsigned long long)range.last, (unsigned long long)length);
    body = wrap_in_range(x, &range, is_stored(p));
    if (!value.data || !body || headers_set(&x->response.headers, &x->arena, STR("Content-Range"), value) < 0)
        return -ENOMEM;
    x->response.status = 206;
    x->response.body = body;
    return 0;
}
