#include "skipped_clock.h"

#include "base/clock.h"

#include <check.h>

static uint64_t skipped_ms;

void __real_clock_read(struct clock *out_clock);
void __wrap_clock_read(struct clock *out_clock);

void __wrap_clock_read(struct clock *out_clock)
{
    __real_clock_read(out_clock);
    out_clock->monotonic_ms += skipped_ms;
    out_clock->monotonic_us += skipped_ms * 1000;
    out_clock->wall_ms += (int64_t)skipped_ms;
}

void clock_skip(uint64_t milliseconds)
{
    skipped_ms += milliseconds;
}

void loop_skip(struct loop *loop, uint64_t milliseconds)
{
    clock_skip(milliseconds);
    ck_assert_int_ge(loop_run_iteration(loop, 0), 0);
}
