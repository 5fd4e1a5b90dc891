/* Rule 5 of io/loop.h on every backend: the buffers that a receive lends. */
#include "fixture.h"

#include "base/limits.h"

#include <errno.h>
#include <unistd.h>

static struct loop loop;

/* Rule 5: a receive that is not submitted is backpressure; each receive after the end of the stream returns 0. */
START_TEST(receive_is_single_shot)
{
    struct probe probe;
    int near;
    int far;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    unix_pair(&loop, &near, &far);
    loop_recv(&loop, &probe.op, near);
    turn_some(&loop, 2);
    say(far, "first");
    run_until_done(&probe, 1);
    say(far, "second");
    turn_some(&loop, 5);
    ck_assert_int_eq(probe.runs, 1);
    loop_recv(&loop, &probe.op, near);
    run_until_done(&probe, 2);
    ck_assert(str_equal(str_of(probe.bytes, 6), STR("second")));
    far_close(far);
    for (int i = 3; i < 6; i++) {
        loop_recv(&loop, &probe.op, near);
        run_until_done(&probe, i);
        ck_assert_int_eq(probe.result, 0);
    }
    loop_close_fd(&loop, near);
    loop_close(&loop);
}
END_TEST

/* More bytes than one buffer holds, then the end: no bytes are lost if the peer closes immediately. */
START_TEST(all_bytes_arrive_before_the_end)
{
    struct probe probe;
    char bytes[3 * LIMIT_RECEIVE_BYTES + 5];
    int total = 0;
    int near;
    int far;

    if (!open_loop(&loop, _i))
        return;
    memset(bytes, 'a', sizeof(bytes));
    probe_init(&probe, &loop);
    unix_pair(&loop, &near, &far);
    say_bytes(far, bytes, sizeof(bytes));
    far_close(far);
    for (int i = 1; i < 99; i++) {
        loop_recv(&loop, &probe.op, near);
        run_until_done(&probe, i);
        ck_assert_int_ge(probe.result, 0);
        ck_assert_int_le(probe.result, LIMIT_RECEIVE_BYTES);
        total += probe.result;
        if (probe.result == 0)
            break;
    }
    ck_assert_int_eq(total, (int)sizeof(bytes));
    loop_close_fd(&loop, near);
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
        say(ends[1], "message");
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
    int near;
    int far;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    tcp_pair(&loop, &near, &far);
    loop_recv(&loop, &probe.op, near);
    turn_some(&loop, 2);
    say(far, "before");
    ck_assert_int_eq(send(far, "!", 1, MSG_OOB), 1);
    say(far, "behind");
    for (int i = 1; total < 12; i++) {
        run_until_done(&probe, i);
        ck_assert_int_gt(probe.result, 0);
        total += probe.result;
        if (total < 12)
            loop_recv(&loop, &probe.op, near);
    }
    far_close(far);
    loop_close_fd(&loop, near);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {receive_is_single_shot, all_bytes_arrive_before_the_end};
    Suite *suite = suite_create("receive");
    TCase *group = tcase_create("receive");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(group, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(group, tests[i], 0, tested_backend_count());
    tcase_add_loop_test(group, messages_are_all_received, 0, kernel_backend_count());
    tcase_add_loop_test(group, urgent_data_does_not_stall, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
