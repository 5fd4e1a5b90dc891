/*
 * A growing run of bytes with a cap, owned: what is being assembled (a request
 * head in pieces, a log batch, a generated page).
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include "base/str.h"

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
    size_t max;                     /* 0: no cap */
};

/* Zero-initialised is valid too (no cap). */
void buffer_init(struct buffer *buffer, size_t max);
/* Frees the bytes; the buffer is empty and usable again. */
void buffer_finish(struct buffer *buffer);

/* Room for `more` bytes past length. 0, -ENOMEM, or -ENOBUFS past max. */
MUST_CHECK int buffer_reserve(struct buffer *buffer, size_t more);
/* Each appends whole or not at all: 0, -ENOMEM or -ENOBUFS. */
MUST_CHECK int buffer_append(struct buffer *buffer, struct str bytes);
MUST_CHECK int buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
/* Drops the first `count` bytes and moves the rest down. */
void buffer_consume(struct buffer *buffer, size_t count);

/* A view of what is in it, until it is changed. */
static inline struct str buffer_str(const struct buffer *buffer)
{
    return (struct str){buffer->data, buffer->length};
}

#endif
