/*
 * Which connections with early data (0-RTT) were seen lately, by all processes that share this memory: RFC 8446 8.2. Who is
 * here a second time is a replay.
 */
#ifndef TLS_EARLY_SEEN_H
#define TLS_EARLY_SEEN_H

#include <stdbool.h>
#include <stdint.h>

enum { EARLY_BUCKETS = 16384, EARLY_SLOTS = 8 };

/* A megabyte, of which only what is used is touched. Zeroed: nothing was seen. */
struct early_seen {
    uint64_t slots[EARLY_BUCKETS][EARLY_SLOTS]; /* second << 32 | mark; 0: free; atomic */
};

/*
 * Notes a ClientHello by its random, for LIMIT_EARLY_S seconds. False where it was seen before, or there is no room to note it: then its early
 * data are not to be taken. Of several that note the same at once, in whatever processes, at most one gets true. Takes no lock.
 */
bool early_seen_note(struct early_seen *seen, const uint8_t random[32], uint64_t now_ms);

#endif
