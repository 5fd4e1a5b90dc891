/*
 * Anti-replay for early data (0-RTT) by ClientHello recording (RFC 8446 8.2), in memory shared by several processes.
 * A recorded ClientHello that arrives again is a replay.
 */
#ifndef TLS_REPLAY_WINDOW_H
#define TLS_REPLAY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { REPLAY_BUCKETS = 16384, REPLAY_SLOTS = 8 };

/* One megabyte, of which only used pages are touched. Zeroed: empty. */
struct replay_window {
    /* 1: another window may have recorded ClientHellos for the same keys: all are rejected; atomic. */
    uint64_t closed;
    /* Monotonic second << 32 | mark, which is 32 bits of the random; 0: free; atomic. */
    uint64_t slots[REPLAY_BUCKETS][REPLAY_SLOTS];
};

/*
 * Records a ClientHello by its random for LIMIT_EARLY_S seconds. False if it was recorded before, there is no room,
 * or the window is closed: its early data must be rejected. At most one of concurrent calls with the same random, in
 * any process, returns true. Lock-free.
 */
bool replay_window_add(struct replay_window *window, const uint8_t random[32], uint64_t now_ms);

#endif
