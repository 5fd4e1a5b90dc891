/*
 * What a worker counts, in memory that all processes see. Each block has one
 * writer at a time (the worker whose slot it is; the master while there is none), so counting is a plain store,
 * without locks: a reader may see the words of one event a moment apart, but never half a word. A worker that takes the place of
 * another goes on with its counts.
 */
#ifndef MASTER_COUNTERS_H
#define MASTER_COUNTERS_H

#include "io/file_cache.h"
#include "wire/wire.h"

enum connection_state {
    CONNECTION_HANDSHAKE,           /* in the TLS handshake */
    CONNECTION_READING,             /* of a request, some has come and some has not */
    CONNECTION_WRITING,             /* an answer is made, or leaves */
    CONNECTION_WAITING,             /* for a request, the first or the next */
    CONNECTION_STATES
};

#define COUNTERS_STATUSES  600
#define COUNTERS_LATENCIES 14       /* as many bounds; one bucket more for all above */

/* Every member is a uint64_t, or made of them. */
struct counters {
    uint64_t connections[CONNECTION_STATES]; /* now; everything else only grows */
    uint64_t accepted;
    uint64_t refused;               /* its address had too many */
    uint64_t requests;              /* heads that came; `status` counts those that have ended */
    uint64_t latency_us;            /* of all together */
    uint64_t latency[COUNTERS_LATENCIES + 1];
    uint64_t log_lines_dropped;
    struct wire_counters wires;
    struct wire_counters upstream_wires; /* to servers behind */
    struct file_cache_counters files;
    uint64_t status[COUNTERS_STATUSES]; /* by $status; [0]: others */
};

/* What all workers have counted together, and what is known of them. */
struct counters_total {
    struct counters sum;
    uint64_t workers;               /* how many there are to be */
    uint64_t restarts;              /* of workers that died */
    uint64_t generation;            /* of workers: 1, and one more after each reload */
    uint64_t started_s;             /* since the epoch: the master's start */
};

/* Where a bucket of `latency` ends (inclusive), in microseconds, ascending. */
extern const uint64_t counters_latency_bounds_us[COUNTERS_LATENCIES];

/* An exchange has ended with `status` ($status as a number), `took_us` after its first byte came. */
void counters_answered(struct counters *counters, int status, uint64_t took_us);
/* The worker that counted here is gone, and its connections with it. */
void counters_abandoned(struct counters *counters);
/* Adds what another process may be counting at this moment. */
void counters_add(struct counters *sum, const struct counters *part);

#endif
