/* The rules in the header of io/loop.h, each on every backend. Rule 5: test_receive.c; rules 4 and 6: test_cancel.c. */
#include "fixture.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define MANY 300

static struct loop loop;
static int depth;

static void recv_inside_done(struct probe *probe)
{
    ck_assert_int_eq(depth, 0);
    depth++;
    if (probe->runs < 3) {
        loop_recv(&loop, &probe->op, probe->op.fd);
        ck_assert(!op_idle(&probe->op));
    }
    depth--;
}

/*
 * Rule 2: `done` runs once per submit, never inside a submit or another `done`, even if bytes are available at each
 * submit.
 */
START_TEST(done_runs_once_and_never_nested)
{
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    probe.then = recv_inside_done;
    unix_pair(&loop, &local, &peer);
    peer_send(peer, "one");
    loop_recv(&loop, &probe.op, local);
    ck_assert_int_eq(probe.runs, 0);
    run_until_done(&probe, 1);
    ck_assert(str_equal(str_of(probe.bytes, (size_t)probe.result), STR("one")));
    turn_some(&loop, 3);
    ck_assert_int_eq(probe.runs, 1);
    peer_send(peer, "two");
    run_until_done(&probe, 2);
    peer_close(peer);
    run_until_done(&probe, 3);
    ck_assert_int_eq(probe.result, 0);
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/* Rule 3: a large send to a slow reader is one op with one result, both as one part and as many. */
START_TEST(short_sends_are_not_visible)
{
    const size_t length = 3 * 1024 * 1024;
    char *memory = pattern_memory(length);
    struct iovec parts[40];
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    tcp_pair(&loop, &local, &peer);
    for (int count = 1; count <= 40; count += 39) {
        size_t share = length / (size_t)count;
        size_t at = 0;

        for (int i = 0; i < count; i++) {
            parts[i].iov_base = memory + (size_t)i * share;
            parts[i].iov_len = i < count - 1 ? share : length - (size_t)i * share;
        }
        loop_send(&loop, &probe.op, local, parts, count, 0);
        while (!op_idle(&probe.op)) {
            turn_some(&loop, 1);
            peer_drain_pattern(peer, &at);
        }
        ck_assert_int_eq(probe.result, (int)length);
        ck_assert_uint_eq(probe.op.send.progress, length);
        while (at < length)
            peer_drain_pattern(peer, &at);
    }
    loop_send(&loop, &probe.op, local, parts, 0, 0);
    run_until_done(&probe, 3);
    ck_assert_int_eq(probe.result, 0);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
    free(memory);
}
END_TEST

/* Rule 3: after the peer closed, a send causes no signal; it gives an error and the number of bytes sent before it. */
START_TEST(send_to_a_closed_peer)
{
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    unix_pair(&loop, &local, &peer);
    peer_close(peer);
    loop_send(&loop, &probe.op, local, &part, 1, 0);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, -EPIPE);
    ck_assert_uint_eq(probe.op.send.progress, 0);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

START_TEST(reset_is_an_error)
{
    struct probe probe;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    tcp_pair(&loop, &local, &peer);
    loop_recv(&loop, &probe.op, local);
    turn_some(&loop, 2);
    peer_reset(peer);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, -ECONNRESET);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

static void on_alarm(int number)
{
}

/* Rule 3: EINTR. The signal handler has no SA_RESTART, and the loop's timer still fires. */
START_TEST(interrupted_calls_are_not_visible)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 2000}, {0, 2000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    struct probe probe;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    loop_timer(&loop, &probe.op, loop.clock.monotonic_ms + 60);
    run_until_done(&probe, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_int_eq(probe.result, 0);
    loop_close(&loop);
}
END_TEST

/* Fills the socket's buffers by sends that do not wait. */
static void fill_socket(int fd)
{
    static const char block[65536];

    while (send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
}

static void drain_socket(int fd)
{
    static char block[65536];

    while (recv(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
        ;
}

/* The wire watches for the peer's end while a control record waits for room in the socket. */
START_TEST(polls_for_room_and_for_the_end)
{
    struct probe room;
    struct probe end;
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&room, &loop);
    probe_init(&end, &loop);
    tcp_pair(&loop, &local, &peer);
    fill_socket(local);
    loop_poll(&loop, &end.op, local, 0);
    loop_poll(&loop, &room.op, local, POLLOUT);
    turn_some(&loop, 20);
    ck_assert_int_eq(room.runs + end.runs, 0);
    loop_cancel(&loop, &room.op);
    run_until_done(&room, 1);
    ck_assert_int_eq(room.result, -ECANCELED);
    loop_poll(&loop, &room.op, local, POLLOUT);
    for (int i = 0; i < 1000 && room.runs == 1; i++) {
        drain_socket(peer);
        turn_some(&loop, 1);
    }
    ck_assert_int_eq(room.runs, 2);
    ck_assert_int_ne(room.result & POLLOUT, 0);
    ck_assert_int_eq(end.runs, 0);
    loop_cancel(&loop, &end.op);
    run_until_done(&end, 1);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Rule 3: more receives in one iteration than lent buffers, and more submits than entries in the submission queue. */
START_TEST(more_ops_than_buffers_and_queue_entries_complete)
{
    static struct probe receives[MANY];
    static struct probe polls[MANY];
    static int local[MANY];
    static int peer[MANY];

    ck_assert_int_gt(MANY, LIMIT_RECEIVE_BUFFERS);
    raise_descriptor_limit();
    if (!open_loop(&loop, _i))
        return;
    for (int i = 0; i < MANY; i++) {
        unix_pair(&loop, &local[i], &peer[i]);
        probe_init(&receives[i], &loop);
        probe_init(&polls[i], &loop);
        loop_recv(&loop, &receives[i].op, local[i]);
        loop_poll(&loop, &polls[i].op, local[i], POLLRDHUP);
    }
    turn_some(&loop, 2);
    for (int i = 0; i < MANY; i++)
        peer_send_bytes(peer[i], &i, sizeof(i));
    for (int i = 0; i < MANY; i++) {
        run_until_done(&receives[i], 1);
        ck_assert_int_eq(receives[i].result, sizeof(i));
        ck_assert_int_eq(memcmp(receives[i].bytes, &i, sizeof(i)), 0);
    }
    for (int i = 0; i < MANY; i++)
        peer_close(peer[i]);
    for (int i = 0; i < MANY; i++) {
        run_until_done(&polls[i], 1);
        ck_assert_int_ne(polls[i].result & POLLRDHUP, 0);
        loop_close_fd(&loop, local[i]);
    }
    loop_close(&loop);
}
END_TEST

/* Rule 7: an op on a sink that is always writable uses only its share of each iteration, so other ops proceed. */
START_TEST(turns_are_shared)
{
    struct probe greedy;
    struct probe modest;
    int file = pattern_file(5 * LIMIT_ITERATION_FILE_BYTES);
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int local;
    int peer;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&greedy, &loop);
    probe_init(&modest, &loop);
    unix_pair(&loop, &local, &peer);
    loop_sendfile(&loop, &greedy.op, sink, file, 0, 5 * LIMIT_ITERATION_FILE_BYTES, false);
    ck_assert_uint_le(greedy.op.file.progress, LIMIT_ITERATION_FILE_BYTES);
    loop_recv(&loop, &modest.op, local);
    peer_send(peer, "x");
    for (int i = 1; i < 4; i++) {
        uint64_t before = greedy.op.file.progress;

        turn_some(&loop, 1);
        ck_assert_uint_le(greedy.op.file.progress - before, LIMIT_ITERATION_FILE_BYTES);
        ck_assert_int_eq(greedy.runs, 0);
    }
    ck_assert_int_eq(modest.runs, 1);
    run_until_done(&greedy, 1);
    ck_assert_int_eq(greedy.result, 5 * LIMIT_ITERATION_FILE_BYTES);

    loop_sendfile(&loop, &greedy.op, sink, file, 0, 5 * LIMIT_ITERATION_FILE_BYTES, false);
    ck_assert(!op_idle(&greedy.op));
    loop_cancel(&loop, &greedy.op);
    run_until_done(&greedy, 2);
    ck_assert_int_eq(greedy.result, -ECANCELED);
    peer_close(peer);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        done_runs_once_and_never_nested, short_sends_are_not_visible, reset_is_an_error,
        interrupted_calls_are_not_visible, more_ops_than_buffers_and_queue_entries_complete, turns_are_shared,
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, tests[i], 0, tested_backend_count());
    tcase_add_loop_test(tcase, send_to_a_closed_peer, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, polls_for_room_and_for_the_end, 0, kernel_backend_count());
}

int main(void)
{
    return run_suite("contract", add_tests);
}
