/* Buckets of durations; see histogram.h. */
#include "histogram.h"

#include <stdbool.h>

unsigned histogram_bucket(uint64_t nanoseconds)
{
    unsigned shift;

    if (nanoseconds < HISTOGRAM_STEPS)
        return (unsigned)nanoseconds;
    shift = 63 - (unsigned)__builtin_clzll(nanoseconds) - HISTOGRAM_STEP_BITS;
    return (shift << HISTOGRAM_STEP_BITS) + (unsigned)(nanoseconds >> shift);
}

uint64_t histogram_floor(unsigned bucket)
{
    unsigned shift;

    if (bucket < 2 * HISTOGRAM_STEPS)
        return bucket;
    shift = (bucket >> HISTOGRAM_STEP_BITS) - 1;
    return (uint64_t)(bucket - (shift << HISTOGRAM_STEP_BITS)) << shift;
}

void histogram_record(struct histogram *histogram, uint64_t nanoseconds)
{
    histogram->counts[histogram_bucket(nanoseconds)]++;
    histogram->total++;
}

void histogram_print(const struct histogram *histogram, FILE *into)
{
    bool first = true;

    fputc('[', into);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        fprintf(into, "%s[%llu, %llu]", first ? "" : ", ", (unsigned long long)histogram_floor(i),
                (unsigned long long)histogram->counts[i]);
        first = false;
    }
    fputc(']', into);
}
