/*
 * A text made of pieces: a function writes them twice, first to measure them, then into memory of exactly that length.
 * Joined pair by pair, n pieces would cost memory and time for every prefix of the text, which grows with n * n.
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
void text_put(struct text_writer *writer, struct str piece);
/* The same, with `separator` in front unless `*first`, which becomes false. */
void text_put_next(struct text_writer *writer, bool *first, struct str separator, struct str piece);

/*
 * The text that `write` puts, in the arena, terminated by a NUL that its length does not count. `write` is called twice and puts the
 * same pieces both times. data is NULL when out of memory.
 */
struct str arena_write(struct arena *arena, void (*write)(struct text_writer *writer, const void *subject), const void *subject);

/* Texts one after the other, with `separator` between them; data is NULL when out of memory, or where one of theirs is. */
struct str arena_join_with(struct arena *arena, const struct str *parts, size_t count, struct str separator);

#endif
