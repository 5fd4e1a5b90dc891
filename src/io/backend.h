/*
 * Functions for the backends: those that queue ops, and the system calls that all backends make by the same code, so
 * that results are identical.
 */
#ifndef IO_BACKEND_H
#define IO_BACKEND_H

#include "io/loop.h"

/* Queues op with its result; `done` runs later in this loop iteration or in the next. */
void loop_finish(struct loop *loop, struct op *op, int result);
/* Queues op until the backend's `deliver` makes its call. A large receive is queued in large_queue. */
void loop_ready(struct loop *loop, struct op *op);
/*
 * Queues op at the end of loop->large_queue. An iteration with bytes left (loop->iteration_bytes_left) submits it to
 * the backend again.
 */
void loop_defer(struct loop *loop, struct op *op);
/* Submits op to the backend again in the next iteration, also if no bytes are left then. */
void loop_retry(struct loop *loop, struct op *op);
/* Subtracts `count` moved bytes from the budget of this iteration; the budget is 0 once its time has passed. */
void loop_charge(struct loop *loop, uint64_t count);
/* After a `done` from large_queue: calls loop->large_done, then charges the op. */
void loop_charge_done(struct loop *loop, uint64_t count);
/* loop_finish of a large op: queues op in large_queue, and charges its bytes and time after `done`. */
void loop_finish_large(struct loop *loop, struct op *op, int result);
/* Queues a poll with its result: as a large op if it is for POLLOUT only, since its owner then continues its output. */
void loop_finish_poll(struct loop *loop, struct op *op, int result);
/* Runs `done` now, which may free the op. Called by the loop's iteration and by deliver. */
void loop_run_done(struct loop *loop, struct op *op, int result);
/*
 * Runs `done` of a receive; `count` is its result. `bytes` are valid until `done` returns. A large receive is charged
 * like a file in the page cache, and for the time of `done`.
 */
void loop_run_received(struct loop *loop, struct op *op, const char *bytes, ssize_t count);
/* loop_cancel of an op in a state other than OP_STATE_OFFLOADED. */
void loop_cancel_without_helper(struct loop *loop, struct op *op);

/* The readiness to wait for before the call is repeated. */
struct readiness {
    int fd;
    unsigned events;                /* POLLIN or POLLOUT */
};

/*
 * OP_ACCEPT, OP_CONNECT, OP_SEND, OP_SENDFILE, OP_SPLICE: repeats the call until the op is complete, must wait for
 * readiness, has used up the iteration's bytes, or would wait for the disk. True: the backend waits for *out_wait,
 * then calls again. False: the op is finished, deferred or with a helper thread.
 */
bool op_attempt(struct loop *loop, struct op *op, struct readiness *out_wait);

/* recv(2) into `into`. Returns the number of bytes, 0 at the end of the stream, -EAGAIN, or another -errno. */
ssize_t op_receive(const struct op *op, char *into, size_t size);

/*
 * True for a sendfile, a splice, or a large send. After a wait for readiness it is deferred (loop_defer). Large
 * receives are queued by loop_ready instead.
 */
bool op_is_large(const struct op *op);

/* OP_READ: reads on a helper thread. */
void read_submit(struct loop *loop, struct op *op);

#endif
