/*
 * What backends share and nobody else may see: how an op moves from waiting to
 * finished, and the calls that are made inline by every backend alike, so that
 * their results are the same by construction.
 */
#ifndef IO_BACKEND_H
#define IO_BACKEND_H

#include "io/loop.h"

/* Queues op with its result; `done` runs later in this turn or in the next. */
void loop_finish(struct loop *loop, struct op *op, int result);
/* Queues op for the backend's deliver. */
void loop_ready(struct loop *loop, struct op *op);
/* Queues op for a turn that has room for it (loop->turn_left), behind all others: then it is submitted to the backend again. */
void loop_defer(struct loop *loop, struct op *op);
/* Submits op to the backend again in the next turn: what it lacks is no share of it. */
void loop_retry(struct loop *loop, struct op *op);
/* `count` bytes have left, of what the turn has room for. */
void loop_charge(struct loop *loop, uint64_t count);
/* loop_finish of a large send, whose owner has more at hand: he goes on when it is his turn. */
void loop_finish_large(struct loop *loop, struct op *op, int result);
/* Runs `done` now; only for deliver. The op may be gone afterwards. */
void loop_run_done(struct loop *loop, struct op *op, int result);

/* Readiness that an op must wait for before its call is made again. */
struct readiness {
    int fd;
    unsigned events;                /* POLLIN or POLLOUT */
};

/*
 * OP_ACCEPT, OP_CONNECT, OP_SEND, OP_SENDFILE, OP_SPLICE: makes the call, again and again until it is complete, must
 * wait, finds no room in the turn or needs a disk. True: the backend waits for *out_wait, then calls again. False:
 * finished, deferred or with a helper thread already.
 */
bool attempt(struct loop *loop, struct op *op, struct readiness *out_wait);

/* OP_OPEN and OP_READ: finished at once where the caches of the kernel allow, otherwise by a helper thread. */
void file_submit(struct loop *loop, struct op *op);

#endif
