/*
 * The wait of a stream for its client: for bytes of the request body, or for a window. It is limited by a timeout since
 * the last progress, and by a minimum rate (client_min_rate), which counts only the time of waiting.
 */
#ifndef HTTP_H2_WAIT_H
#define HTTP_H2_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first. All times are those of the monotonic clock in milliseconds. */
struct h2_wait {
    uint64_t since_ms;              /* start of the timeout */
    uint64_t began_ms;              /* start of the part of this wait that is not in waited_ms yet */
    uint64_t waited_ms;             /* time of waiting in the current rate measurement, until began_ms */
    uint64_t bytes;                 /* in the current rate measurement */
    bool waiting;
    bool stalled;                   /* no progress since since_ms */
};

struct h2_wait_limits {
    uint64_t timeout_ms;
    uint64_t min_rate;              /* bytes per second over LIMIT_SLOW_WINDOW_MS; 0: none */
};

/* Starts to wait; no effect while waiting. A wait without progress since the last one continues its timeout. */
void h2_wait_begin(struct h2_wait *wait, uint64_t now_ms);
/* Ends the wait; no effect if there is none. */
void h2_wait_end(struct h2_wait *wait, uint64_t now_ms);
/* Counts bytes that were transferred, whether waiting or not. */
void h2_wait_progress(struct h2_wait *wait, uint64_t now_ms, uint64_t bytes);
/* Restarts the timeout and the rate measurement: until now, the client was not permitted to send. */
void h2_wait_restart(struct h2_wait *wait, uint64_t now_ms);
/* The next time at which h2_wait_expired can be true; UINT64_MAX: not waiting. */
uint64_t h2_wait_deadline(const struct h2_wait *wait, struct h2_wait_limits limits);
/*
 * True if a limit is exceeded. A rate measurement with enough bytes is followed by the next one. Without any byte it
 * lasts twice as long.
 */
bool h2_wait_expired(struct h2_wait *wait, uint64_t now_ms, struct h2_wait_limits limits);

#endif
