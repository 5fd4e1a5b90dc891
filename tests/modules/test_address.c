/* worker_connections_per_address: accepted and rejected connections; each connection is counted until it is closed. */
#include "loopback.h"

#include "server/connection.h"

#include <arpa/inet.h>
#include <unistd.h>

#define AT_MOST_TWO "events: {worker_connections_per_address: 2}\nhttp: {server: {listen: 8080}}\n"

static struct loopback server;

/* Opens a connection from that address; "unix": without an address. Returns the client's end. */
static int connect_from(const char *address)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNIX};
    struct sockaddr_in *ip4 = (struct sockaddr_in *)(void *)&peer;
    struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)(void *)&peer;
    int pair[2];

    if (inet_pton(AF_INET, address, &ip4->sin_addr) == 1)
        ip4->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, address, &ip6->sin6_addr) == 1)
        ip6->sin6_family = AF_INET6;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    connection_accept(&server.worker, &server.worker.listeners[0].listener, pair[1], &peer);
    loopback_turn(&server, 1);
    return pair[0];
}

static bool is_open(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) != 0;
}

static void leave(int fd)
{
    unsigned before = server.worker.connections;

    close(fd);
    for (int i = 0; i < 200 && server.worker.connections == before; i++)
        loopback_turn(&server, 5);
    ck_assert_uint_eq(server.worker.connections, before - 1);
}

static void expect(const char *address, bool let_in)
{
    unsigned before = server.worker.connections;
    uint64_t rejected = server.worker.counters->rejected;
    int fd = connect_from(address);

    ck_assert_msg(is_open(fd) == let_in, "%s", address);
    ck_assert_uint_eq(server.worker.connections, before + let_in);
    ck_assert_uint_eq(server.worker.counters->rejected, rejected + !let_in);
    if (let_in)
        leave(fd);
    else
        close(fd);
}

START_TEST(connections_per_address_are_limited)
{
    int first, second;

    loopback_open(&server, AT_MOST_TWO);
    first = connect_from("192.0.2.1");
    second = connect_from("192.0.2.1");
    ck_assert(is_open(first) && is_open(second));
    ck_assert(!loopback_logged(&server, "192.0.2.1"));
    expect("192.0.2.1", false);
    ck_assert(loopback_logged(&server, "192.0.2.1 has 2 connections: further ones are closed"));
    server.logged.length = 0;
    expect("192.0.2.1", false);
    ck_assert(!loopback_logged(&server, "192.0.2.1")); /* logged only once */
    expect("192.0.2.2", true);
    leave(first);
    expect("192.0.2.1", true);
    leave(second);
    ck_assert_uint_eq(server.worker.addresses.count, 0);
    expect("192.0.2.1", true);
    loopback_close(&server);
}
END_TEST

START_TEST(ipv6_addresses_count_by_network)
{
    int fds[2];

    loopback_open(&server, AT_MOST_TWO);
    fds[0] = connect_from("2001:db8:0:1::1");
    fds[1] = connect_from("2001:db8:0:1:ffff::2");
    expect("2001:db8:0:1::3", false);
    ck_assert(loopback_logged(&server, "2001:db8:0:1::3 has 2 connections: further ones are closed"));
    expect("2001:db8:0:2::1", true);
    expect("32.1.13.184", true); /* an IPv4 address with the same first four bytes */
    leave(fds[0]);
    expect("2001:db8:0:1::3", true);
    leave(fds[1]);
    loopback_close(&server);
}
END_TEST

START_TEST(clients_without_address_are_not_counted)
{
    int fds[5];

    loopback_open(&server, AT_MOST_TWO);
    for (int i = 0; i < 5; i++) {
        fds[i] = connect_from("unix");
        ck_assert(is_open(fds[i]));
    }
    ck_assert_uint_eq(server.worker.addresses.count, 0);
    for (int i = 0; i < 5; i++)
        leave(fds[i]);
    loopback_close(&server);
}
END_TEST

START_TEST(unlimited_by_default)
{
    int fds[20];

    loopback_open(&server, "http: {server: {listen: 8080}}\n");
    for (int i = 0; i < 20; i++) {
        fds[i] = connect_from("192.0.2.1");
        ck_assert(is_open(fds[i]));
    }
    ck_assert_uint_eq(server.worker.addresses.count, 0);
    for (int i = 0; i < 20; i++)
        leave(fds[i]);
    loopback_close(&server);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        connections_per_address_are_limited, ipv6_addresses_count_by_network, clients_without_address_are_not_counted,
        unlimited_by_default, NULL,
    };

    return loopback_run("address", tests);
}
