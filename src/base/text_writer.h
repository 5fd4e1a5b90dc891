/*
 * Builds a text from pieces: a callback appends them twice, first to measure the length, then into memory of exactly
 * that length. Repeated concatenation of n pieces would copy each piece up to n times.
 */
#ifndef BASE_TEXT_WRITER_H
#define BASE_TEXT_WRITER_H

#include "base/arena.h"

struct text_writer {
    char *data;                     /* NULL while the pieces are measured */
    size_t room;                    /* bytes at `data` */
    size_t length;                  /* bytes written so far */
    bool failed;                    /* longer than SIZE_MAX, or longer than measured */
};

/* Appends a copy of `piece`. */
void text_append(struct text_writer *writer, struct str piece);
/* The same after `separator`, except for the first piece; clears *first. */
void text_append_next(struct text_writer *writer, bool *first, struct str separator, struct str piece);

/*
 * The text that `write` produces, in the arena, with a terminating NUL that its length does not count. `write` is
 * called twice and must append the same pieces both times. data is NULL when out of memory.
 */
struct str arena_write(struct arena *arena, void (*write)(struct text_writer *writer, const void *subject),
                       const void *subject);

/*
 * Concatenates texts with `separator` between them. data is NULL when out of memory, or where the data of one part
 * is NULL.
 */
struct str arena_join_with(struct arena *arena, const struct str *parts, size_t count, struct str separator);

#endif
