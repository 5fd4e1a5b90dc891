/*
 * Counts ended exchanges, and adds up the counters of all workers.
 */
#include "master/counters.h"

void counters_add_request(struct counters *counters, enum http_version version)
{
    counters->requests++;
    counters->requests_by_protocol[version == HTTP_2 ? REQUEST_HTTP_2
                                                     : version == HTTP_1_1 ? REQUEST_HTTP_1_1 : REQUEST_HTTP_1_0]++;
}

void counters_add_response(struct counters *counters, int status, uint64_t took_us)
{
    counters->latency.counts[latency_bucket(took_us)]++;
    counters->latency.sum_us += took_us;
    counters->status[status >= 100 && status < COUNTERS_STATUSES ? status : 0]++;
}

void counters_set_memory(struct counters *counters, struct memory_budget *budget)
{
    counters->exchange_memory = budget->used;
    counters->exchange_rejections += budget->rejections;
    budget->rejections = 0;
}

void counters_reset_current(struct counters *counters)
{
    for (unsigned state = 0; state < CONNECTION_STATES; state++)
        counters->connections[state] = 0;
    counters->exchange_memory = 0;
    counters->protocols.h2_streams = 0;
}

_Static_assert(sizeof(struct counters) % sizeof(uint64_t) == 0, "counters are added word by word");

void counters_add(struct counters *sum, const struct counters *part)
{
    const uint64_t *from = (const uint64_t *)(const void *)part;
    uint64_t *to = (uint64_t *)(void *)sum;

    for (size_t i = 0; i < sizeof(*part) / sizeof(uint64_t); i++)
        to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
