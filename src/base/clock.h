/*
 * Reads the system's clocks; no other file does (tests/check_layers.py). The loop reads them once per iteration; all
 * other code uses the loop's copy.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/must_check.h"

#include <stdint.h>
#include <sys/types.h>

struct clock {
    uint64_t monotonic_ms;          /* CLOCK_MONOTONIC */
    uint64_t monotonic_us;
    int64_t wall_ms;                /* CLOCK_REALTIME since the epoch */
};

/* Reads both clocks. */
void clock_read(struct clock *out_clock);

/* The current CLOCK_MONOTONIC: the loop measures within an iteration how long its large ops take. */
uint64_t clock_monotonic_us(void);

/* The current CLOCK_REALTIME in ns since the epoch, for the end of an OTLP span. */
uint64_t clock_wall_ns(void);

/* CPU time of this thread, in user space and kernel, in ns. For measurements only: each call is a system call. */
uint64_t clock_thread_cpu_ns(void);
/* CPU time of all threads of a process, in ns. 0, or -errno: there is no such process. */
MUST_CHECK int clock_pid_cpu_ns(pid_t pid, uint64_t *out_ns);

/* Seconds since the epoch. */
static inline int64_t clock_wall_s(const struct clock *clock)
{
    return clock->wall_ms / 1000;
}

#endif
