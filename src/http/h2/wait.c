/*
 * Time that the server spends on its own work between two waits does not count for the rate.
 */
#include "http/h2/wait.h"

#include "base/limits.h"
#include "base/saturate.h"

void h2_wait_begin(struct h2_wait *wait, uint64_t now_ms)
{
    if (wait->waiting)
        return;
    if (!wait->stalled)
        wait->since_ms = now_ms;
    wait->began_ms = now_ms;
    wait->waiting = wait->stalled = true;
}

/* Moves the time of the current wait to waited_ms. */
static void count_time(struct h2_wait *wait, uint64_t now_ms)
{
    wait->waited_ms += u64_sub_sat(now_ms, wait->began_ms);
    wait->began_ms = now_ms;
}

void h2_wait_end(struct h2_wait *wait, uint64_t now_ms)
{
    if (wait->waiting)
        count_time(wait, now_ms);
    wait->waiting = false;
}

void h2_wait_progress(struct h2_wait *wait, uint64_t now_ms, uint64_t bytes)
{
    wait->bytes += bytes;
    wait->stalled = false;
    wait->since_ms = now_ms;
}

void h2_wait_restart(struct h2_wait *wait, uint64_t now_ms)
{
    wait->since_ms = wait->began_ms = now_ms;
    wait->waited_ms = wait->bytes = 0;
    wait->stalled = false;
}

static uint64_t add_time(uint64_t at_ms, uint64_t more_ms)
{
    return more_ms > UINT64_MAX - at_ms ? UINT64_MAX : at_ms + more_ms;
}

/* A measurement without any byte lasts twice as long: HTTP/1.1 disconnects after the second such measurement. */
static uint64_t window_ms(const struct h2_wait *wait)
{
    return wait->bytes ? LIMIT_SLOW_WINDOW_MS : 2 * LIMIT_SLOW_WINDOW_MS;
}

uint64_t h2_wait_deadline(const struct h2_wait *wait, struct h2_wait_limits limits)
{
    uint64_t timeout = add_time(wait->since_ms, limits.timeout_ms);
    uint64_t window = add_time(wait->began_ms, u64_sub_sat(window_ms(wait), wait->waited_ms));

    if (!wait->waiting)
        return UINT64_MAX;
    return limits.min_rate && window < timeout ? window : timeout;
}

bool h2_wait_expired(struct h2_wait *wait, uint64_t now_ms, struct h2_wait_limits limits)
{
    bool late = add_time(wait->since_ms, limits.timeout_ms) <= now_ms;
    uint64_t needed;

    if (!wait->waiting)
        return false;
    count_time(wait, now_ms);
    if (!late && (!limits.min_rate || wait->waited_ms < window_ms(wait)))
        return false;
    needed = limits.min_rate * wait->waited_ms / 1000; /* no overflow: client_min_rate is at most 1 MiB/s */
    late = late || wait->bytes < needed;
    wait->waited_ms = wait->bytes = 0;
    return late;
}
