/*
 * Histograms of times: bounds, and estimates from the counts.
 */
#include "base/latency.h"

const uint64_t latency_bounds_us[LATENCY_BOUNDS] = {
    1000,   2500,   5000,    10000,   25000,   50000,    100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000,
};

uint64_t latency_count(const struct latency *latency)
{
    uint64_t count = 0;

    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++)
        count += latency->counts[i];
    return count;
}

/* Floating-point sums cannot overflow, whatever the counts are. */
uint64_t latency_quantile_us(const struct latency *latency, unsigned permille)
{
    double total = 0, below = 0, start = 0;
    double rank;

    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++)
        total += (double)latency->counts[i];
    rank = total * permille / 1000;
    for (unsigned i = 0; i < LATENCY_BOUNDS && total > 0; i++) {
        double within = (double)latency->counts[i];
        double end = (double)latency_bounds_us[i];

        if (within > 0 && below + within >= rank)
            return (uint64_t)(start + (end - start) * (rank - below) / within);
        below += within;
        start = end;
    }
    return total > 0 ? latency_bounds_us[LATENCY_BOUNDS - 1] : 0;
}
