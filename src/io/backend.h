/*
 * Shared by the backends only: how an op moves from waiting to finished, and the calls that every backend makes
 * inline by the same code, so that results are identical.
 */
#ifndef IO_BACKEND_H
#define IO_BACKEND_H

#include "io/loop.h"

/* Queues op with its result; `done` runs later in this loop iteration or in the next. */
void loop_finish(struct loop *loop, struct op *op, int result);
/* Queues op for the backend's deliver. */
void loop_ready(struct loop *loop, struct op *op);
/*
 * Queues op behind all others for an iteration with bytes left (loop->iteration_bytes_left); it is then submitted to the
 * backend again.
 */
void loop_defer(struct loop *loop, struct op *op);
/* Submits op to the backend again in the next iteration, for a reason other than its share of bytes. */
void loop_retry(struct loop *loop, struct op *op);
/* Subtracts `count` sent bytes from what this iteration may still move. */
void loop_charge(struct loop *loop, uint64_t count);
/* loop_finish of a large send: further ops of its owner wait for their turn in the tail. */
void loop_finish_large(struct loop *loop, struct op *op, int result);
/* Runs `done` now; called by the loop's iteration and by deliver. The op may be freed by it. */
void loop_run_done(struct loop *loop, struct op *op, int result);
/* loop_cancel of an op that no helper thread has. */
void loop_cancel_unhelped(struct loop *loop, struct op *op);

/* The readiness to wait for before the call is repeated. */
struct readiness {
    int fd;
    unsigned events;                /* POLLIN or POLLOUT */
};

/*
 * OP_ACCEPT, OP_CONNECT, OP_SEND, OP_SENDFILE, OP_SPLICE: repeats the call until the op is complete, must wait for
 * readiness, has used up the iteration's bytes, or needs the disk. True: the backend waits for *out_wait, then calls
 * again. False: the op is finished, deferred or with a helper thread.
 */
bool op_attempt(struct loop *loop, struct op *op, struct readiness *out_wait);

/* OP_READ: finishes at once if the kernel's caches allow it, otherwise uses a helper thread. */
void read_submit(struct loop *loop, struct op *op);

#endif
