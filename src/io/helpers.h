/*
 * Helper threads for work that would block the loop: reading files from disk, password hashes. The threads do not use
 * the loop: they take an op from a queue and return it with its result. They start on first use.
 */
#ifndef IO_HELPERS_H
#define IO_HELPERS_H

#include "io/loop.h"

/*
 * Runs `work(op)` on a helper thread; its result finishes op, except for OP_SENDFILE, which continues in the next
 * loop iteration. OP_OFFLOAD finishes with -EBUSY if LIMIT_HELPER_QUEUE ops are queued. If no thread can be started,
 * the work runs at once.
 */
void helpers_submit(struct loop *loop, struct op *op, int (*work)(struct op *op));

/* OP_STATE_HELPED only: dequeues queued work, or waits for running work; op then finishes with -ECANCELED. */
void helpers_cancel(struct loop *loop, struct op *op);

/* The work of an OP_OFFLOAD. */
int helpers_offload(struct op *op);

/* Stops the threads, which must have no op. The loop then runs until helpers_stopped, and calls helpers_destroy. */
void helpers_stop(struct loop *loop);
/* True if nothing is in flight for the threads, or none was ever started. */
bool helpers_stopped(const struct loop *loop);
/* Accepts a loop without threads. */
void helpers_destroy(struct loop *loop);

#endif
