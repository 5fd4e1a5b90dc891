/*
 * Submits ops to the backend or to the timers, cancels them there, and queues the finished ones. Uses neither helper
 * threads (helpers.c) nor iterations (loop.c).
 */
#include "base/limits.h"
#include "base/saturate.h"
#include "io/backend.h"
#include "io/timers.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

void loop_finish(struct loop *loop, struct op *op, int result)
{
    op->result = result;
    op->state = OP_STATE_FINISHED;
    list_push(&loop->finished, &op->link);
}

void loop_ready(struct loop *loop, struct op *op)
{
    bool large = op->verb == OP_RECV && op->large;

    op->state = OP_STATE_READY;
    list_push(large ? &loop->large_queue : &loop->finished, &op->link);
}

void loop_defer(struct loop *loop, struct op *op)
{
    op->state = OP_STATE_DEFERRED;
    list_push(&loop->large_queue, &op->link);
}

void loop_retry(struct loop *loop, struct op *op)
{
    op->state = OP_STATE_DEFERRED;
    list_push(&loop->retries, &op->link);
}

void loop_charge(struct loop *loop, uint64_t count)
{
    loop->iteration_bytes_left = u64_sub_sat(loop->iteration_bytes_left, count);
    if (loop->iteration_bytes_left > 0 && clock_monotonic_us() >= loop->iteration_end_us)
        loop->iteration_bytes_left = 0;
}

void loop_charge_done(struct loop *loop, uint64_t count)
{
    if (loop->large_done)
        loop->large_done(loop);
    loop_charge(loop, count);
}

void loop_finish_large(struct loop *loop, struct op *op, int result)
{
    op->result = result;
    op->state = OP_STATE_FINISHED;
    list_push(&loop->large_queue, &op->link);
}

void loop_finish_poll(struct loop *loop, struct op *op, int result)
{
    if (op->poll_events == POLLOUT)
        loop_finish_large(loop, op, result);
    else
        loop_finish(loop, op, result);
}

void loop_run_done(struct loop *loop, struct op *op, int result)
{
    op->state = OP_STATE_IDLE;
    loop->in_flight--;
    op->done(op, result);
}

void loop_run_received(struct loop *loop, struct op *op, const char *bytes, ssize_t count)
{
    size_t length = count > 0 ? (size_t)count : 0;
    bool large = op->large;

    op->received = (struct str){bytes, length};
    loop_run_done(loop, op, (int)count);
    if (large)
        loop_charge_done(loop, (uint64_t)length * LIMIT_ITERATION_BYTES / LIMIT_ITERATION_FILE_BYTES);
}

static void submit_timer(struct loop *loop, struct op *op)
{
    int error = timers_add(loop->timers, op);

    if (error < 0)
        loop_finish(loop, op, error);
}

void loop_submit(struct loop *loop, struct op *op)
{
    assert(op->state == OP_STATE_IDLE);
    op->state = OP_STATE_WAITING;
    loop->in_flight++;
    if (op->verb == OP_TIMER)
        submit_timer(loop, op);
    else
        loop->backend->submit(loop, op);
}

static void cancel_waiting(struct loop *loop, struct op *op)
{
    if (op->verb != OP_TIMER) {
        loop->backend->cancel(loop, op);
        return;
    }
    timers_remove(loop->timers, op);
    loop_finish(loop, op, -ECANCELED);
}

void loop_cancel_without_helper(struct loop *loop, struct op *op)
{
    switch (op->state) {
    case OP_STATE_WAITING:
        cancel_waiting(loop, op);
        break;
    case OP_STATE_READY:
        loop->backend->cancel(loop, op);
        break;
    case OP_STATE_DEFERRED:
        list_remove(&op->link);
        loop_finish(loop, op, -ECANCELED);
        break;
    case OP_STATE_OFFLOADED:
    case OP_STATE_IDLE:
    case OP_STATE_CANCELLING:
    case OP_STATE_FINISHED:
        break;
    }
}

void loop_close_fd(struct loop *loop, int fd)
{
    if (fd < 0)
        return;
    loop->backend->remove_fd(loop, fd);
    close(fd);
}
