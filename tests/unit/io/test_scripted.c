/* The functions that the scripted backend offers to tests. */
#include "fixture.h"
#include "scripted.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static struct loop loop;
static struct probe probe;
static int fd;

static void set_up(void)
{
    ck_assert_int_eq(scripted_open(&loop, NULL), 0);
    probe_init(&probe, &loop);
    fd = scripted_socket(&loop);
}

static void tear_down(void)
{
    loop_close_fd(&loop, fd);
    ck_assert(scripted_closed(&loop, fd));
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
}

static char received[64];

static void receive_again(struct probe *one)
{
    if (one->result <= 0)
        return;
    strncat(received, one->bytes, (size_t)one->result);
    loop_recv(&loop, &one->op, one->op.fd);
}

START_TEST(receives_byte_by_byte)
{
    char text[] = "answer";
    struct iovec part = {text, 6};
    int turns = 0;

    scripted_receive_at_most(&loop, fd, 1);
    scripted_send_at_most(&loop, fd, 1);
    scripted_peer_send(&loop, fd, STR("question"));
    probe.then = receive_again;
    loop_recv(&loop, &probe.op, fd);
    scripted_settle(&loop, 20);
    ck_assert_str_eq(received, "question");
    ck_assert_int_eq(probe.runs, 8);
    scripted_peer_close(&loop, fd);
    scripted_settle(&loop, 20);
    ck_assert_int_eq(probe.result, 0);
    probe.then = NULL;
    loop_send(&loop, &probe.op, fd, &part, 1, 0);
    for (; !op_idle(&probe.op); turns++)
        turn_some(&loop, 1);
    ck_assert_int_ge(turns, 6);
    ck_assert_int_eq(probe.result, 6);
    ck_assert(str_equal(scripted_sent(&loop, fd), STR("answer")));
}
END_TEST

START_TEST(sends_wait_for_room)
{
    char text[] = "answer";
    struct iovec parts[2] = {{text, 4}, {text + 4, 2}};

    scripted_give_room(&loop, fd, 3);
    loop_send(&loop, &probe.op, fd, parts, 2, 0);
    scripted_settle(&loop, 20);
    ck_assert_int_eq(probe.runs, 0);
    ck_assert(str_equal(scripted_sent(&loop, fd), STR("ans")));
    scripted_give_room(&loop, fd, SIZE_MAX);
    scripted_settle(&loop, 20);
    ck_assert_int_eq(probe.result, 6);
    ck_assert(str_equal(scripted_sent(&loop, fd), STR("answer")));
}
END_TEST

START_TEST(scripted_resets_and_failures_end_the_ops)
{
    char byte = 'x';
    struct iovec part = {&byte, 1};

    loop_recv(&loop, &probe.op, fd);
    scripted_settle(&loop, 9);
    scripted_peer_send(&loop, fd, STR("lost"));
    scripted_peer_reset(&loop, fd);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, -ECONNRESET);
    loop_send(&loop, &probe.op, fd, &part, 1, 0);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, -ECONNRESET);
    loop_send(&loop, &probe.op, fd, &part, 1, 0);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, -EPIPE);
    scripted_fail(&loop, 77, OP_CONNECT, -ECONNREFUSED);
    loop_connect(&loop, &probe.op, 77, NULL, 0);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, -ECONNREFUSED);
    scripted_delay_connect(&loop, 78);
    loop_connect(&loop, &probe.op, 78, NULL, 0);
    scripted_settle(&loop, 9);
    ck_assert(!op_idle(&probe.op));
    scripted_connected(&loop, 78, 0);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, 0);
    scripted_fail(&loop, fd, OP_POLL, POLLERR);
    loop_poll(&loop, &probe.op, fd, POLLOUT);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, POLLERR);
}
END_TEST

START_TEST(time_advances_by_command)
{
    uint64_t start = loop.clock.monotonic_ms;

    loop_timer(&loop, &probe.op, start + 60000);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.runs, 0);
    ck_assert_uint_eq(loop.clock.monotonic_ms, start);
    scripted_advance(&loop, 59999);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.runs, 0);
    scripted_advance(&loop, 1);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.runs, 1);
    ck_assert_int_eq(clock_wall_s(&loop.clock), 1795176060);
    loop_timer(&loop, &probe.op, start + 100000);
    run_until_done(&probe, 2); /* waiting takes no real time and ends at the exact time */
    ck_assert_int_eq(loop_run_iteration(&loop, UINT64_MAX), -EDEADLK);
}
END_TEST

START_TEST(completions_come_in_the_order_of_arrival)
{
    int first = scripted_add_connection(&loop, 50);
    int second = scripted_add_connection(&loop, 50);
    struct sockaddr_storage peer;

    loop_accept(&loop, &probe.op, 50, &peer);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, first);
    ck_assert_int_eq(peer.ss_family, AF_INET);
    loop_accept(&loop, &probe.op, 50, NULL);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, second);
}
END_TEST

static int order[6];
static int order_count;
static struct probe many[6];

static void record_order(struct probe *one)
{
    order[order_count++] = (int)(one - many);
}

/*
 * Completions come in the order of submission without a seed, and in another order with most seeds; always once each.
 */
START_TEST(completions_come_once_each_in_the_order_of_the_seed)
{
    int in_order = 0;

    for (unsigned seed = 0; seed < 20; seed++) {
        bool sorted = true;
        int sum = 0;

        scripted_shuffle(&loop, seed);
        order_count = 0;
        for (int i = 0; i < 6; i++) {
            int one = scripted_socket(&loop);

            probe_init(&many[i], &loop);
            many[i].then = record_order;
            scripted_peer_send(&loop, one, STR("x"));
            loop_recv(&loop, &many[i].op, one);
        }
        scripted_settle(&loop, 9);
        ck_assert_int_eq(order_count, 6);
        for (int i = 0; i < 6; i++) {
            sorted = sorted && order[i] == i;
            sum += 1 << order[i];
        }
        ck_assert_int_eq(sum, 63);
        ck_assert(sorted || seed != 0);
        in_order += sorted;
    }
    ck_assert_int_lt(in_order, 10);
}
END_TEST

/* The two possible results of a cancelled op. */
START_TEST(cancel_wins_or_loses)
{
    for (int loses = 0; loses < 2; loses++) {
        scripted_cancel_loses(&loop, loses);
        scripted_peer_send(&loop, fd, STR("bytes"));
        loop_recv(&loop, &probe.op, fd);
        loop_cancel(&loop, &probe.op);
        scripted_settle(&loop, 9);
        ck_assert_int_eq(probe.result, loses ? 10 : -ECANCELED);
    }
    ck_assert_int_eq(probe.runs, 2);
}
END_TEST

START_TEST(reads_real_files)
{
    int file = pattern_file(3 * LIMIT_ITERATION_BYTES);
    char bytes[100];
    size_t at = 5;

    loop_sendfile(&loop, &probe.op, fd, file, 5, 3 * LIMIT_ITERATION_BYTES, false);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, 3 * LIMIT_ITERATION_BYTES - 5); /* the file ended early */
    check_pattern(scripted_sent(&loop, fd).data, scripted_sent(&loop, fd).length, &at);
    loop_read(&loop, &probe.op, file, 1000, bytes, sizeof(bytes), sizeof(bytes));
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, 100);
    at = 1000;
    check_pattern(bytes, sizeof(bytes), &at);
    close(file);
}
END_TEST

START_TEST(splice_moves_bytes_through_a_pipe)
{
    char bytes[16] = "";
    int pipes[2];

    ck_assert_int_eq(pipe2(pipes, O_NONBLOCK | O_CLOEXEC), 0);
    scripted_peer_send(&loop, fd, STR("through"));
    loop_splice(&loop, &probe.op, fd, pipes[1], 100, 0);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, 7);
    loop_splice(&loop, &probe.op, pipes[0], fd, 100, 0);
    scripted_settle(&loop, 9);
    ck_assert_int_eq(probe.result, 7);
    ck_assert(str_equal(scripted_sent(&loop, fd), STR("through")));
    ck_assert_int_eq(read(pipes[0], bytes, sizeof(bytes)), -1);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        receives_byte_by_byte, sends_wait_for_room, scripted_resets_and_failures_end_the_ops, time_advances_by_command,
        completions_come_in_the_order_of_arrival, completions_come_once_each_in_the_order_of_the_seed,
        cancel_wins_or_loses, reads_real_files, splice_moves_bytes_through_a_pipe,
    };

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(tcase, tests[i]);
}

int main(void)
{
    return run_suite("scripted", add_tests);
}
