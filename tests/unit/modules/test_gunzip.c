#include "modules/compress/coder.h"

#include "../runner.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <zlib.h>

#define MAX_SIZE (1024 * 1024)

static char plain[MAX_SIZE], packed[MAX_SIZE], decoded[2 * MAX_SIZE];

/* Runs of equal bytes, alternating with pseudo-random bytes. */
static void fill_plain(void)
{
    unsigned state = 7;

    for (size_t i = 0; i < MAX_SIZE; i++) {
        if (i % 700 < 300)
            state = state * 1103515245 + 12345;
        plain[i] = (char)(state >> 16);
    }
}

/* Writes one gzip member (RFC 1952), with all optional header fields if `adorned`. */
static size_t write_member(size_t at, size_t length, bool adorned)
{
    z_stream stream = {.next_in = (unsigned char *)plain,
                       .avail_in = (unsigned)length,
                       .next_out = (unsigned char *)packed + at,
                       .avail_out = (unsigned)(MAX_SIZE - at)};
    gz_header head = {.name = (unsigned char *)"a name",
                      .comment = (unsigned char *)"a comment",
                      .extra = (unsigned char *)"ex\1\0x",
                      .extra_len = 5,
                      .hcrc = 1};

    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (adorned)
        ck_assert_int_eq(deflateSetHeader(&stream, &head), Z_OK);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return MAX_SIZE - stream.avail_out;
}

/*
 * Feeds the input in pieces, with `room` bytes of output at a time, and ends it. Returns the number of decoded bytes,
 * or -errno.
 */
static long gunzip_in_pieces(size_t length, size_t piece, size_t room)
{
    void *coder = coder_gunzip.open(0, UINT64_MAX);
    size_t at = 0, end = 0;
    int result = 1;

    ck_assert_ptr_nonnull(coder);
    for (bool last = false; !last && result >= 0; at += piece) {
        struct str part = str_slice(str_of(packed, length), at, at + piece);

        last = at + piece >= length;
        do {
            size_t written = 0;

            result = coder_gunzip.step(coder, &part, last ? CODER_END : CODER_MORE, decoded + end, room,
                                       &written);
            if (result >= 0)
                end += written;
            assert_in_loop(end + room <= sizeof(decoded));
        } while (result == 0);
        assert_in_loop(result < 0 || part.length == 0);
    }
    coder_gunzip.close(coder);
    return result < 0 ? result : (long)end;
}

START_TEST(decodes_to_the_original)
{
    static const size_t lengths[] = {0, 1, 20, 4096, 65536, 300000}, pieces[] = {1, 777, MAX_SIZE},
                        rooms[] = {64, 100, 16384};

    fill_plain();
    for (size_t i = 0; i < 6 * 3 * 3 * 2; i++) {
        size_t length = lengths[i % 6];
        size_t packed_length = write_member(0, length, i / 54);

        ck_assert_int_eq(gunzip_in_pieces(packed_length, pieces[i / 6 % 3], rooms[i / 18 % 3]), (long)length);
        ck_assert_int_eq(memcmp(decoded, plain, length), 0);
    }
}
END_TEST

/* Several members in sequence decode to one body; an empty member adds nothing. */
START_TEST(members_decode_to_one_body)
{
    static const size_t pieces[] = {1, 19, 20, 21, MAX_SIZE};
    size_t length;

    fill_plain();
    length = write_member(write_member(write_member(write_member(0, 1000, false), 0, true), 5000, true), 0, false);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(gunzip_in_pieces(length, pieces[i], 64), 6000);
        ck_assert_int_eq(memcmp(decoded, plain, 1000), 0);
        ck_assert_int_eq(memcmp(decoded + 1000, plain, 5000), 0);
    }
    ck_assert_int_eq(gunzip_in_pieces(0, 1, 64), 0);
}
END_TEST

/* A prefix that ends inside a member is an error, never a shorter body. */
START_TEST(truncated_input_is_an_error)
{
    size_t length, first;

    fill_plain();
    first = write_member(0, 300, true);
    length = write_member(first, 200, false);
    for (size_t end = 1; end < length; end++) {
        long result = gunzip_in_pieces(end, 16, 4096);

        ck_assert_int_eq(result, end == first ? 300 : -EBADMSG);
    }
}
END_TEST

START_TEST(trailing_bytes_are_an_error)
{
    static const struct {
        const char *bytes;
        size_t length;
    } tails[] = {{"\0", 1},        {"\0\0\0\0\0\0\0\0", 8}, {"x", 1},            {"\x1f", 1},
                 {"\x1f\x8b", 2}, {"\x1f\x8b\7", 3},         {"PK\3\4....", 8}};
    size_t length;

    fill_plain();
    length = write_member(0, 300, false);
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        memcpy(packed + length, tails[i].bytes, tails[i].length);
        ck_assert_int_eq(gunzip_in_pieces(length + tails[i].length, MAX_SIZE, 4096), -EBADMSG);
        ck_assert_int_eq(gunzip_in_pieces(length + tails[i].length, 1, 64), -EBADMSG);
    }
}
END_TEST

/* Inverts each bit of a member whose value matters: the result is an error or the original bytes. */
START_TEST(inverted_bit_is_an_error_or_without_effect)
{
    size_t length;

    fill_plain();
    length = write_member(0, 200, false);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        long result;

        if (bit / 8 >= 4 && bit / 8 < 10) /* MTIME, XFL and OS: their values do not matter */
            continue;
        packed[bit / 8] ^= (char)(1 << bit % 8);
        result = gunzip_in_pieces(length, MAX_SIZE, 4096);
        ck_assert_msg(result == -EBADMSG || (result == 200 && memcmp(decoded, plain, 200) == 0), "bit %zu: %ld",
                      bit, result);
        packed[bit / 8] ^= (char)(1 << bit % 8);
    }
    ck_assert_int_eq(gunzip_in_pieces(length, MAX_SIZE, 4096), 200);
}
END_TEST

/* After a flush by the sender, all bytes so far can be read at once. */
START_TEST(flushed_bytes_are_read_at_once)
{
    void *coder = coder_gunzip.open(0, UINT64_MAX);
    z_stream stream = {.next_out = (unsigned char *)packed, .avail_out = MAX_SIZE};
    size_t end = 0;

    fill_plain();
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t at = 0; at < 5000; at += 500) {
        char *from = (char *)stream.next_out;
        struct str part;
        size_t written = 0;

        stream.next_in = (unsigned char *)plain + at;
        stream.avail_in = 500;
        ck_assert_int_eq(deflate(&stream, Z_SYNC_FLUSH), Z_OK);
        part = str_of(from, (size_t)((char *)stream.next_out - from));
        ck_assert_int_eq(coder_gunzip.step(coder, &part, CODER_FLUSH, decoded + end, 4096, &written), 1);
        end += written;
        ck_assert_uint_eq(end, at + 500);
    }
    ck_assert_int_eq(memcmp(decoded, plain, end), 0);
    deflateEnd(&stream);
    coder_gunzip.close(coder);
}
END_TEST

/* A long run of zeros: the output of each step is limited by its room, and the memory by the declared amount. */
START_TEST(memory_is_limited)
{
    size_t length, before, max = 0, total = 0;
    struct str rest;
    void *coder;

    memset(plain, 0, sizeof(plain));
    length = write_member(0, MAX_SIZE, false);
    ck_assert_uint_lt(length, MAX_SIZE / 500);
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    coder = coder_gunzip.open(0, UINT64_MAX);
    rest = str_of(packed, length);
    for (int result = 0; result == 0;) {
        size_t now, written;

        result = coder_gunzip.step(coder, &rest, CODER_END, decoded, 64, &written);
        assert_in_loop(result >= 0);
        assert_in_loop(written <= 64);
        total += written;
        now = mallinfo2().uordblks + mallinfo2().hblkhd - before;
        max = now > max ? now : max;
    }
    coder_gunzip.close(coder);
    ck_assert_uint_eq(total, MAX_SIZE);
    ck_assert_uint_le(max, coder_gunzip.memory);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, decodes_to_the_original);
    tcase_add_test(tcase, members_decode_to_one_body);
    tcase_add_test(tcase, truncated_input_is_an_error);
    tcase_add_test(tcase, trailing_bytes_are_an_error);
    tcase_add_test(tcase, inverted_bit_is_an_error_or_without_effect);
    tcase_add_test(tcase, flushed_bytes_are_read_at_once);
    tcase_add_test(tcase, memory_is_limited);
}

int main(void)
{
    return run_suite("gunzip", add_tests);
}
