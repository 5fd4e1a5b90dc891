/* The record parser of the load generator: it counts plaintext bytes for any segmentation of the input, and accepts
 * application data only. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

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

START_TEST(pieces_of_any_size_count_the_same)
{
    static uint8_t bytes[40000];
    size_t length = two_records(bytes);
    size_t steps[] = {1, 2, 3, 5, 7, 1021, 16384, length};

    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct walk walk = {.overhead = OVERHEAD};
        uint64_t plain = 0;

        for (size_t at = 0; at < length; at += steps[i])
            ck_assert(walk_over(&walk, bytes + at, length - at < steps[i] ? length - at : steps[i], &plain));
        ck_assert_uint_eq(plain, PLAIN_ONE + PLAIN_TWO);
        ck_assert(walk_is_between(&walk));
    }
}
END_TEST

START_TEST(a_record_counts_when_its_last_byte_has_gone_by)
{
    static uint8_t bytes[40000];
    struct walk walk = {.overhead = OVERHEAD};
    uint64_t plain = 0;

    (void)two_records(bytes);
    ck_assert(walk_over(&walk, bytes, WALK_HEADER, &plain));
    ck_assert_uint_eq(walk.record_left, PLAIN_ONE + OVERHEAD);
    walk_skip(&walk, PLAIN_ONE, &plain);
    ck_assert_uint_eq(plain, 0);
    ck_assert(!walk_is_between(&walk));
    walk_skip(&walk, OVERHEAD, &plain);
    ck_assert_uint_eq(plain, PLAIN_ONE);
    ck_assert(walk_is_between(&walk));
}
END_TEST

START_TEST(other_records_are_refused)
{
    static const uint8_t wrong[][WALK_HEADER] = {
        {21, 3, 3, 0, 19},              /* an alert */
        {22, 3, 3, 0, 100},             /* a handshake */
        {23, 3, 3, 0, OVERHEAD - 1},    /* shorter than the tag */
        {23, 3, 3, 0xff, 0xff},         /* longer than the maximum record */
    };

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct walk walk = {.overhead = OVERHEAD};
        uint64_t plain = 0;

        ck_assert(!walk_over(&walk, wrong[i], WALK_HEADER, &plain));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("walk");
    TCase *tests = tcase_create("walk");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, pieces_of_any_size_count_the_same);
    tcase_add_test(tests, a_record_counts_when_its_last_byte_has_gone_by);
    tcase_add_test(tests, other_records_are_refused);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
