#include "base/latency.h"

#include "../runner.h"

START_TEST(bucket_includes_its_bound)
{
    ck_assert_uint_eq(latency_bucket(0), 0);
    for (unsigned i = 0; i < LATENCY_BOUNDS; i++) {
        ck_assert_uint_eq(latency_bucket(latency_bounds_us[i]), i);
        ck_assert_uint_eq(latency_bucket(latency_bounds_us[i] + 1), i + 1);
        ck_assert(i == 0 || latency_bounds_us[i] > latency_bounds_us[i - 1]);
    }
    ck_assert_uint_eq(latency_bucket(UINT64_MAX), LATENCY_BOUNDS);
}
END_TEST

static const struct {
    struct {
        unsigned bucket;
        uint64_t count;
    } parts[3];
    unsigned permille;
    uint64_t us;
} rows[] = {
    {{{0, 0}}, 990, 0},                                /* no values */
    {{{0, 1}}, 1000, 1000},
    {{{0, 100}}, 500, 500},
    {{{0, 100}}, 0, 0},
    {{{2, 10}}, 500, 3750},                            /* between 2500 and 5000 */
    {{{0, 99}, {3, 1}}, 990, 1000},
    {{{0, 98}, {3, 2}}, 990, 7500},                    /* the middle of the bucket from 5000 to 10000 */
    {{{0, 1}, {LATENCY_BOUNDS, 99}}, 990, 60000000},   /* beyond the largest bound */
    {{{0, UINT64_MAX}, {1, UINT64_MAX}}, 750, 1750},   /* sums beyond 64 bits */
};

START_TEST(quantiles_are_interpolated)
{
    struct latency latency = {0};

    for (unsigned i = 0; i < 3; i++)
        latency.counts[rows[_i].parts[i].bucket] += rows[_i].parts[i].count;
    ck_assert_uint_eq(latency_quantile_us(&latency, rows[_i].permille), rows[_i].us);
}
END_TEST

START_TEST(count_includes_every_bucket)
{
    struct latency latency = {.sum_us = 1000};

    ck_assert_uint_eq(latency_count(&latency), 0);
    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++)
        latency.counts[i] = i + 1;
    ck_assert_uint_eq(latency_count(&latency), (LATENCY_BOUNDS + 1) * (LATENCY_BOUNDS + 2) / 2);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, bucket_includes_its_bound);
    tcase_add_loop_test(tcase, quantiles_are_interpolated, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_test(tcase, count_includes_every_bucket);
}

int main(void)
{
    return run_suite("latency", add_tests);
}
