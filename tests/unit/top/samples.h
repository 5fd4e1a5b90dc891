/* Two samples for the tests of what is computed from them, and their difference. */
#ifndef TEST_TOP_SAMPLES_H
#define TEST_TOP_SAMPLES_H

#include "top/top_rates.h"

struct samples {
    struct top_sample before, now;
    struct top_rates rates;
};

/* Parses two pages, the second one read `us` after the first one, and compares them. */
static inline void samples_compare(struct samples *samples, const char *before, const char *now, uint64_t us)
{
    ck_assert_int_eq(top_sample_parse(str_from(before), &samples->before), 0);
    ck_assert_int_eq(top_sample_parse(str_from(now), &samples->now), 0);
    samples->before.read_us = 5000000;
    samples->now.read_us = 5000000 + us;
    ck_assert_int_eq(top_rates_compute(&samples->before, &samples->now, &samples->rates), 0);
}

static inline void samples_finish(struct samples *samples)
{
    top_sample_finish(&samples->before);
    top_sample_finish(&samples->now);
}

#endif
