/*
 * The timer heap: OP_TIMER ops ordered by deadline. Moving a deadline later does not change the heap: it keeps the old
 * key, and compares the deadline when the key is due.
 */
#ifndef IO_TIMERS_H
#define IO_TIMERS_H

#include "io/loop.h"

/* Creates an empty heap. NULL when out of memory. */
struct loop_timers *timers_create(void);
/* Accepts NULL. */
void timers_destroy(struct loop_timers *timers);

/* Adds op by op->deadline_ms. 0 or -ENOMEM. */
MUST_CHECK int timers_add(struct loop_timers *timers, struct op *op);
/* Removes op, which is in the heap. */
void timers_remove(struct loop_timers *timers, struct op *op);
/* Sets op->deadline_ms; op is in the heap. */
void timers_move(struct loop_timers *timers, struct op *op, uint64_t deadline_ms);
/* The time at which timers_due must be called: not later than the earliest deadline; UINT64_MAX without timers. */
uint64_t timers_next(const struct loop_timers *timers);
/* Removes and returns the op with the earliest deadline if it is due at `now_ms`, else NULL. */
struct op *timers_due(struct loop_timers *timers, uint64_t now_ms);

#endif
