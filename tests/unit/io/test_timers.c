/* The heap of timers against a linear search, and the timers of every backend. */
#include "fixture.h"

#include "io/timers.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define OPS   200
#define STEPS 20000

static uint64_t earliest(const struct op *ops, const bool *present)
{
    uint64_t first = UINT64_MAX;

    for (int i = 0; i < OPS; i++) {
        if (present[i] && ops[i].deadline_ms < first)
            first = ops[i].deadline_ms;
    }
    return first;
}

START_TEST(heap_agrees_with_linear_search)
{
    static struct op ops[OPS];
    static bool present[OPS];
    struct loop_timers *timers = timers_create();
    uint64_t now = 0;

    srand(1);
    ck_assert_uint_eq(timers_next(timers), UINT64_MAX);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % OPS;
        uint64_t deadline = now + (uint64_t)(rand() % 1000) + 1;
        struct op *due;

        if (!present[i]) {
            ops[i].deadline_ms = deadline;
            ck_assert_int_eq(timers_add(timers, &ops[i]), 0);
            present[i] = true;
        } else if (rand() % 3 == 0) {
            timers_remove(timers, &ops[i]);
            present[i] = false;
        } else {
            timers_move(timers, &ops[i], deadline);
        }
        now += (uint64_t)(rand() % 10);
        ck_assert_uint_le(timers_next(timers), earliest(ops, present));
        while ((due = timers_due(timers, now)) != NULL) {
            ck_assert_uint_le(due->deadline_ms, now);
            ck_assert(present[due - ops]);
            present[due - ops] = false;
        }
        ck_assert_uint_gt(earliest(ops, present), now);
    }
    timers_destroy(timers);
    timers_destroy(NULL);
}
END_TEST

static int order[8];
static int order_count;

static void record_order(struct probe *probe)
{
    order[order_count++] = probe->bytes[0];
}

START_TEST(fire_in_order)
{
    struct loop loop;
    struct probe probes[4];
    uint64_t now;

    if (!open_loop(&loop, _i))
        return;
    now = loop.clock.monotonic_ms;
    for (int i = 0; i < 4; i++) {
        probe_init(&probes[i], &loop);
        probes[i].bytes[0] = (char)i;
        probes[i].then = record_order;
    }
    loop_timer(&loop, &probes[0].op, now + 40);
    loop_timer(&loop, &probes[1].op, now + 5);
    loop_timer(&loop, &probes[2].op, now + 10);
    loop_timer(&loop, &probes[3].op, now + 10000000);
    loop_timer_move(&loop, &probes[1].op, now + 30); /* a later time: takes effect when the old time is reached */
    loop_timer_move(&loop, &probes[3].op, now + 20); /* an earlier time: takes effect at once */
    if (_i < kernel_backend_count())
        usleep(50000); /* the kernel's backends fire all in one iteration, the scripted one fires them one by one */
    run_until_done(&probes[0], 1);
    ck_assert_int_eq(order_count, 4);
    ck_assert(order[0] == 2 && order[1] == 3 && order[2] == 1 && order[3] == 0);
    ck_assert_uint_ge(loop.clock.monotonic_ms, now + 40);
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
}
END_TEST

/* A timer that is due and whose `done` has not run yet can still be moved. */
static struct probe *to_move;

static void move_other(struct probe *probe)
{
    loop_timer_move(probe->loop, &to_move->op, probe->loop->clock.monotonic_ms + 20);
}

START_TEST(cancelled_and_moved_timers_keep_the_order)
{
    struct loop loop;
    struct probe probe;
    struct probe mover;
    uint64_t now;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    probe_init(&mover, &loop);
    now = loop.clock.monotonic_ms;
    loop_timer(&loop, &probe.op, now + 100000);
    loop_cancel(&loop, &probe.op);
    loop_timer_move(&loop, &probe.op, now); /* no effect: it was cancelled */
    ck_assert_int_eq(probe.runs, 0);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, -ECANCELED);

    mover.then = move_other;
    to_move = &probe;
    loop_timer_move(&loop, &mover.op, now); /* the op is idle, so this submits it */
    loop_timer(&loop, &probe.op, now);
    run_until_done(&mover, 1);
    ck_assert_int_eq(probe.runs, 1);
    run_until_done(&probe, 2);
    ck_assert_int_eq(probe.result, 0);
    ck_assert_uint_ge(loop.clock.monotonic_ms, now + 20);
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, heap_agrees_with_linear_search);
    tcase_add_loop_test(tcase, fire_in_order, 0, tested_backend_count());
    tcase_add_loop_test(tcase, cancelled_and_moved_timers_keep_the_order, 0, tested_backend_count());
}

int main(void)
{
    return run_suite("timers", add_tests);
}
