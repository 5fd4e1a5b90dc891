/*
 * Common to all backends: chooses a backend, and runs iterations (timers, finished ops, large ops). Only backends wait
 * for descriptors.
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

/* Each connection embeds several ops. */
static_assert(sizeof(struct op) <= 96, "struct op exceeds 96 bytes");

/*
 * Rounds of finished ops per iteration: an op that a `done` callback submits is often finished at once.
 */
#define ROUNDS_PER_ITERATION 4

/* Starts the budget of large ops: LIMIT_ITERATION_BYTES, for at most LIMIT_ITERATION_US. */
static void budget_start(struct loop *loop)
{
    loop->iteration_bytes_left = LIMIT_ITERATION_BYTES;
    loop->iteration_end_us = clock_monotonic_us() + LIMIT_ITERATION_US;
}

int loop_open_backend(struct loop *loop, const struct loop_backend *backend, struct log *log)
{
    int error;

    *loop = (struct loop){.backend = backend, .log = log};
    budget_start(loop);
    list_init(&loop->finished);
    list_init(&loop->retries);
    list_init(&loop->large_queue);
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

/* Moves all ops of `from` to `into`. Ops added to `from` later are processed in the next round. */
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

/* The charge of a finished op, in bytes of large sends. */
static uint64_t finished_bytes(const struct op *op)
{
    uint64_t bytes = op->result > 0 ? (uint64_t)op->result : 0;
    bool pages = op->verb == OP_SEND && op->send.pages;

    return pages ? bytes * LIMIT_ITERATION_BYTES / LIMIT_ITERATION_FILE_BYTES : bytes;
}

/* Runs `done`, which usually fills and sends the next block, or submits again. Returns the number of `done` calls. */
static int resume_large(struct loop *loop, struct op *op)
{
    uint64_t bytes = finished_bytes(op);
    int result = op->result;

    if (op->state == OP_STATE_READY) {
        loop->backend->deliver(loop, op); /* charges the bytes */
        return 1;
    }
    if (op->state != OP_STATE_FINISHED) {
        submit_again(loop, op);
        loop_charge(loop, 0); /* for the time; the bytes are charged when they are moved, or when the op is finished */
        return 0;
    }
    loop_run_done(loop, op, result);
    loop_charge_done(loop, bytes);
    return 1;
}

/*
 * Resumes ops in order until each was resumed once or the iteration has no bytes left. Returns the number of `done`
 * calls.
 */
static int resume_large_queue(struct loop *loop)
{
    struct list *last = loop->large_queue.previous;
    struct list *link = NULL;
    int count = 0;

    while (link != last && loop->iteration_bytes_left > 0 && (link = list_pop(&loop->large_queue)) != NULL)
        count += resume_large(loop, container_of(link, struct op, link));
    return count;
}

static bool has_work(const struct loop *loop)
{
    return !list_empty(&loop->finished) || (!list_empty(&loop->large_queue) && loop->iteration_bytes_left > 0);
}

/* While large ops wait, runs finished ops first, so that small responses are sent before large ones continue. */
static int run_small(struct loop *loop)
{
    int count;

    if (list_empty(&loop->large_queue))
        return 0;
    count = run_round(loop);  /* requests are received, and responses submitted */
    count += run_round(loop); /* small responses are sent */
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
    if (!list_empty(&loop->finished) || !list_empty(&loop->retries) || !list_empty(&loop->large_queue))
        until_ms = 0;
    loop->iteration_bytes_left = 0; /* large ops that become ready now are queued behind the waiting ones */
    error = loop->backend->wait(loop, until_ms);
    if (error < 0)
        return error;
    expire_timers(loop);
    resume_retries(loop);
    count += run_small(loop);
    budget_start(loop);
    for (int round = 0; round < ROUNDS_PER_ITERATION && has_work(loop); round++) {
        count += resume_large_queue(loop);
        count += run_round(loop);
    }
    return count;
}

void loop_cancel(struct loop *loop, struct op *op)
{
    if (op->state == OP_STATE_OFFLOADED)
        helpers_cancel(loop, op);
    else
        loop_cancel_without_helper(loop, op);
}

/* Runs the loop until the helper threads have stopped; in_flight does not count the op that polls their eventfd. */
static void stop_helpers(struct loop *loop)
{
    helpers_stop(loop);
    while (!helpers_stopped(loop) && loop_run_iteration(loop, 0) >= 0)
        ;
    helpers_destroy(loop);
}

void loop_close(struct loop *loop)
{
    stop_helpers(loop);
    assert(loop->in_flight == 0);
    loop->backend->close(loop);
    timers_destroy(loop->timers);
    loop->timers = NULL;
}
