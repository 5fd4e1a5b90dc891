/* Addresses; accepting connections, also when descriptors run out. */
#include "fixture.h"

#include "io/listener.h"

#include "../runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

static const struct {
    const char *text;
    const char *formatted;          /* NULL: invalid */
} addresses[] = {
    {"8080", "0.0.0.0:8080"},
    {"*:80", "0.0.0.0:80"},
    {"*", "0.0.0.0:80"},
    {"127.0.0.1:8443", "127.0.0.1:8443"},
    {"127.0.0.1", "127.0.0.1:80"},
    {"[::1]:443", "[::1]:443"},
    {"[::]", "[::]:80"},
    {"unix:/run/x.sock", "unix:/run/x.sock"},
    {"", NULL},
    {"0", NULL},
    {"65536", NULL},
    {"127.0.0.1:0", NULL},
    {"127.0.0.1:", NULL},
    {"127.0.0.1:x", NULL},
    {"127.0.0.1:80:90", NULL},
    {"1.2.3", NULL},
    {"::1", NULL},
    {"[::1", NULL},
    {"[::1]443", NULL},
    {"[::1]:", NULL},
    {"[1.2.3.4]:80", NULL},
    {"localhost:80", NULL},
    {"unix:", NULL},
    {"-80", NULL},
    {"unix:/012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890123456789012345678901234567890",
     NULL},
};

START_TEST(addresses_are_parsed)
{
    struct listen_address address = {.length = 4711};
    char into[128];
    int error = listen_address_parse(str_from(addresses[_i].text), &address);

    if (!addresses[_i].formatted) {
        ck_assert_int_eq(error, -EINVAL);
        ck_assert_uint_eq(address.length, 4711);
        return;
    }
    ck_assert_int_eq(error, 0);
    ck_assert(str_equal(listen_address_format(&address, into, sizeof(into)), str_from(addresses[_i].formatted)));
}
END_TEST

START_TEST(format_is_bounded)
{
    struct listen_address address;
    char into[8];

    ck_assert_int_eq(listen_address_parse(STR("127.0.0.1:8443"), &address), 0);
    ck_assert(str_equal(listen_address_format(&address, into, sizeof(into)), STR("127.0.0")));
}
END_TEST

struct listening {
    struct log_limit accept_failures;
    struct loop loop;
    struct listener listener;
    struct listen_address address;
    int accepted;
    int stopped;
    int pause_at;
    int fds[64];
};

static void connection_accepted(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct listening *listening = owner;

    ck_assert_int_eq(peer->ss_family, listening->address.socket.ss_family);
    ck_assert_int_lt(listening->accepted, 64);
    listening->fds[listening->accepted++] = fd;
    if (listening->accepted == listening->pause_at)
        listener_pause(listener);
}

static void listener_stopped(void *owner, struct listener *listener)
{
    ((struct listening *)owner)->stopped++;
}

/* Opens a listener on a port that the kernel chooses. */
static bool listening_open(struct listening *listening, int index)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&listening->address.socket;

    memset(listening, 0, sizeof(*listening));
    if (!open_loop(&listening->loop, index))
        return false;
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening->address.length = sizeof(listening->address.socket);
    listening->listener.fd = listener_open(&listening->address, 128);
    ck_assert_int_ge(listening->listener.fd, 0);
    getsockname(listening->listener.fd, (struct sockaddr *)&listening->address.socket, &listening->address.length);
    listening->listener.loop = &listening->loop;
    listening->listener.accept_failures = &listening->accept_failures;
    listening->listener.accepted = connection_accepted;
    listening->listener.stopped = listener_stopped;
    listening->listener.owner = listening;
    listener_start(&listening->listener);
    return true;
}

/* `stopped` is called once, however often listener_stop is called. */
static void listening_close(struct listening *listening)
{
    int before = listening->stopped;

    listener_stop(&listening->listener);
    listener_stop(&listening->listener);
    ck_assert_int_eq(listening->stopped, before);
    for (int i = 0; i < 100 && listening->stopped == 0; i++)
        loop_run_iteration(&listening->loop, listening->loop.clock.monotonic_ms + 10);
    ck_assert_int_eq(listening->stopped, 1);
    ck_assert_uint_eq(listening->loop.in_flight, 0);
    for (int i = 0; i < listening->accepted; i++)
        loop_close_fd(&listening->loop, listening->fds[i]);
    loop_close_fd(&listening->loop, listening->listener.fd);
    loop_close(&listening->loop);
}

static int connect_client(const struct listening *listening)
{
    int fd = socket(listening->address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&listening->address.socket, listening->address.length), 0);
    return fd;
}

static void wait_accepted(struct listening *listening, int count)
{
    for (int i = 0; i < 500 && listening->accepted < count; i++)
        ck_assert_int_ge(loop_run_iteration(&listening->loop, listening->loop.clock.monotonic_ms + 10), 0);
    ck_assert_int_eq(listening->accepted, count);
}

START_TEST(connections_are_accepted_until_paused_and_after_resuming)
{
    struct listening listening;
    int clients[20];
    int on = 0;
    socklen_t length = sizeof(on);

    if (!listening_open(&listening, _i))
        return;
    for (int i = 0; i < 10; i++)
        clients[i] = connect_client(&listening);
    wait_accepted(&listening, 10);
    ck_assert_int_eq(getsockopt(listening.fds[0], IPPROTO_TCP, TCP_NODELAY, &on, &length), 0);
    ck_assert_int_ne(on, 0);
    listening.pause_at = 13;
    for (int i = 10; i < 20; i++)
        clients[i] = connect_client(&listening);
    wait_accepted(&listening, 13);
    turn_some(&listening.loop, 10);
    ck_assert_int_eq(listening.accepted, 13);
    listener_resume(&listening.listener);
    wait_accepted(&listening, 20);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
    listening_close(&listening);
}
END_TEST

/*
 * Closing a listening socket resets the connections in its queue, so the listener accepts them first. It does not wait
 * for later connections.
 */
START_TEST(queued_connections_are_drained)
{
    struct listening listening;
    int clients[20];

    if (!listening_open(&listening, _i))
        return;
    turn_some(&listening.loop, 3);
    for (int i = 0; i < 20; i++)
        clients[i] = connect_client(&listening);
    listener_drain(&listening.listener);
    listener_drain(&listening.listener);
    ck_assert_int_eq(listening.stopped, 0);
    for (int i = 0; i < 100 && listening.stopped == 0; i++)
        ck_assert_int_ge(loop_run_iteration(&listening.loop, listening.loop.clock.monotonic_ms + 10), 0);
    ck_assert_int_eq(listening.accepted, 20);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
    listening_close(&listening);
}
END_TEST

/* While accepting is paused, the connections stay in the queue. The listener stops after they were accepted. */
START_TEST(drain_waits_while_paused)
{
    struct listening listening;
    int clients[6];

    if (!listening_open(&listening, _i))
        return;
    listening.pause_at = 3;
    for (int i = 0; i < 6; i++)
        clients[i] = connect_client(&listening);
    wait_accepted(&listening, 3);
    listener_drain(&listening.listener);
    turn_some(&listening.loop, 10);
    ck_assert_int_eq(listening.accepted, 3);
    ck_assert_int_eq(listening.stopped, 0);
    listener_resume(&listening.listener);
    wait_accepted(&listening, 6);
    for (int i = 0; i < 100 && listening.stopped == 0; i++)
        ck_assert_int_ge(loop_run_iteration(&listening.loop, listening.loop.clock.monotonic_ms + 10), 0);
    ck_assert_int_eq(listening.stopped, 1);
    for (int i = 0; i < 6; i++)
        close(clients[i]);
    listening_close(&listening);
}
END_TEST

/*
 * Without free descriptors the listener accepts and closes one connection, pauses, and resumes when descriptors are
 * free again.
 */
START_TEST(accepting_pauses_without_descriptors)
{
    struct listening listening;
    struct rlimit limit;
    struct rlimit none;
    int clients[3];
    int turns;

    if (!listening_open(&listening, _i))
        return;
    turn_some(&listening.loop, 3);
    for (int i = 0; i < 3; i++)
        clients[i] = connect_client(&listening);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = (rlim_t)clients[2] + 1;
    for (int fd = 3; fd < clients[2]; fd++) { /* so that no lower descriptor is free */
        if (fcntl(fd, F_GETFD) < 0)
            dup2(clients[0], fd);
    }
    setrlimit(RLIMIT_NOFILE, &none);
    for (turns = 0; turns < 50 && !listening.listener.accept_paused; turns++)
        ck_assert_int_ge(loop_run_iteration(&listening.loop, listening.loop.clock.monotonic_ms + 10), 0);
    ck_assert(listening.listener.accept_paused);
    ck_assert_int_eq(listening.accepted, 0);
    ck_assert_int_ge(listening.listener.spare_fd, 0);
    for (turns = 0; turns < 5; turns++) /* paused: no events until the timer */
        ck_assert_int_eq(loop_run_iteration(&listening.loop, 0), 0);
    setrlimit(RLIMIT_NOFILE, &limit);
    wait_accepted(&listening, 2);
    ck_assert(!listening.listener.accept_paused);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    listening_close(&listening);
}
END_TEST

START_TEST(socket_path_in_use_is_rejected_and_a_stale_one_replaced)
{
    struct listen_address address;
    char name[64];
    int first;
    int second;

    snprintf(name, sizeof(name), "unix:/tmp/sluice-listen-%ld.sock", (long)getpid());
    ck_assert_int_eq(listen_address_parse(str_from(name), &address), 0);
    first = listener_open(&address, 8);
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(listener_open(&address, 8), -EADDRINUSE);
    close(first);
    second = listener_open(&address, 8);
    ck_assert_int_ge(second, 0);
    close(second);
    unlink(name + 5);
}
END_TEST

START_TEST(address_in_use_is_rejected)
{
    struct listen_address address;

    ck_assert_int_eq(listen_address_parse(STR("192.0.2.1:8080"), &address), 0);
    ck_assert_int_eq(listener_open(&address, 8), -EADDRNOTAVAIL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, addresses_are_parsed, 0, (int)(sizeof(addresses) / sizeof(addresses[0])));
    tcase_add_test(tcase, format_is_bounded);
    tcase_add_test(tcase, socket_path_in_use_is_rejected_and_a_stale_one_replaced);
    tcase_add_test(tcase, address_in_use_is_rejected);
    tcase_add_loop_test(tcase, connections_are_accepted_until_paused_and_after_resuming, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, queued_connections_are_drained, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, drain_waits_while_paused, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, accepting_pauses_without_descriptors, 0, kernel_backend_count());
}

int main(void)
{
    return run_suite("listener", add_tests);
}
