#include "modules/compress/coder.h"

#include "../runner.h"

#include <brotli/decode.h>
#include <malloc.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#define MAX_SIZE (1024 * 1024)

static char plain[MAX_SIZE], encoded[2 * MAX_SIZE], decoded[MAX_SIZE];

/* Text of several words in pseudo-random order: compressible, but not to a few bytes. */
static void fill_plain(size_t length)
{
    static const char *const words[] = {"lorem ",       "ipsum ",        "dolor ", "sit amet, ",
                                        "consectetur ", "<p class='x'>", "\n",     "0x7f "};
    unsigned state = 12345;
    size_t at = 0;

    while (at < length) {
        const char *word = words[(state = state * 1103515245 + 12345) >> 16 & 7];
        size_t count = strlen(word);

        if (count > length - at)
            count = length - at;
        memcpy(plain + at, word, count);
        at += count;
        if (at < length && (state >> 20 & 3) == 0)
            plain[at++] = (char)(state >> 24);
    }
}

/*
 * Returns the number of bytes that decode from the first `length` encoded ones, or -1: not decodable. *out_ended: the
 * stream is complete.
 */
static long decode_gzip(size_t length, bool *out_ended)
{
    z_stream stream = {.next_in = (unsigned char *)encoded,
                       .avail_in = (unsigned)length,
                       .next_out = (unsigned char *)decoded,
                       .avail_out = MAX_SIZE};
    int result;

    ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    result = inflate(&stream, Z_SYNC_FLUSH);
    inflateEnd(&stream);
    *out_ended = result == Z_STREAM_END && stream.avail_in == 0;
    return result == Z_STREAM_END || result == Z_OK || result == Z_BUF_ERROR ? MAX_SIZE - (long)stream.avail_out
                                                                             : -1;
}

static long decode_brotli(size_t length, bool *out_ended)
{
    BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *in = (const uint8_t *)encoded;
    uint8_t *out = (uint8_t *)decoded;
    size_t left = length, room = MAX_SIZE;
    BrotliDecoderResult result = BrotliDecoderDecompressStream(state, &left, &in, &room, &out, NULL);

    BrotliDecoderDestroyInstance(state);
    *out_ended = result == BROTLI_DECODER_RESULT_SUCCESS && left == 0;
    return result == BROTLI_DECODER_RESULT_ERROR ? -1 : (long)(MAX_SIZE - room);
}

static long decode_zstd(size_t length, bool *out_ended)
{
    ZSTD_DCtx *stream = ZSTD_createDCtx();
    ZSTD_inBuffer in = {encoded, length, 0};
    ZSTD_outBuffer out = {decoded, MAX_SIZE, 0};
    size_t result = 1;

    while (in.pos < in.size && !ZSTD_isError(result))
        result = ZSTD_decompressStream(stream, &out, &in);
    ZSTD_freeDCtx(stream);
    *out_ended = result == 0 && in.pos == in.size;
    return ZSTD_isError(result) ? -1 : (long)out.pos;
}

static long (*const decode[CODINGS])(size_t length, bool *out_ended) = {
    [CODING_BR] = decode_brotli, [CODING_ZSTD] = decode_zstd, [CODING_GZIP] = decode_gzip};

/* Encodes one piece into buffers of `room` bytes. Returns the length of the encoded data so far. */
static size_t encode_piece(const struct coder_kind *kind, void *coder, struct str piece, enum coder_flush flush,
                           size_t room, size_t at)
{
    int result;

    do {
        size_t written = 0;

        result = kind->step(coder, &piece, flush, encoded + at, room, &written);
        assert_in_loop(result >= 0);
        assert_in_loop(written <= room);
        at += written;
        assert_in_loop(at + room <= sizeof(encoded));
    } while (result == 0);
    assert_in_loop(piece.length == 0);
    return at;
}

static void check_whole(enum coding coding, size_t encoded_length, size_t length)
{
    bool ended = false;

    ck_assert_int_eq(decode[coding](encoded_length, &ended), (long)length);
    ck_assert(ended);
    ck_assert_int_eq(memcmp(plain, decoded, length), 0);
}

/* Every level; several lengths, pieces and rooms; with and without the length known in advance. */
START_TEST(decodes_to_the_original)
{
    static const size_t lengths[] = {0, 1, 20, 255, 4096, 65535, 65536, 65537, 300000};
    static const size_t pieces[] = {1, 777, 16384, MAX_SIZE};
    static const size_t rooms[] = {64, 100, 16384};
    enum coding coding = (enum coding)_i;
    const struct coder_kind *kind = coder_kinds[coding];

    fill_plain(MAX_SIZE);
    for (unsigned level = kind->level_min; level <= kind->level_max; level++) {
        for (size_t i = 0; i < 9 * 4 * 3 * 2; i++) {
            size_t length = lengths[i % 9], piece = pieces[i / 9 % 4], room = rooms[i / 36 % 3], end = 0;
            void *coder;

            if (length != 4096 && (piece != 16384 || room != 16384))
                continue;
            coder = kind->open(level, i / 108 ? length : UINT64_MAX);
            ck_assert_ptr_nonnull(coder);
            for (size_t at = 0; at < length; at += piece)
                end = encode_piece(kind, coder, str_slice(str_of(plain, length), at, at + piece), CODER_MORE, room,
                                   end);
            end = encode_piece(kind, coder, STR(""), CODER_END, room, end);
            kind->close(coder);
            check_whole(coding, end, length);
            if (piece > 1)
                ck_assert_uint_lt(end, length / 2 + 200);
        }
    }
}
END_TEST

/* After a flush all input can be decoded, and not before. A flush without input is harmless. */
START_TEST(flushed_input_can_be_decoded)
{
    enum coding coding = (enum coding)_i;
    const struct coder_kind *kind = coder_kinds[coding];

    fill_plain(10000);
    for (unsigned level = kind->level_min; level <= kind->level_max; level++) {
        void *coder = kind->open(level, UINT64_MAX);
        size_t end = 0;
        bool ended;

        for (size_t at = 0; at < 10000; at += 100) {
            end = encode_piece(kind, coder, str_of(plain + at, 100), CODER_FLUSH, at % 3 ? 16384 : 64, end);
            ck_assert_int_eq(decode[coding](end, &ended), (long)at + 100);
            ck_assert(!ended);
        }
        end = encode_piece(kind, coder, STR(""), CODER_FLUSH, 16384, end);
        end = encode_piece(kind, coder, STR(""), CODER_END, 16384, end);
        kind->close(coder);
        check_whole(coding, end, 10000);
    }
}
END_TEST

/* The decoder detects that a stream has no end. */
START_TEST(unended_stream_is_incomplete)
{
    enum coding coding = (enum coding)_i;
    const struct coder_kind *kind = coder_kinds[coding];
    void *coder = kind->open(kind->level_max, UINT64_MAX);
    size_t end;
    bool ended = true;

    fill_plain(5000);
    end = encode_piece(kind, coder, str_of(plain, 5000), CODER_FLUSH, 16384, 0);
    kind->close(coder);
    ck_assert_int_eq(decode[coding](end, &ended), 5000);
    ck_assert(!ended);
}
END_TEST

/* No coder takes more memory than the amount declared for it. */
START_TEST(memory_is_limited)
{
    enum coding coding = (enum coding)_i;
    const struct coder_kind *kind = coder_kinds[coding];

    fill_plain(MAX_SIZE);
    mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    for (unsigned level = kind->level_min; level <= kind->level_max; level++) {
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, max = 0, end = 0;
        void *coder = kind->open(level, UINT64_MAX);

        for (size_t at = 0; at < MAX_SIZE; at += 16384) {
            size_t now;

            end = encode_piece(kind, coder, str_of(plain + at, 16384), CODER_MORE, 16384, end);
            now = mallinfo2().uordblks + mallinfo2().hblkhd - before;
            max = now > max ? now : max;
        }
        kind->close(coder);
        printf("coding %d level %u: %zu KiB, %zu bytes of %d\n", (int)coding, level, max / 1024, end, MAX_SIZE);
        ck_assert_uint_le(max, kind->memory);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, decodes_to_the_original, 0, CODINGS);
    tcase_add_loop_test(tcase, flushed_input_can_be_decoded, 0, CODINGS);
    tcase_add_loop_test(tcase, unended_stream_is_incomplete, 0, CODINGS);
    tcase_add_loop_test(tcase, memory_is_limited, 0, CODINGS);
}

int main(void)
{
    return run_suite("coder", add_tests);
}
