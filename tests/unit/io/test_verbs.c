/* Each verb on every backend of the kernel; those of files: test_files.c. */
#include "fixture.h"

#include "io/listener.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loop loop;
static struct probe probe;

static bool set_up(int index)
{
    probe_init(&probe, &loop);
    return open_loop(&loop, index);
}

START_TEST(connects_and_is_refused)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct listen_address from = {.length = sizeof(*v4)};
    socklen_t length = sizeof(*v4);
    int listener;
    int fd;

    if (!set_up(_i))
        return;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.socket = address;
    listener = listener_open(&from, 8);
    ck_assert_int_ge(listener, 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    loop_connect(&loop, &probe.op, fd, &address, length);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, 0);
    loop_close_fd(&loop, fd);
    close(listener);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    loop_connect(&loop, &probe.op, fd, &address, length);
    run_until_done(&probe, 2);
    ck_assert_int_eq(probe.result, -ECONNREFUSED);
    loop_close_fd(&loop, fd);
    loop_close(&loop);
}
END_TEST

START_TEST(bad_descriptors_are_errors)
{
    char byte = 'x';
    struct iovec part = {&byte, 1};
    int file = pattern_file(10);

    if (!set_up(_i))
        return;
    loop_recv(&loop, &probe.op, 999);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, -EBADF);
    loop_recv(&loop, &probe.op, file);
    run_until_done(&probe, 2);
    ck_assert_int_eq(probe.result, -ENOTSOCK);
    loop_send(&loop, &probe.op, file, &part, 1, 0);
    run_until_done(&probe, 3);
    ck_assert_int_eq(probe.result, -ENOTSOCK);
    loop_accept(&loop, &probe.op, file, NULL);
    run_until_done(&probe, 4);
    ck_assert_int_eq(probe.result, -ENOTSOCK);
    loop_read(&loop, &probe.op, -1, 0, &byte, 1, 0);
    run_until_done(&probe, 5);
    ck_assert_int_eq(probe.result, -EBADF);
    loop_close_fd(&loop, file);
    loop_close(&loop);
}
END_TEST

START_TEST(poll_completes_for_each_event)
{
    int local;
    int peer;
    int file = pattern_file(10);

    if (!set_up(_i))
        return;
    unix_pair(&loop, &local, &peer);
    loop_poll(&loop, &probe.op, local, POLLOUT);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, POLLOUT);
    loop_poll(&loop, &probe.op, local, POLLIN);
    turn_some(&loop, 3);
    ck_assert_int_eq(probe.runs, 1);
    peer_send(peer, "x");
    run_until_done(&probe, 2);
    ck_assert_int_eq(probe.result, POLLIN);
    for (int i = 3; i < 6; i++) { /* level-triggered, as poll(2): each poll completes while the byte is unread */
        loop_poll(&loop, &probe.op, local, POLLIN);
        run_until_done(&probe, i);
        ck_assert_int_eq(probe.result, POLLIN);
    }
    loop_recv(&loop, &probe.op, local);
    run_until_done(&probe, 6);
    loop_poll(&loop, &probe.op, local, POLLIN);
    turn_some(&loop, 3);
    ck_assert_int_eq(probe.runs, 6);
    peer_close(peer);
    run_until_done(&probe, 7);
    ck_assert_int_ne(probe.result & POLLIN, 0);
    for (int i = 8; i < 10; i++) {
        loop_poll(&loop, &probe.op, local, POLLRDHUP);
        run_until_done(&probe, i);
        ck_assert_int_ne(probe.result & POLLRDHUP, 0);
    }
    loop_poll(&loop, &probe.op, file, POLLIN);
    run_until_done(&probe, 10);
    ck_assert_int_eq(probe.result, POLLIN);
    loop_close_fd(&loop, file);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

static void check_bytes(const char *bytes, size_t at, size_t length)
{
    check_pattern(bytes, length, &at);
}

/* splice(2) returns EAGAIN for a full pipe and for an empty socket. Neither may stall the transfer. */
START_TEST(rule_18_splices_through_a_full_pipe)
{
    const size_t length = 1024 * 1024;
    char *memory = pattern_memory(length);
    size_t given = 0;
    size_t at = 0;
    struct probe out;
    int pipes[2];
    int local;
    int peer;

    if (!set_up(_i))
        return;
    probe_init(&out, &loop);
    unix_pair(&loop, &local, &peer);
    ck_assert_int_eq(pipe2(pipes, O_NONBLOCK | O_CLOEXEC), 0);
    loop_splice(&loop, &probe.op, local, pipes[1], length, 0);
    for (int i = 0; at < length && i < 100000; i++) {
        char bytes[4096];
        ssize_t count = given < length ? write(peer, memory + given, length - given) : 0;

        given += count > 0 ? (size_t)count : 0;
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1), 0);
        if (op_idle(&probe.op) && probe.result > 0)
            loop_splice(&loop, &probe.op, local, pipes[1], length, 0);
        if (i % 3)
            continue; /* the pipe fills up meanwhile */
        while ((count = read(pipes[0], bytes, sizeof(bytes))) > 0) {
            check_bytes(bytes, at, (size_t)count);
            at += (size_t)count;
        }
    }
    ck_assert_uint_eq(at, length);
    peer_close(peer);
    do { /* the bytes read last may belong to an operation that has not completed */
        if (op_idle(&probe.op))
            loop_splice(&loop, &probe.op, local, pipes[1], length, 0);
        run_until_done(&probe, probe.runs + 1);
    } while (probe.result > 0);
    ck_assert_int_eq(probe.result, 0);
    close(pipes[0]);
    loop_close_fd(&loop, pipes[1]);
    loop_close_fd(&loop, local);
    loop_close(&loop);
    free(memory);
}
END_TEST

START_TEST(accepts_one_at_a_time)
{
    struct listen_address address;
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    char name[64];
    int listener;
    int clients[3];

    if (!set_up(_i))
        return;
    snprintf(name, sizeof(name), "unix:/tmp/sluice-verbs-%ld.sock", (long)getpid());
    ck_assert_int_eq(listen_address_parse(str_from(name), &address), 0);
    listener = listener_open(&address, 8);
    loop_accept(&loop, &probe.op, listener, &peer);
    turn_some(&loop, 2);
    for (int i = 0; i < 3; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(clients[i], (struct sockaddr *)&address.socket, address.length), 0);
    }
    for (int i = 1; i <= 3; i++) {
        run_until_done(&probe, i);
        turn_some(&loop, 2);
        ck_assert_int_eq(probe.runs, i);
        ck_assert_int_ge(probe.result, 0);
        ck_assert_int_eq(peer.ss_family, AF_UNIX);
        ck_assert_int_ne(fcntl(probe.result, F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_ne(fcntl(probe.result, F_GETFD) & FD_CLOEXEC, 0);
        loop_close_fd(&loop, probe.result);
        loop_accept(&loop, &probe.op, listener, &peer);
    }
    loop_cancel(&loop, &probe.op);
    run_until_done(&probe, 4);
    ck_assert_int_eq(probe.result, -ECANCELED);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    loop_close_fd(&loop, listener);
    unlink(name + 5);
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        connects_and_is_refused, bad_descriptors_are_errors, poll_completes_for_each_event,
        rule_18_splices_through_a_full_pipe, accepts_one_at_a_time,
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, tests[i], 0, kernel_backend_count());
}

int main(void)
{
    return run_suite("verbs", add_tests);
}
