/* Histogram buckets: they cover all durations, do not overlap, and are at most one sixty-fourth wide. */
#include <stdlib.h>

#include "histogram.h"

#include "../unit/runner.h"

START_TEST(buckets_are_adjacent)
{
    for (unsigned i = 1; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t floor = histogram_floor(i);

        ck_assert_uint_eq(histogram_bucket(floor), i);
        ck_assert_uint_eq(histogram_bucket(floor - 1), i - 1);
    }
    ck_assert_uint_eq(histogram_bucket(0), 0);
    ck_assert_uint_eq(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}
END_TEST

START_TEST(bucket_is_narrow)
{
    for (unsigned i = HISTOGRAM_STEPS; i + 1 < HISTOGRAM_BUCKETS; i++)
        ck_assert_uint_le(histogram_floor(i + 1) - histogram_floor(i), histogram_floor(i) / HISTOGRAM_STEPS);
}
END_TEST

START_TEST(recorded_values_are_printed_in_order)
{
    static struct histogram histogram;
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);

    histogram_record(&histogram, 1000);
    histogram_record(&histogram, 7);
    histogram_record(&histogram, 1003);
    histogram_print(&histogram, into);
    fclose(into);
    ck_assert_str_eq(text, "[[7, 1], [1000, 2]]");
    ck_assert_uint_eq(histogram.total, 3);
    free(text);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, buckets_are_adjacent);
    tcase_add_test(tcase, bucket_is_narrow);
    tcase_add_test(tcase, recorded_values_are_printed_in_order);
}

int main(void)
{
    return run_suite("histogram", add_tests);
}
