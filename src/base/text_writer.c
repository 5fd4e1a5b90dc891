/*
 * Two passes over the pieces: lengths, then bytes. If the second pass appends another number of bytes than the first,
 * the result is an error; nothing is written past the memory.
 */
#include "base/text_writer.h"

void text_append(struct text_writer *writer, struct str piece)
{
    size_t end;

    if (__builtin_add_overflow(writer->length, piece.length, &end) || (writer->data && end > writer->room)) {
        writer->failed = true;
        return;
    }
    if (writer->data && piece.length)
        memcpy(writer->data + writer->length, piece.data, piece.length);
    writer->length = end;
}

void text_append_next(struct text_writer *writer, bool *first, struct str separator, struct str piece)
{
    if (!*first)
        text_append(writer, separator);
    *first = false;
    text_append(writer, piece);
}

struct str arena_write(struct arena *arena, void (*write)(struct text_writer *writer, const void *subject),
                       const void *subject)
{
    struct text_writer measured = {0};
    struct text_writer written = {0};

    write(&measured, subject);
    if (measured.failed || measured.length == SIZE_MAX)
        return (struct str){NULL, 0};
    written.data = arena_alloc(arena, measured.length + 1);
    written.room = measured.length;
    if (!written.data)
        return (struct str){NULL, 0};
    write(&written, subject);
    if (written.failed || written.length != measured.length)
        return (struct str){NULL, 0};
    written.data[written.length] = '\0';
    return str_of(written.data, written.length);
}

struct parts {
    const struct str *items;
    size_t count;
    struct str separator;
};

static void write_parts(struct text_writer *writer, const void *subject)
{
    const struct parts *parts = subject;
    bool first = true;

    for (size_t i = 0; i < parts->count; i++) {
        writer->failed = writer->failed || !parts->items[i].data;
        text_append_next(writer, &first, parts->separator, parts->items[i]);
    }
}

struct str arena_join_with(struct arena *arena, const struct str *parts, size_t count, struct str separator)
{
    return arena_write(arena, write_parts, &(struct parts){parts, count, separator});
}
