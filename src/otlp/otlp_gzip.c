/*
 * gzip by zlib, in one step: a body has at most LIMIT_OTLP_REQUEST bytes.
 */
#include "otlp/otlp_gzip.h"

#include <errno.h>
#include <limits.h>

#define ZLIB_CONST
#include <zlib.h>

enum { GZIP_HEAD = 16, MEMORY_LEVEL = 8 };

const bool otlp_gzip_built = true;

/* The stream is initialised. */
static int compress_body(z_stream *stream, struct str body, struct buffer *out)
{
    unsigned long bound = deflateBound(stream, body.length);
    int error = bound > UINT_MAX ? -ENOBUFS : buffer_reserve(out, bound);

    if (error < 0)
        return error;
    stream->next_in = (const unsigned char *)body.data;
    stream->avail_in = (unsigned)body.length;
    stream->next_out = (unsigned char *)out->data;
    stream->avail_out = (unsigned)bound;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END)
        return -ENOBUFS;
    out->length = bound - stream->avail_out;
    return 0;
}

int otlp_gzip(struct str body, struct buffer *out)
{
    z_stream stream = {0};
    int error;

    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_HEAD, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    error = compress_body(&stream, body, out);
    deflateEnd(&stream);
    return error;
}
