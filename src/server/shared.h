/*
 * Memory shared by master and workers (an anonymous shared mapping made before fork): only what must
 * be shared.
 */
#ifndef SERVER_SHARED_H
#define SERVER_SHARED_H

#include "server/counters.h"
#include "upstream/upstream_zone.h"

/* On cache lines of its own: what one worker counts does not slow the next one down. */
struct shared_worker {
    _Alignas(64) struct counters counters;
};

struct shared {
    size_t size;
    unsigned worker_count;
    struct ktls_support ktls;       /* found by the master */
    struct upstream_zone *upstreams; /* owned; what workers know together of the servers behind */
    uint64_t connection_number;     /* the last one given out; atomic */
    uint64_t started_s;             /* these three are the master's: see counters_total */
    uint64_t generation;
    uint64_t restarts;
    struct shared_worker workers[];
};

/* NULL when out of memory. Zeroed, but for worker_count and the first generation. */
struct shared *shared_create(unsigned workers);
void shared_destroy(struct shared *shared);
/* What all workers have counted up to now. */
void shared_total(const struct shared *shared, struct counters_total *out_total);

#endif
