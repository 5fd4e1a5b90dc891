/*
 * Common to all backends: iterations, timers, the queue of finished ops, the choice of a backend, and the tail of
 * large ops. No descriptor is waited for here.
 */
#include "io/loop.h"

#include "base/limits.h"
#include "io/backend.h"
#include "io/backends.h"
#include "io/helpers.h"
#include "io/timers.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A connection embeds several. */
static_assert(sizeof(struct op) <= 96, "an op has grown");

/*
 * An op submitted by a finished one is often finished at once: this many rounds run before the kernel is asked
 * again.
 */
#define ROUNDS_PER_ITERATION 4

int loop_open_backend(struct loop *loop, const struct loop_backend *backend, struct log *log)
{
    int error;

    *loop = (struct loop){.backend = backend, .log = log, .iteration_bytes_left = LIMIT_ITERATION_BYTES};
    list_init(&loop->finished);
    list_init(&loop->retries);
    list_init(&loop->tail);
    clock_read(&loop->clock);
    loop->timers = timers_create();
    if (!loop->timers)
        return -ENOMEM;
    error = backend->open(loop);
    if (error < 0) {
        timers_destroy(loop->timers);
        loop->timers = NULL;
    }
    return error;
}

int loop_open(struct loop *loop, const char *use, struct log *log)
{
    bool automatic = strcmp(use, "auto") == 0;
    int error = -EINVAL;

    for (size_t i = 0; loop_backends[i]; i++) {
        const struct loop_backend *backend = loop_backends[i];
        const struct loop_backend *next = loop_backends[i + 1];

        if (!automatic && strcmp(use, backend->name) != 0)
            continue;
        error = loop_open_backend(loop, backend, log);
        if (error == 0 || !automatic)
            return error;
        if (next)
            log_write(log, LOG_NOTICE, "%s: %s, using %s", backend->name, strerror(-error), next->name);
    }
    return error;
}

void loop_close(struct loop *loop)
{
    helpers_destroy(loop);
    assert(loop->in_flight == 0);
    loop->backend->close(loop);
    timers_destroy(loop->timers);
    loop->timers = NULL;
}

void loop_finish(struct loop *loop, struct op *op, int result)
{
    op->result = result;
    op->state = OP_STATE_FINISHED;
    list_push(&loop->finished, &op->link);
}

void loop_ready(struct loop *loop, struct op *op)
{
    op->state = OP_STATE_READY;
    list_push(&loop->finished, &op->link);
}

void loop_defer(struct loop *loop, struct op *op)
{
    op->state = OP_STATE_DEFERRED;
    list_push(&loop->tail, &op->link);
}

void loop_retry(struct loop *loop, struct op *op)
{
    op->state = OP_STATE_DEFERRED;
    list_push(&loop->retries, &op->link);
}

void loop_charge(struct loop *loop, uint64_t count)
{
    loop->iteration_bytes_left -= count < loop->iteration_bytes_left ? count : loop->iteration_bytes_left;
}

void loop_finish_large(struct loop *loop, struct op *op, int result)
{
    loop_finish(loop, op, result);
    if (loop->iteration_bytes_left > 0) {
        loop_charge(loop, (uint64_t)result);
        return;
    }
    list_remove(&op->link);
    list_push(&loop->tail, &op->link);
}

void loop_run_done(struct loop *loop, struct op *op, int result)
{
    op->state = OP_STATE_IDLE;
    loop->in_flight--;
    op->done(op, result);
}

/* Moves all of `from`: ops added from now on wait for the next round. */
static void move_all(struct list *from, struct list *into)
{
    list_init(into);
    if (list_empty(from))
        return;
    *into = *from;
    into->next->previous = into;
    into->previous->next = into;
    list_init(from);
}

static int run_round(struct loop *loop)
{
    struct list round;
    struct list *link;
    int count = 0;

    move_all(&loop->finished, &round);
    while ((link = list_pop(&round)) != NULL) {
        struct op *op = container_of(link, struct op, link);

        if (op->state == OP_STATE_READY)
            loop->backend->deliver(loop, op);
        else
            loop_run_done(loop, op, op->result);
        count++;
    }
    return count;
}

static void submit_again(struct loop *loop, struct op *op)
{
    op->state = OP_STATE_WAITING;
    loop->backend->submit(loop, op);
}

static void resume_retries(struct loop *loop)
{
    struct list round;
    struct list *link;

    move_all(&loop->retries, &round);
    while ((link = list_pop(&round)) != NULL)
        submit_again(loop, container_of(link, struct op, link));
}

/* Resumes ops in order until each has run or the iteration has no bytes left. */
static void resume_tail(struct loop *loop)
{
    struct list *last = loop->tail.previous;
    struct list *link = NULL;

    loop->iteration_bytes_left = LIMIT_ITERATION_BYTES;
    while (link != last && loop->iteration_bytes_left > 0 && (link = list_pop(&loop->tail)) != NULL) {
        struct op *op = container_of(link, struct op, link);

        if (op->state == OP_STATE_FINISHED) {
            list_push(&loop->finished, link);
            loop_charge(loop, (uint64_t)op->result);
        } else {
            submit_again(loop, op);
        }
    }
}

/* Small responses are sent before large ones get their share of the iteration. */
static int run_small(struct loop *loop)
{
    int count;

    if (list_empty(&loop->tail))
        return 0;
    count = run_round(loop);  /* responses to received bytes are produced, */
    count += run_round(loop); /* and sent */
    if (loop->backend->start)
        loop->backend->start(loop);
    return count;
}

static void expire_timers(struct loop *loop)
{
    struct op *op;

    while ((op = timers_due(loop->timers, loop->clock.monotonic_ms)) != NULL)
        loop_finish(loop, op, 0);
}

int loop_run_iteration(struct loop *loop, uint64_t until_ms)
{
    uint64_t next = timers_next(loop->timers);
    int count = 0;
    int error;

    if (next < until_ms)
        until_ms = next;
    if (!list_empty(&loop->finished) || !list_empty(&loop->retries) || !list_empty(&loop->tail))
        until_ms = 0;
    loop->iteration_bytes_left = 0; /* ops that become ready now queue behind the tail */
    error = loop->backend->wait(loop, until_ms);
    if (error < 0)
        return error;
    expire_timers(loop);
    resume_retries(loop);
    count += run_small(loop);
    resume_tail(loop);
    for (int round = 0; round < ROUNDS_PER_ITERATION && !list_empty(&loop->finished); round++)
        count += run_round(loop);
    return count;
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

void loop_cancel(struct loop *loop, struct op *op)
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
    case OP_STATE_HELPED:
        helpers_cancel(loop, op);
        break;
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
    loop->backend->forget(loop, fd);
    close(fd);
}
