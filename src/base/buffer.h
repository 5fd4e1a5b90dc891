/*
 * A byte buffer that owns its memory and grows up to a cap: for a request head received in pieces, a batch of log
 * lines, a generated page.
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

/* Initialises an empty buffer. A zeroed buffer is valid, too, and has no cap. */
void buffer_init(struct buffer *buffer, size_t max);
/* Frees the memory; the buffer is empty and usable again. */
void buffer_finish(struct buffer *buffer);

/* Makes room for `more` bytes past length. 0, -ENOMEM, or -ENOBUFS past max. */
MUST_CHECK int buffer_reserve(struct buffer *buffer, size_t more);
/* Appends all bytes or none. 0, -ENOMEM or -ENOBUFS. */
MUST_CHECK int buffer_append(struct buffer *buffer, struct str bytes);
MUST_CHECK int buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
/* Removes the first `count` bytes and moves the rest to the front. */
void buffer_consume(struct buffer *buffer, size_t count);

/* A view of the contents, valid until the next change. */
static inline struct str buffer_str(const struct buffer *buffer)
{
    return (struct str){buffer->data, buffer->length};
}

#endif
