/*
 * Histograms of times with fixed buckets: the durations of requests and the response times of upstream servers, in
 * shared memory and on the status page.
 */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stdint.h>

#define LATENCY_BOUNDS 14           /* number of bounds; one more bucket holds all larger values */

/* All members are uint64_t: status_zone_sum adds two structs as arrays. */
struct latency {
    uint64_t sum_us;                        /* of all values */
    uint64_t counts[LATENCY_BOUNDS + 1];    /* by latency_bucket; not cumulative */
};

/* Upper bounds (inclusive) of the buckets in microseconds, ascending. */
extern const uint64_t latency_bounds_us[LATENCY_BOUNDS];

/* Returns the index in `counts` of a value. */
static inline unsigned latency_bucket(uint64_t us)
{
    unsigned bucket = 0;

    while (bucket < LATENCY_BOUNDS && us > latency_bounds_us[bucket])
        bucket++;
    return bucket;
}

/* Returns the number of values in all buckets. */
uint64_t latency_count(const struct latency *latency);
/*
 * Estimates the value in microseconds that `permille` thousandths of the values do not exceed, by interpolation in its
 * bucket. Without values: 0. In the last bucket, which has no upper bound: the largest bound.
 */
uint64_t latency_quantile_us(const struct latency *latency, unsigned permille);

#endif
