/* Rule 5 of io/loop.h on every backend: the buffers that small and large receives lend. */
#include "fixture.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static struct loop loop;

/* Rule 5: a receive that is not submitted is backpressure; each receive after the end of the stream returns 0. */
START_TEST(receive_is_single_shot)
{
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    unix_pair(&loop, &local, &peer);
    loop_recv(&loop, &probe.op, local);
    turn_some(&loop, 2);
    peer_send(peer, "first");
    run_until_done(&probe, 1);
    peer_send(peer, "second");
    turn_some(&loop, 5);
    ck_assert_int_eq(probe.runs, 1);
    loop_recv(&loop, &probe.op, local);
    run_until_done(&probe, 2);
    ck_assert(str_equal(str_of(probe.bytes, 6), STR("second")));
    peer_close(peer);
    for (int i = 3; i < 6; i++) {
        loop_recv(&loop, &probe.op, local);
        run_until_done(&probe, i);
        ck_assert_int_eq(probe.result, 0);
    }
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/* More bytes than one buffer holds, then the end: no bytes are lost if the peer closes immediately. */
START_TEST(all_bytes_arrive_before_the_end)
{
    struct probe probe;
    char bytes[3 * LIMIT_RECEIVE_BYTES + 5];
    int total = 0;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    memset(bytes, 'a', sizeof(bytes));
    probe_init(&probe, &loop);
    unix_pair(&loop, &local, &peer);
    peer_send_bytes(peer, bytes, sizeof(bytes));
    peer_close(peer);
    for (int i = 1; i < 99; i++) {
        loop_recv(&loop, &probe.op, local);
        run_until_done(&probe, i);
        ck_assert_int_ge(probe.result, 0);
        ck_assert_int_le(probe.result, LIMIT_RECEIVE_BYTES);
        total += probe.result;
        if (probe.result == 0)
            break;
    }
    ck_assert_int_eq(total, (int)sizeof(bytes));
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/* Messages of a SEQPACKET socket: each receive returns one message, and all arrive. */
START_TEST(messages_are_all_received)
{
    struct probe probe;
    int ends[2];

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    for (int i = 0; i < 5; i++)
        peer_send(ends[1], "message");
    for (int i = 1; i <= 5; i++) {
        loop_recv(&loop, &probe.op, ends[0]);
        run_until_done(&probe, i);
        ck_assert_int_eq(probe.result, 7);
    }
    close(ends[1]);
    loop_close_fd(&loop, ends[0]);
    loop_close(&loop);
}
END_TEST

/* At urgent data, recv returns fewer bytes than are available. The rest must still arrive. */
START_TEST(urgent_data_does_not_stall)
{
    struct probe probe;
    int total = 0;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    tcp_pair(&loop, &local, &peer);
    loop_recv(&loop, &probe.op, local);
    turn_some(&loop, 2);
    peer_send(peer, "before");
    ck_assert_int_eq(send(peer, "!", 1, MSG_OOB), 1);
    peer_send(peer, "behind");
    for (int i = 1; total < 12; i++) {
        run_until_done(&probe, i);
        ck_assert_int_gt(probe.result, 0);
        total += probe.result;
        if (total < 12)
            loop_recv(&loop, &probe.op, local);
    }
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

enum { SENT_TO_LARGE = LIMIT_RECEIVE_LARGE + LIMIT_RECEIVE_BYTES + 5 };

static void check_received(const struct probe *probe, int runs, int result, size_t at)
{
    ck_assert_int_eq(probe->runs, runs);
    ck_assert_int_eq(probe->result, result);
    for (int i = 0; i < result && i < (int)sizeof(probe->bytes); i++)
        ck_assert_int_eq(probe->bytes[i], pattern_byte(at + (size_t)i));
}

/* A large receive returns more bytes than a small one, waits for input, and reports the end; both kinds alternate. */
START_TEST(large_receive_waits_for_input_and_reports_the_end)
{
    char *bytes = pattern_memory(SENT_TO_LARGE);
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    unix_pair(&loop, &local, &peer);
    loop_recv_large(&loop, &probe.op, local);
    turn_some(&loop, 3);
    ck_assert_int_eq(probe.runs, 0);
    peer_send_bytes(peer, bytes, SENT_TO_LARGE);
    run_until_done(&probe, 1);
    check_received(&probe, 1, LIMIT_RECEIVE_LARGE, 0);
    loop_recv(&loop, &probe.op, local);
    run_until_done(&probe, 2);
    check_received(&probe, 2, LIMIT_RECEIVE_BYTES, LIMIT_RECEIVE_LARGE);
    loop_recv_large(&loop, &probe.op, local);
    run_until_done(&probe, 3);
    check_received(&probe, 3, 5, LIMIT_RECEIVE_LARGE + LIMIT_RECEIVE_BYTES);
    peer_send_bytes(peer, bytes, LIMIT_RECEIVE_LARGE);
    loop_recv_large(&loop, &probe.op, local);
    run_until_done(&probe, 4);
    check_received(&probe, 4, LIMIT_RECEIVE_LARGE, 0);
    loop_recv_large(&loop, &probe.op, local); /* after a full receive, of an empty socket */
    turn_some(&loop, 3);
    ck_assert_int_eq(probe.runs, 4);
    peer_close(peer);
    run_until_done(&probe, 5);
    check_received(&probe, 5, 0, 0);
    free(bytes);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/* A large receive is cancelled while it waits, and once its turn is due: no byte is lost. */
START_TEST(large_receives_are_cancelled)
{
    char *bytes = pattern_memory(2 * LIMIT_RECEIVE_LARGE);
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    unix_pair(&loop, &local, &peer);
    loop_recv_large(&loop, &probe.op, local);
    turn_some(&loop, 3);
    loop_cancel(&loop, &probe.op);
    run_until_done(&probe, 1);
    check_received(&probe, 1, -ECANCELED, 0);
    peer_send_bytes(peer, bytes, 2 * LIMIT_RECEIVE_LARGE);
    loop_recv_large(&loop, &probe.op, local);
    run_until_done(&probe, 2);
    check_received(&probe, 2, LIMIT_RECEIVE_LARGE, 0);
    loop_recv_large(&loop, &probe.op, local); /* the last one was full: due at once */
    loop_cancel(&loop, &probe.op);
    run_until_done(&probe, 3);
    check_received(&probe, 3, -ECANCELED, 0);
    loop_recv_large(&loop, &probe.op, local);
    run_until_done(&probe, 4);
    check_received(&probe, 4, LIMIT_RECEIVE_LARGE, LIMIT_RECEIVE_LARGE);
    free(bytes);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/* A large receive reports a reset, and a descriptor that is not open. */
START_TEST(large_receives_report_a_reset)
{
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    tcp_pair(&loop, &local, &peer);
    loop_recv_large(&loop, &probe.op, local);
    turn_some(&loop, 3);
    peer_reset(peer);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, -ECONNRESET);
    loop_close_fd(&loop, local);
    loop_recv_large(&loop, &probe.op, 999);
    run_until_done(&probe, 2);
    ck_assert_int_eq(probe.result, -EBADF);
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        receive_is_single_shot, all_bytes_arrive_before_the_end, large_receive_waits_for_input_and_reports_the_end,
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, tests[i], 0, tested_backend_count());
    tcase_add_loop_test(tcase, messages_are_all_received, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, large_receives_are_cancelled, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, large_receives_report_a_reset, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, urgent_data_does_not_stall, 0, kernel_backend_count());
}

int main(void)
{
    return run_suite("receive", add_tests);
}
