/*
 * Reads the system's clocks. The vDSO answers the calls for the monotonic and the wall clock without entering the
 * kernel.
 */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

void clock_read(struct clock *out_clock)
{
    struct timespec monotonic;
    struct timespec wall;

    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME, &wall);
    out_clock->monotonic_us = (uint64_t)monotonic.tv_sec * 1000000 + (uint64_t)monotonic.tv_nsec / 1000;
    out_clock->monotonic_ms = out_clock->monotonic_us / 1000;
    out_clock->wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
}

uint64_t clock_monotonic_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_thread_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

int clock_pid_cpu_ns(pid_t pid, uint64_t *out_ns)
{
    struct timespec used;
    clockid_t clock;
    int error = clock_getcpuclockid(pid, &clock);

    if (error != 0)
        return -error;
    if (clock_gettime(clock, &used) < 0)
        return -errno;
    *out_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    return 0;
}
