/* The record parser of the load generator: it counts plaintext bytes for any segmentation of the input, and accepts
 * application data only. */
#include <string.h>

#include "record_parser.h"

#include "../unit/runner.h"

enum { OVERHEAD = 17, PLAIN_ONE = 1000, PLAIN_TWO = 16384 };

/* Appends two application-data records; returns their number of bytes. */
static size_t two_records(uint8_t *into)
{
    static const unsigned plain[] = {PLAIN_ONE, PLAIN_TWO};
    size_t at = 0;

    for (unsigned i = 0; i < 2; i++) {
        unsigned length = plain[i] + OVERHEAD;
        uint8_t header[] = {23, 3, 3, (uint8_t)(length >> 8), (uint8_t)length};

        memcpy(into + at, header, sizeof(header));
        memset(into + at + sizeof(header), 23, length);
        at += sizeof(header) + length;
    }
    return at;
}

START_TEST(plaintext_count_is_independent_of_segmentation)
{
    static uint8_t bytes[40000];
    size_t length = two_records(bytes);
    size_t steps[] = {1, 2, 3, 5, 7, 1021, 16384, length};

    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct record_parser parser = {.overhead = OVERHEAD};
        uint64_t plain = 0;

        for (size_t at = 0; at < length; at += steps[i])
            ck_assert(record_parser_feed(&parser, bytes + at, length - at < steps[i] ? length - at : steps[i], &plain));
        ck_assert_uint_eq(plain, PLAIN_ONE + PLAIN_TWO);
        ck_assert(record_parser_is_at_boundary(&parser));
    }
}
END_TEST

START_TEST(record_is_counted_at_its_last_byte)
{
    static uint8_t bytes[40000];
    struct record_parser parser = {.overhead = OVERHEAD};
    uint64_t plain = 0;

    (void)two_records(bytes);
    ck_assert(record_parser_feed(&parser, bytes, RECORD_HEADER_SIZE, &plain));
    ck_assert_uint_eq(parser.remaining, PLAIN_ONE + OVERHEAD);
    record_parser_skip(&parser, PLAIN_ONE, &plain);
    ck_assert_uint_eq(plain, 0);
    ck_assert(!record_parser_is_at_boundary(&parser));
    record_parser_skip(&parser, OVERHEAD, &plain);
    ck_assert_uint_eq(plain, PLAIN_ONE);
    ck_assert(record_parser_is_at_boundary(&parser));
}
END_TEST

START_TEST(other_content_types_and_invalid_lengths_are_rejected)
{
    static const uint8_t wrong[][RECORD_HEADER_SIZE] = {
        {21, 3, 3, 0, 19},              /* an alert */
        {22, 3, 3, 0, 100},             /* a handshake */
        {23, 3, 3, 0, OVERHEAD - 1},    /* shorter than the tag */
        {23, 3, 3, 0xff, 0xff},         /* longer than the maximum record */
    };

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct record_parser parser = {.overhead = OVERHEAD};
        uint64_t plain = 0;

        ck_assert(!record_parser_feed(&parser, wrong[i], RECORD_HEADER_SIZE, &plain));
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, plaintext_count_is_independent_of_segmentation);
    tcase_add_test(tcase, record_is_counted_at_its_last_byte);
    tcase_add_test(tcase, other_content_types_and_invalid_lengths_are_rejected);
}

int main(void)
{
    return run_suite("record_parser", add_tests);
}
