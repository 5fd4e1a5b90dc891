/*
 * Bodies by otlp_gzip, decoded by zlib. In a build without zlib nothing is compressed.
 */
#include "otlp/otlp_gzip.h"

#include "../runner.h"

#include "base/limits.h"

#include <errno.h>

#define ZLIB_CONST
#include <zlib.h>

enum { GZIP_HEAD = 16 };

static void check_round_trip(struct str body)
{
    unsigned char *decoded = malloc(body.length + 1);
    struct buffer out = {0};
    z_stream stream = {0};

    ck_assert_int_eq(otlp_gzip(body, &out), 0);
    ck_assert_uint_gt(out.length, 18);
    ck_assert_int_eq(inflateInit2(&stream, MAX_WBITS + GZIP_HEAD), Z_OK);
    stream.next_in = (const unsigned char *)out.data;
    stream.avail_in = (unsigned)out.length;
    stream.next_out = decoded;
    stream.avail_out = (unsigned)body.length + 1;
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(stream.avail_in, 0);
    ck_assert_uint_eq(stream.total_out, body.length);
    ck_assert(body.length == 0 || memcmp(decoded, body.data, body.length) == 0);
    inflateEnd(&stream);
    buffer_finish(&out);
    free(decoded);
}

START_TEST(bodies_are_decoded)
{
    char *largest = malloc(LIMIT_OTLP_REQUEST);
    uint32_t random = 1;

    check_round_trip(STR(""));
    check_round_trip(STR("a"));
    memset(largest, 'a', LIMIT_OTLP_REQUEST);
    check_round_trip(str_of(largest, LIMIT_OTLP_REQUEST));
    for (size_t i = 0; i < LIMIT_OTLP_REQUEST; i++) { /* not compressible */
        random = random * 1664525 + 1013904223;
        largest[i] = (char)(random >> 24);
    }
    check_round_trip(str_of(largest, LIMIT_OTLP_REQUEST));
    free(largest);
}
END_TEST

START_TEST(cap_of_the_buffer_holds)
{
    struct buffer out;

    buffer_init(&out, 10);
    ck_assert_int_eq(otlp_gzip(STR("a"), &out), -ENOBUFS);
    ck_assert_uint_eq(out.length, 0);
    buffer_finish(&out);
}
END_TEST

START_TEST(build_has_gzip)
{
    ck_assert(otlp_gzip_built);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {bodies_are_decoded, cap_of_the_buffer_holds, build_has_gzip, NULL};

    return run_tests("otlp_gzip", tests);
}
