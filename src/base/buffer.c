/*
 * The growing buffer: doubles its capacity, never past `max`.
 */
#include "base/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CAPACITY_MIN 64

void buffer_init(struct buffer *buffer, size_t max)
{
    *buffer = (struct buffer){.max = max};
}

void buffer_finish(struct buffer *buffer)
{
    free(buffer->data);
    buffer_init(buffer, buffer->max);
}

int buffer_reserve(struct buffer *buffer, size_t more)
{
    size_t needed;
    size_t capacity = buffer->capacity ? buffer->capacity : CAPACITY_MIN;
    char *grown;

    if (__builtin_add_overflow(buffer->length, more, &needed))
        return -ENOBUFS;
    if (buffer->max && needed > buffer->max)
        return -ENOBUFS;
    if (needed <= buffer->capacity)
        return 0;
    while (capacity < needed) {
        if (__builtin_mul_overflow(capacity, 2u, &capacity))
            return -ENOMEM;
    }
    if (buffer->max && capacity > buffer->max)
        capacity = buffer->max;
    grown = realloc(buffer->data, capacity);
    if (!grown)
        return -ENOMEM;
    buffer->data = grown;
    buffer->capacity = capacity;
    return 0;
}

int buffer_append(struct buffer *buffer, struct str bytes)
{
    int error = buffer_reserve(buffer, bytes.length);

    if (error < 0)
        return error;
    if (bytes.length)
        memcpy(buffer->data + buffer->length, bytes.data, bytes.length);
    buffer->length += bytes.length;
    return 0;
}

/*
 * vsnprintf terminates its output with a NUL, for which the cap leaves no room: a long text is formatted separately.
 */
PRINTF_LIKE(2, 0)
static int append_formatted(struct buffer *buffer, const char *format, va_list args, size_t length)
{
    char on_stack[512];
    char *text = on_stack;
    int error;

    if (length >= sizeof(on_stack)) {
        text = malloc(length + 1);
        if (!text)
            return -ENOMEM;
    }
    vsnprintf(text, length + 1, format, args);
    error = buffer_append(buffer, str_of(text, length));
    if (text != on_stack)
        free(text);
    return error;
}

int buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;
    va_list again;
    int result;

    va_start(args, format);
    va_copy(again, args);
    result = vsnprintf(NULL, 0, format, args);
    if (result >= 0)
        result = append_formatted(buffer, format, again, (size_t)result);
    else
        result = -ENOMEM;
    va_end(again);
    va_end(args);
    return result;
}

void buffer_consume(struct buffer *buffer, size_t count)
{
    if (count > buffer->length)
        count = buffer->length;
    buffer->length -= count;
    if (buffer->length && count)
        memmove(buffer->data, buffer->data + count, buffer->length);
}
