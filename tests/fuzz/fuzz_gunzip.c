/*
 * gzip input: the first byte of the input selects the piece size. The decoded bytes equal those of zlib in one step,
 * and incomplete input is an error. Input whose result exceeds the buffer is skipped.
 */
#include "fuzz.h"

#include "modules/compress/coder.h"

#include <zlib.h>

enum { MAX_SIZE = 1 << 16 };

/* Returns the number of decoded bytes; -1: an error, or too many bytes. */
static long at_once(const uint8_t *bytes, size_t size, unsigned char *out)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes,
                       .avail_in = (unsigned)size,
                       .next_out = out,
                       .avail_out = MAX_SIZE};
    int result = Z_STREAM_END;

    HOLDS(inflateInit2(&stream, 15 + 16) == Z_OK);
    while (stream.avail_in > 0 && result == Z_STREAM_END) {
        HOLDS(inflateReset(&stream) == Z_OK);
        result = inflate(&stream, Z_FINISH);
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END ? MAX_SIZE - (long)stream.avail_out : -1;
}

static long in_pieces(struct str rest, size_t piece, char *out)
{
    void *coder = coder_gunzip.open(0, UINT64_MAX);
    size_t end = 0;
    int result = 1;

    HOLDS(coder);
    do {
        struct str part = str_slice(rest, 0, piece);
        bool last = part.length == rest.length;

        rest = str_skip(rest, part.length);
        do {
            size_t written = 0;

            result = coder_gunzip.step(coder, &part, last ? CODER_END : CODER_MORE, out + end, 64, &written);
            HOLDS(written <= 64);
            end += written;
        } while (result == 0 && end <= MAX_SIZE);
    } while (result == 1 && rest.length && end <= MAX_SIZE);
    coder_gunzip.close(coder);
    return result == 1 && end <= MAX_SIZE ? (long)end : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static unsigned char whole[MAX_SIZE];
    static char pieces[MAX_SIZE + 64];
    long length;

    if (size < 1 || size > 4096)
        return 0;
    length = at_once(bytes + 1, size - 1, whole);
    HOLDS(in_pieces(str_of((const char *)bytes + 1, size - 1), (size_t)bytes[0] + 1, pieces) == length);
    HOLDS(length < 0 || memcmp(whole, pieces, (size_t)length) == 0);
    return 0;
}
