/* Addresses; accepting connections, also when descriptors run out. */
#include "fixture.h"

#include "io/listener.h"

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

struct door {
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
    struct door *door = owner;

    ck_assert_int_eq(peer->ss_family, door->address.socket.ss_family);
    ck_assert_int_lt(door->accepted, 64);
    door->fds[door->accepted++] = fd;
    if (door->accepted == door->pause_at)
        listener_pause(listener);
}

static void listener_stopped(void *owner, struct listener *listener)
{
    ((struct door *)owner)->stopped++;
}

/* Opens a listener on a port that the kernel chooses. */
static bool listening_open(struct door *door, int index)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&door->address.socket;

    memset(door, 0, sizeof(*door));
    if (!open_loop(&door->loop, index))
        return false;
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    door->address.length = sizeof(door->address.socket);
    door->listener.fd = listener_open(&door->address, 128);
    ck_assert_int_ge(door->listener.fd, 0);
    getsockname(door->listener.fd, (struct sockaddr *)&door->address.socket, &door->address.length);
    door->listener.loop = &door->loop;
    door->listener.accept_failures = &door->accept_failures;
    door->listener.accepted = connection_accepted;
    door->listener.stopped = listener_stopped;
    door->listener.owner = door;
    listener_start(&door->listener);
    return true;
}

/* `stopped` is called once, however often listener_stop is called. */
static void listening_close(struct door *door)
{
    int before = door->stopped;

    listener_stop(&door->listener);
    listener_stop(&door->listener);
    ck_assert_int_eq(door->stopped, before);
    for (int i = 0; i < 100 && door->stopped == 0; i++)
        loop_run_iteration(&door->loop, door->loop.clock.monotonic_ms + 10);
    ck_assert_int_eq(door->stopped, 1);
    ck_assert_uint_eq(door->loop.in_flight, 0);
    for (int i = 0; i < door->accepted; i++)
        loop_close_fd(&door->loop, door->fds[i]);
    loop_close_fd(&door->loop, door->listener.fd);
    loop_close(&door->loop);
}

static int connect_client(const struct door *door)
{
    int fd = socket(door->address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&door->address.socket, door->address.length), 0);
    return fd;
}

static void wait_accepted(struct door *door, int count)
{
    for (int i = 0; i < 500 && door->accepted < count; i++)
        ck_assert_int_ge(loop_run_iteration(&door->loop, door->loop.clock.monotonic_ms + 10), 0);
    ck_assert_int_eq(door->accepted, count);
}

START_TEST(connections_are_accepted_until_paused_and_after_resuming)
{
    struct door door;
    int clients[20];
    int on = 0;
    socklen_t length = sizeof(on);

    if (!listening_open(&door, _i))
        return;
    for (int i = 0; i < 10; i++)
        clients[i] = connect_client(&door);
    wait_accepted(&door, 10);
    ck_assert_int_eq(getsockopt(door.fds[0], IPPROTO_TCP, TCP_NODELAY, &on, &length), 0);
    ck_assert_int_ne(on, 0);
    door.pause_at = 13;
    for (int i = 10; i < 20; i++)
        clients[i] = connect_client(&door);
    wait_accepted(&door, 13);
    turn_some(&door.loop, 10);
    ck_assert_int_eq(door.accepted, 13);
    listener_resume(&door.listener);
    wait_accepted(&door, 20);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
    listening_close(&door);
}
END_TEST

/*
 * Closing a listening socket resets the connections in its queue, so the listener accepts them first. It does not wait
 * for later connections.
 */
START_TEST(queued_connections_are_drained)
{
    struct door door;
    int clients[20];

    if (!listening_open(&door, _i))
        return;
    turn_some(&door.loop, 3);
    for (int i = 0; i < 20; i++)
        clients[i] = connect_client(&door);
    listener_drain(&door.listener);
    listener_drain(&door.listener);
    ck_assert_int_eq(door.stopped, 0);
    for (int i = 0; i < 100 && door.stopped == 0; i++)
        ck_assert_int_ge(loop_run_iteration(&door.loop, door.loop.clock.monotonic_ms + 10), 0);
    ck_assert_int_eq(door.accepted, 20);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
    listening_close(&door);
}
END_TEST

/* While accepting is paused, the connections stay in the queue. The listener stops after they were accepted. */
START_TEST(drain_waits_while_paused)
{
    struct door door;
    int clients[6];

    if (!listening_open(&door, _i))
        return;
    door.pause_at = 3;
    for (int i = 0; i < 6; i++)
        clients[i] = connect_client(&door);
    wait_accepted(&door, 3);
    listener_drain(&door.listener);
    turn_some(&door.loop, 10);
    ck_assert_int_eq(door.accepted, 3);
    ck_assert_int_eq(door.stopped, 0);
    listener_resume(&door.listener);
    wait_accepted(&door, 6);
    for (int i = 0; i < 100 && door.stopped == 0; i++)
        ck_assert_int_ge(loop_run_iteration(&door.loop, door.loop.clock.monotonic_ms + 10), 0);
    ck_assert_int_eq(door.stopped, 1);
    for (int i = 0; i < 6; i++)
        close(clients[i]);
    listening_close(&door);
}
END_TEST

/*
 * Without free descriptors the listener accepts and closes one connection, pauses, and resumes when descriptors are
 * free again.
 */
START_TEST(accepting_pauses_without_descriptors)
{
    struct door door;
    struct rlimit limit;
    struct rlimit none;
    int clients[3];
    int turns;

    if (!listening_open(&door, _i))
        return;
    turn_some(&door.loop, 3);
    for (int i = 0; i < 3; i++)
        clients[i] = connect_client(&door);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = (rlim_t)clients[2] + 1;
    for (int fd = 3; fd < clients[2]; fd++) { /* so that no lower descriptor is free */
        if (fcntl(fd, F_GETFD) < 0)
            dup2(clients[0], fd);
    }
    setrlimit(RLIMIT_NOFILE, &none);
    for (turns = 0; turns < 50 && !door.listener.accept_paused; turns++)
        ck_assert_int_ge(loop_run_iteration(&door.loop, door.loop.clock.monotonic_ms + 10), 0);
    ck_assert(door.listener.accept_paused);
    ck_assert_int_eq(door.accepted, 0);
    ck_assert_int_ge(door.listener.spare_fd, 0);
    for (turns = 0; turns < 5; turns++) /* paused: no events until the timer */
        ck_assert_int_eq(loop_run_iteration(&door.loop, 0), 0);
    setrlimit(RLIMIT_NOFILE, &limit);
    wait_accepted(&door, 2);
    ck_assert(!door.listener.accept_paused);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    listening_close(&door);
}
END_TEST

START_TEST(socket_path_in_use_is_refused_and_a_stale_one_replaced)
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

START_TEST(address_in_use_is_refused)
{
    struct listen_address address;

    ck_assert_int_eq(listen_address_parse(STR("192.0.2.1:8080"), &address), 0);
    ck_assert_int_eq(listener_open(&address, 8), -EADDRNOTAVAIL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listener");
    TCase *group = tcase_create("listener");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(group, addresses_are_parsed, 0, (int)(sizeof(addresses) / sizeof(addresses[0])));
    tcase_add_test(group, format_is_bounded);
    tcase_add_test(group, socket_path_in_use_is_refused_and_a_stale_one_replaced);
    tcase_add_test(group, address_in_use_is_refused);
    tcase_add_loop_test(group, connections_are_accepted_until_paused_and_after_resuming, 0, kernel_backend_count());
    tcase_add_loop_test(group, queued_connections_are_drained, 0, kernel_backend_count());
    tcase_add_loop_test(group, drain_waits_while_paused, 0, kernel_backend_count());
    tcase_add_loop_test(group, accepting_pauses_without_descriptors, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
