/*
 * Helper threads for work that would block the loop: reading files from disk, password hashes. The threads do not use
 * the loop: they take an op from a queue and return it with its result. They start on first use.
 */
#ifndef IO_HELPERS_H
#define IO_HELPERS_H

#include "io/loop.h"

/*
 * Runs `work(op)` on a helper thread. Its result finishes op, except for OP_SENDFILE, which is deferred (loop_defer).
 * OP_OFFLOAD finishes with -EBUSY if LIMIT_HELPER_QUEUE ops are queued. If no thread can be started, the work runs
 * inside this call.
 */
void helpers_submit(struct loop *loop, struct op *op, int (*work)(struct op *op));

/*
 * For an op in OP_STATE_OFFLOADED: removes queued work; does not interrupt running work. Op finishes with -ECANCELED,
 * at the latest when its work ends.
 */
void helpers_cancel(struct loop *loop, struct op *op);

/* The work of an OP_OFFLOAD. */
int helpers_offload(struct op *op);

/*
 * Stops the threads, which must have no op, and waits for their end. The loop then runs until helpers_stopped, and
 * calls helpers_destroy. Accepts a loop without threads.
 */
void helpers_stop(struct loop *loop);
/* True if the op that polls the threads' eventfd is finished, or if there are no threads. */
bool helpers_stopped(const struct loop *loop);
/* Accepts a loop without threads. */
void helpers_destroy(struct loop *loop);

#endif
