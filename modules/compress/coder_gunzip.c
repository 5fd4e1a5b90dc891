/*
 * gzip (RFC 1952) decoded by zlib: a sequence of complete members. Malformed data, a truncated member and bytes after
 * the last member (zeros included) are errors, so that a truncated body is detected.
 */
#include "coder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

enum { GZIP_HEAD = 16, WINDOW_MAX = 15 };

struct gunzip {
    z_stream stream;
    bool between; /* between two members, or before the first */
};

static void *gunzip_open(unsigned level, uint64_t length)
{
    struct gunzip *gunzip = calloc(1, sizeof(*gunzip));

    if (gunzip && inflateInit2(&gunzip->stream, GZIP_HEAD + WINDOW_MAX) != Z_OK) {
        free(gunzip);
        return NULL;
    }
    if (gunzip)
        gunzip->between = true;
    return gunzip;
}

/* Z_BUF_ERROR: no progress was possible, not an error. */
static int inflate_some(struct gunzip *gunzip)
{
    int result = inflate(&gunzip->stream, Z_SYNC_FLUSH);

    if (result == Z_STREAM_END)
        gunzip->between = true;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return result == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
    return 0;
}

static int gunzip_step(void *coder, struct str *in, enum coder_flush flush, char *out, size_t room,
                       size_t *out_length)
{
    struct gunzip *gunzip = coder;
    z_stream *stream = &gunzip->stream;
    struct str part = str_slice(*in, 0, INT_MAX);
    int error;

    *out_length = 0;
    if (gunzip->between && str_empty(*in))
        return 1;
    if (gunzip->between && inflateReset(stream) != Z_OK)
        return -EIO;
    gunzip->between = false;
    stream->next_in = (const unsigned char *)part.data;
    stream->avail_in = (unsigned)part.length;
    stream->next_out = (unsigned char *)out;
    stream->avail_out = room < INT_MAX ? (unsigned)room : INT_MAX;
    room = stream->avail_out;
    error = inflate_some(gunzip);
    if (error < 0)
        return error;
    *in = str_skip(*in, part.length - stream->avail_in);
    *out_length = room - stream->avail_out;
    if (in->length > 0 || (stream->avail_out == 0 && !gunzip->between))
        return 0;
    return flush == CODER_END && !gunzip->between ? -EBADMSG : 1;
}

static void gunzip_close(void *coder)
{
    inflateEnd(&((struct gunzip *)coder)->stream);
    free(coder);
}

const struct coder_kind coder_gunzip = {
    .memory = 48 * 1024,
    .open = gunzip_open,
    .step = gunzip_step,
    .close = gunzip_close,
};
