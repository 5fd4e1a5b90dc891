/* Cancelled ops: rules 4 and 6 in the header of io/loop.h, on every backend. */
#include "fixture.h"

#include "../runner.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

static struct loop loop;

/* Rule 4, before completion. */
START_TEST(cancel_before_completion)
{
    struct probe receive;
    struct probe send;
    struct probe poll_op;
    size_t length = 8 * 1024 * 1024;
    char *memory = pattern_memory(length);
    struct iovec part = {memory, length};
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&receive, &loop);
    probe_init(&send, &loop);
    probe_init(&poll_op, &loop);
    tcp_pair(&loop, &local, &peer);
    loop_cancel(&loop, &receive.op);
    loop_recv(&loop, &receive.op, local);
    loop_send(&loop, &send.op, local, &part, 1, 0);
    loop_poll(&loop, &poll_op.op, local, POLLRDHUP);
    turn_some(&loop, 20);
    ck_assert_int_eq(receive.runs + send.runs + poll_op.runs, 0);
    loop_cancel(&loop, &receive.op);
    loop_cancel(&loop, &receive.op);
    loop_cancel(&loop, &send.op);
    loop_cancel(&loop, &poll_op.op);
    ck_assert_int_eq(receive.runs + send.runs + poll_op.runs, 0);
    run_until_done(&receive, 1);
    run_until_done(&send, 1);
    run_until_done(&poll_op, 1);
    turn_some(&loop, 3);
    ck_assert_int_eq(receive.result, -ECANCELED);
    ck_assert_int_eq(send.result, -ECANCELED);
    ck_assert_int_eq(poll_op.result, -ECANCELED);
    ck_assert_uint_gt(send.op.send.progress, 0);
    ck_assert_int_eq(receive.runs + send.runs + poll_op.runs, 3);
    ck_assert_uint_eq(loop.in_flight, 0);

    /* The descriptor is still usable. */
    peer_send(peer, "after");
    loop_recv(&loop, &receive.op, local);
    run_until_done(&receive, 2);
    ck_assert_int_eq(receive.result, 5);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
    free(memory);
}
END_TEST

/* Rule 4, after completion: one result, either the true one or -ECANCELED. */
START_TEST(cancel_after_completion)
{
    char text[] = "hello";
    struct iovec part = {text, 5};
    struct probe receive;
    struct probe send;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&receive, &loop);
    probe_init(&send, &loop);
    unix_pair(&loop, &local, &peer);
    loop_send(&loop, &send.op, local, &part, 1, 0);
    loop_cancel(&loop, &send.op);
    run_until_done(&send, 1);
    if (send.result == -ECANCELED)
        ck_assert_uint_eq(peer_pending(peer), send.op.send.progress);
    else
        ck_assert_int_eq(send.result, 5);
    peer_send(peer, "x");
    loop_recv(&loop, &receive.op, local);
    turn_some(&loop, 0);
    loop_cancel(&loop, &receive.op);
    run_until_done(&receive, 1);
    ck_assert(receive.result == 1 || receive.result == -ECANCELED);
    loop_cancel(&loop, &receive.op);
    turn_some(&loop, 3);
    ck_assert_int_eq(receive.runs, 1);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

static void count_down(struct probe *probe)
{
    if (loop.in_flight == 0)
        loop_close_fd(&loop, probe->op.fd);
}

/* Rule 6: cancel, count the completions, close in the last one. The descriptor number can be reused at once. */
START_TEST(close_with_ops_in_flight)
{
    struct probe receive;
    struct probe poll_op;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    for (int round = 0; round < 50; round++) {
        unix_pair(&loop, &local, &peer);
        probe_init(&receive, &loop);
        probe_init(&poll_op, &loop);
        receive.then = poll_op.then = count_down;
        loop_recv(&loop, &receive.op, local);
        loop_poll(&loop, &poll_op.op, local, POLLRDHUP);
        turn_some(&loop, round % 3);
        if (round % 2)
            peer_send(peer, "unexpected bytes");
        loop_cancel(&loop, &receive.op);
        loop_cancel(&loop, &poll_op.op);
        run_until_done(&receive, 1);
        run_until_done(&poll_op, 1);
        ck_assert_uint_eq(loop.in_flight, 0);
        peer_close(peer);
    }
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {cancel_before_completion, cancel_after_completion, close_with_ops_in_flight};

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, tests[i], 0, tested_backend_count());
}

int main(void)
{
    return run_suite("cancel", add_tests);
}
