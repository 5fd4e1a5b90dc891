/*
 * A few threads for what would make the loop wait: files that are not in memory,
 * password hashes. They touch nothing of the loop: an op goes in, its result comes
 * back. The threads start when first needed.
 */
#ifndef IO_HELPERS_H
#define IO_HELPERS_H

#include "io/loop.h"

/*
 * Has `work(op)` run on a helper thread; its result finishes op, except for OP_SENDFILE, which goes on in the next
 * turn. OP_OFFLOAD finishes with -EBUSY where LIMIT_HELPER_QUEUE are waiting. Where no thread can be
 * started, the work is done at once.
 */
void helpers_submit(struct loop *loop, struct op *op, int (*work)(struct op *op));

/* OP_STATE_HELPED only: what waits is taken out, what runs is waited for; either way op ends with -ECANCELED. */
void helpers_cancel(struct loop *loop, struct op *op);

/* The work of an OP_OFFLOAD. */
int helpers_offload(struct op *op);

/* Ends the threads. No op may be with them. */
void helpers_destroy(struct loop *loop);

#endif
