/*
 * Bytes of a cached file as a body: from memory where the cache holds the file whole,
 * else a span of the descriptor, which the wire sends as it likes.
 */
#include "static.h"

struct cached_body {
    struct body body;
    struct str rest;
    struct file_entry *entry; /* referenced: its content is lent */
};

static int cached_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct cached_body *cached = (struct cached_body *)body;
    size_t length = cached->rest.length < room ? cached->rest.length : room;

    if (length == 0)
        return 0;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = str_of(cached->rest.data, length)};
    cached->rest = str_skip(cached->rest, length);
    body->length -= length;
    return 1;
}

static void cached_close(struct body *body)
{
    struct cached_body *cached = (struct cached_body *)body;

    file_entry_unref(cached->entry);
    cached->entry = NULL;
}

static const struct body_ops cached_ops = {cached_next, cached_close};

static void span_released(void *held)
{
    file_entry_unref(held);
}

struct body *static_body(struct arena *arena, struct file_entry *entry, uint64_t at, uint64_t length)
{
    struct cached_body *cached;

    if (!entry->content.data) {
        struct body *span = body_file(arena, entry->fd, (int64_t)at, length, span_released, entry);

        if (span)
            file_entry_ref(entry);
        return span;
    }
    cached = arena_zalloc(arena, 1, sizeof(*cached));
    if (!cached)
        return NULL;
    cached->body.ops = &cached_ops;
    cached->body.length = length;
    cached->rest = str_of(entry->content.data + at, (size_t)length);
    cached->entry = file_entry_ref(entry);
    return &cached->body;
}
