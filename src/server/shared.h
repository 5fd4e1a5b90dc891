/*
 * Memory shared by master and workers (an anonymous shared mapping made before fork): only what must
 * be shared. Counters have one writer each, so they need no lock.
 */
#ifndef SERVER_SHARED_H
#define SERVER_SHARED_H

#include "wire/wire.h"

#define SHARED_STATUS_CLASSES 6

struct shared_worker {
    _Alignas(64) int32_t pid;
    uint64_t accepted, closed;
    uint64_t requests;
    uint64_t by_status[SHARED_STATUS_CLASSES];  /* [0]: others; 1xx..5xx */
    uint64_t active, reading, writing, waiting;
    uint64_t log_lines_dropped;
    struct wire_counters wires;
};

struct shared {
    size_t size;
    unsigned worker_count;
    struct ktls_support ktls;       /* found by the master */
    uint64_t connection_number;     /* the last one given out; atomic */
    struct shared_worker workers[];
};

/* NULL when out of memory. Zeroed. */
struct shared *shared_create(unsigned workers);
void shared_destroy(struct shared *shared);

#endif
