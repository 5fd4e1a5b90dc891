/*
 * The heap of timers: OP_TIMER ops ordered by deadline. A deadline that moves
 * later costs nothing: the heap keeps the old one and looks again when it is due.
 */
#ifndef IO_TIMERS_H
#define IO_TIMERS_H

#include "io/loop.h"

struct loop_timers *timers_create(void);
/* Accepts NULL. */
void timers_destroy(struct loop_timers *timers);

/* Adds op by op->deadline_ms. 0 or -ENOMEM. */
MUST_CHECK int timers_add(struct loop_timers *timers, struct op *op);
void timers_remove(struct loop_timers *timers, struct op *op);
/* op->deadline_ms becomes `deadline_ms`; op is in the heap. */
void timers_move(struct loop_timers *timers, struct op *op, uint64_t deadline_ms);
/* When to look again at the latest: the earliest deadline or a little before it; UINT64_MAX without timers. */
uint64_t timers_next(const struct loop_timers *timers);
/* Takes out the op with the earliest deadline if it is due at `now_ms`, or NULL. */
struct op *timers_due(struct loop_timers *timers, uint64_t now_ms);

#endif
