/*
 * Lets timers expire without waiting: time that a test skips is added to the clocks that clock_read reads, and so to
 * those of each loop. For programs that have skipped_clock_dep (meson.build of tests/).
 */
#ifndef TEST_SKIPPED_CLOCK_H
#define TEST_SKIPPED_CLOCK_H

#include "io/loop.h"

/* From now on the clocks are this much later. */
void clock_skip(uint64_t milliseconds);
/* The same, followed by an iteration of the loop that does not wait: timers that are due now expire in it. */
void loop_skip(struct loop *loop, uint64_t milliseconds);

#endif
