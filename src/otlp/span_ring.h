/*
 * Queues of finished spans in shared memory, one for each worker of a configuration. The worker is the only writer of
 * its ring, the exporter of the configuration the only reader of all rings. Neither trusts the positions in shared
 * memory: addresses are computed from sizes that each process has in private memory.
 */
#ifndef OTLP_SPAN_RING_H
#define OTLP_SPAN_RING_H

#include "otlp/otlp.h"
#include "otlp/span.h"

/*
 * Creates empty rings of `capacity` spans for `workers` workers, to be shared by the processes forked afterwards. Spans
 * are counted in `counters`. The exporter is woken when `wake_at` spans wait in a ring. 0 or -errno.
 */
MUST_CHECK int span_zone_open(unsigned workers, uint64_t capacity, uint64_t wake_at, struct otlp_counters *counters,
                              struct span_zone **out_zone);
/* Unmaps the rings in this process. Accepts NULL. */
void span_zone_close(struct span_zone *zone);
/* The descriptor that is readable when a ring has `wake_at` spans. Owned by the zone. */
int span_zone_wake_fd(const struct span_zone *zone);
struct otlp_counters *span_zone_counters(const struct span_zone *zone);

/*
 * For workers. Returns the place of the next span, zeroed except for `items`; NULL: the ring is full, which is counted.
 */
struct span *span_ring_reserve(struct span_zone *zone, unsigned worker);
/* Publishes the span returned by the last span_ring_reserve, and wakes the exporter when it is due. Never blocks. */
void span_ring_commit(struct span_zone *zone, unsigned worker);

/* For the exporter. Returns the number of spans that wait in all rings. */
uint64_t span_zone_waiting(const struct span_zone *zone);
/*
 * Copies and removes the oldest span of a ring, beginning after the ring of the last call. False: all rings are empty.
 * Spans of a ring whose positions are impossible are dropped and counted; *out_corrupt is set to true then.
 */
MUST_CHECK bool span_zone_take(struct span_zone *zone, struct span *out_span, bool *out_corrupt);
/*
 * Records how many spans the exporter has taken and neither sent nor dropped, so that its replacement can count them.
 * Returns the number recorded before, at most LIMIT_OTLP_BATCH.
 */
uint64_t span_zone_set_taken(struct span_zone *zone, uint64_t spans);

#endif
