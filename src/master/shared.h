/*
 * Memory shared by master and workers (an anonymous shared mapping made before fork): only what must
 * be shared.
 */
#ifndef MASTER_SHARED_H
#define MASTER_SHARED_H

#include "master/counters.h"
#include "tls/replay_window.h"
#include "tls/ticket_keys.h"
#include "upstream/upstream_zone.h"

#include <stdbool.h>

/* On cache lines of its own: what one worker counts does not slow the next one down. */
struct shared_worker {
    _Alignas(64) struct counters counters;
    bool taken;                     /* a process counts here; the master's */
};

struct shared {
    size_t size;
    unsigned place_count;
    unsigned places_used;           /* no process was ever given a place from here on */
    unsigned worker_count;          /* processes of the generation that serves */
    struct ktls_support ktls;       /* found by the master */
    struct upstream_zone *upstreams; /* owned; what workers know together of the servers behind */
    struct ticket_keys tickets;     /* drawn by the master */
    struct replay_window early;        /* of connections with early data, by tickets of these keys */
    uint64_t connection_number;     /* the last one given out; atomic */
    uint64_t started_s;             /* these three are the master's: see counters_total */
    uint64_t generation;
    uint64_t restarts;
    struct shared_worker workers[];
};

/* Room for so many worker processes at a time, of all generations together. NULL when out of memory. Zeroed, but for place_count. */
struct shared *shared_create(unsigned places);
void shared_destroy(struct shared *shared);
/* A place for a worker, who goes on counting where the last one there ended. Its index, or -ENOSPC. Only the master asks. */
MUST_CHECK int shared_take(struct shared *shared);
/* The process at the place has ended: what it held open and what it knew of upstreams is no longer there. Its place stays taken. */
void shared_abandon(struct shared *shared, unsigned place);
/* The same, and another worker may have the place. */
void shared_leave(struct shared *shared, unsigned place);
/* What all workers have counted up to now. */
void shared_total(const struct shared *shared, struct counters_total *out_total);

#endif
