/*
 * The basic bodies: empty, bytes, concatenation.
 */
#include "http/body.h"

#include "base/list.h"
#include "base/saturate.h"

void body_close(struct body **body)
{
    struct body *closing = *body;

    *body = NULL;
    if (closing)
        closing->ops->close(closing);
}

static int empty_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    return 0;
}

static void empty_close(struct body *body)
{
}

struct body *body_empty(void)
{
    static const struct body_ops ops = {.next = empty_next, .close = empty_close};
    /* Shared by all exchanges: `wake` and `owner`, which each of them sets, are never used. */
    static struct body body = {.ops = &ops};

    return &body;
}

struct bytes_body {
    struct body body;
    struct str rest;
    void (*released)(void *resource);
    void *resource;
};

static int bytes_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct bytes_body *bytes = container_of(body, struct bytes_body, body);

    if (bytes->rest.length == 0)
        return 0;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_slice(bytes->rest, 0, room)};
    bytes->rest = str_skip(bytes->rest, room);
    body->length = bytes->rest.length;
    return 1;
}

static void bytes_close(struct body *body)
{
    struct bytes_body *bytes = container_of(body, struct bytes_body, body);

    if (bytes->released)
        bytes->released(bytes->resource);
}

struct body *body_referenced(struct arena *arena, struct str bytes, void (*released)(void *resource), void *resource)
{
    static const struct body_ops ops = {.next = bytes_next, .close = bytes_close};
    struct bytes_body *made = arena_alloc(arena, sizeof(*made));

    if (!made)
        return NULL;
    *made = (struct bytes_body){
        .body = {.ops = &ops, .length = bytes.length}, .rest = bytes, .released = released, .resource = resource};
    return &made->body;
}

struct body *body_bytes(struct arena *arena, struct str bytes)
{
    return body_referenced(arena, bytes, NULL, NULL);
}

struct concat_body {
    struct body body;
    unsigned current;
    unsigned count;
    struct body *parts[];
};

static void concat_wake(void *owner)
{
    struct concat_body *concat = owner;

    if (concat->body.wake)
        concat->body.wake(concat->body.owner);
}

static int concat_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct concat_body *concat = container_of(body, struct concat_body, body);

    while (concat->current < concat->count) {
        struct body *part = concat->parts[concat->current];
        int result;

        part->wake = concat_wake;
        part->owner = concat;
        result = part->ops->next(part, accept, room, out);
        if (result != 0) {
            if (result > 0 && body->length != BODY_LENGTH_UNKNOWN)
                body->length = u64_sub_sat(body->length, chunk_length(out));
            return result;
        }
        body_close(&concat->parts[concat->current++]);
    }
    return 0;
}

static void concat_close(struct body *body)
{
    struct concat_body *concat = container_of(body, struct concat_body, body);

    for (unsigned i = concat->current; i < concat->count; i++)
        body_close(&concat->parts[i]);
}

static uint64_t length_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;

    if (a == BODY_LENGTH_UNKNOWN || b == BODY_LENGTH_UNKNOWN || __builtin_add_overflow(a, b, &sum))
        return BODY_LENGTH_UNKNOWN;
    return sum;
}

struct body *body_concat(struct arena *arena, struct body **parts, unsigned count)
{
    static const struct body_ops ops = {.next = concat_next, .close = concat_close};
    struct concat_body *concat = arena_alloc(arena, sizeof(*concat) + count * sizeof(parts[0]));

    if (!concat)
        return NULL;
    *concat = (struct concat_body){.body = {.ops = &ops}, .count = count};
    for (unsigned i = 0; i < count; i++) {
        concat->parts[i] = parts[i];
        concat->body.length = length_sum(concat->body.length, parts[i]->length);
    }
    return &concat->body;
}
