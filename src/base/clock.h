/*
 * The only file that asks the kernel for the time (tests/check_layers.py sees to
 * it). The loop reads it once per turn; everybody else reads the loop's copy.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct clock {
    uint64_t monotonic_ms;          /* CLOCK_MONOTONIC */
    uint64_t monotonic_us;
    int64_t wall_ms;                /* CLOCK_REALTIME since the epoch */
};

/* What both clocks of the system say now. */
void clock_read(struct clock *out_clock);

/* Seconds since the epoch. */
static inline int64_t clock_wall_s(const struct clock *clock)
{
    return clock->wall_ms / 1000;
}

#endif
