/*
 * gzip (RFC 1952) by zlib.
 */
#include "coder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

enum { GZIP_HEAD = 16, WINDOW_MAX = 15, WINDOW_MIN = 9, MEMORY_MAX = 8 };

/* The window need not exceed the input, plus the bytes of deflate's lookahead. */
static int window_for(uint64_t length)
{
    int bits = WINDOW_MAX;

    while (bits > WINDOW_MIN && length < (1u << (bits - 1)) - 262)
        bits--;
    return bits;
}

static void *gzip_open(unsigned level, uint64_t length)
{
    z_stream *stream = calloc(1, sizeof(*stream));
    int bits = window_for(length);
    int memory = MEMORY_MAX - (WINDOW_MAX - bits);

    if (stream &&
        deflateInit2(stream, (int)level, Z_DEFLATED, bits + GZIP_HEAD, memory, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(stream);
        return NULL;
    }
    return stream;
}

static int gzip_step(void *coder, struct str *in, enum coder_flush flush, char *out, size_t room,
                     size_t *out_length)
{
    static const int flushes[] = {
        [CODER_MORE] = Z_NO_FLUSH, [CODER_FLUSH] = Z_SYNC_FLUSH, [CODER_END] = Z_FINISH};
    z_stream *stream = coder;
    struct str part = str_slice(*in, 0, INT_MAX);
    int result;

    stream->next_in = (const unsigned char *)part.data;
    stream->avail_in = (unsigned)part.length;
    stream->next_out = (unsigned char *)out;
    stream->avail_out = room < INT_MAX ? (unsigned)room : INT_MAX;
    room = stream->avail_out;
    result = deflate(stream, flushes[flush]);
    if (result != Z_OK && result != Z_STREAM_END &&
        result != Z_BUF_ERROR) /* Z_BUF_ERROR: no progress was possible */
        return -EIO;
    *in = str_skip(*in, part.length - stream->avail_in);
    *out_length = room - stream->avail_out;
    if (flush == CODER_END)
        return result == Z_STREAM_END;
    return in->length == 0 && stream->avail_out > 0;
}

static void gzip_close(void *coder)
{
    deflateEnd(coder);
    free(coder);
}

const struct coder_kind coder_gzip = {
    .memory = 280 * 1024,
    .level_min = 1,
    .level_max = 9,
    .open = gzip_open,
    .step = gzip_step,
    .close = gzip_close,
};
