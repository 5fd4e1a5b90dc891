/* `allow` and `deny`: the most specific range decides, in any order of the directives; invalid values. */
#include "loopback.h"

#include "server/connection.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loopback server;

#define SERVER                                                                                               \
    "http:\n"                                                                                                \
    "  deny: 192.0.2.66\n"                                                                                   \
    "  server:\n"                                                                                            \
    "    listen: 8080\n"                                                                                     \
    "    location:\n"                                                                                        \
    "      /outer/: {return: 200 ok}\n"                                                                      \
    "      /list/: {deny: all, allow: [192.0.2.0/24, '2001:db8::/32'], return: 200 ok,\n"                    \
    "        location: {/list/open/: {allow: all, return: 200 ok}, /list/same/: {return: 200 ok}}}\n"        \
    "      /but/: {deny: [192.0.2.1, all], allow: 192.0.2.0/24, return: 200 ok}\n"                           \
    "      /nested/: {allow: [192.0.2.1, 192.0.0.0/16], deny: [192.0.2.0/24, 0.0.0.0/0], return: 200 ok}\n"  \
    "      /local/: {allow: 'unix:', deny: all, return: 200 ok}\n"                                           \
    "      /ip6/: {deny: ['::/0'], allow: ['2001:db8::7'], return: 200 ok}\n"                                \
    "      /page/: {deny: all, error_page: 403 /said/, return: 200 ok}\n"                                    \
    "      /said/: {return: 200 no}\n"

static const struct {
    const char *path, *client;
    int status;
} cases[] = {
    {"/outer/", "192.0.2.66", 403},
    {"/outer/", "192.0.2.65", 200},
    {"/outer/", "2001:db8::1", 200},
    {"/list/", "192.0.2.1", 200},
    {"/list/", "192.0.2.66", 200},
    {"/list/", "192.0.3.1", 403},
    {"/list/", "2001:db8::1", 200},
    {"/list/", "2001:db9::1", 403},
    {"/list/", "unix", 403},
    {"/list/open/", "192.0.3.1", 200},
    {"/list/same/", "192.0.3.1", 403},
    {"/list/same/", "192.0.2.9", 200},
    {"/but/", "192.0.2.1", 403},
    {"/but/", "192.0.2.2", 200},
    {"/but/", "198.51.100.1", 403},
    {"/nested/", "192.0.2.1", 200},
    {"/nested/", "192.0.2.2", 403},
    {"/nested/", "192.0.3.1", 200},
    {"/nested/", "198.51.100.1", 403},
    {"/nested/", "2001:db8::1", 200},
    {"/local/", "unix", 200},
    {"/local/", "192.0.2.1", 403},
    {"/ip6/", "2001:db8::7", 200},
    {"/ip6/", "2001:db8::8", 403},
    {"/ip6/", "192.0.2.1", 200},
    {"/list/", "::ffff:192.0.2.1", 200},
    {"/list/", "::ffff:192.0.3.1", 403},
    {"/page/", "192.0.2.1", 403},
};

/* Sends a request from a client with that address; "unix": without an address. */
static int request_from(const char *address, const char *path)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNIX};
    struct sockaddr_in *ip4 = (struct sockaddr_in *)(void *)&peer;
    struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)(void *)&peer;
    char text[2048];
    ssize_t length = -1;
    int pair[2];

    if (inet_pton(AF_INET, address, &ip4->sin_addr) == 1)
        ip4->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, address, &ip6->sin6_addr) == 1)
        ip6->sin6_family = AF_INET6;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    connection_accept(&server.worker, &server.worker.listeners[0].listener, pair[1], &peer);
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path);
    ck_assert_int_gt(send(pair[0], text, strlen(text), MSG_NOSIGNAL), 0);
    for (int i = 0; i < 1000 && length <= 0; i++) {
        loopback_turn(&server, 1);
        length = recv(pair[0], text, sizeof(text) - 1, MSG_DONTWAIT);
    }
    close(pair[0]);
    ck_assert_int_gt(length, 12);
    text[length] = '\0';
    return atoi(text + 9);
}

START_TEST(most_specific_range_decides)
{
    loopback_open(&server, SERVER);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = request_from(cases[i].client, cases[i].path);

        ck_assert_msg(status == cases[i].status, "%s from %s: %d", cases[i].path, cases[i].client, status);
    }
    ck_assert(loopback_logged(&server, "access forbidden by rule"));
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_values_are_rejected)
{
    loopback_configuration_rejected("allow: everybody", "\"everybody\" is not an address");
    loopback_configuration_rejected("deny: 10.0.0.1/8", "\"10.0.0.1/8\" is not an address");
    loopback_configuration_rejected("allow: 10.0.0.0/33", "is not an address");
    loopback_configuration_rejected("allow: '2001:db8::/129'", "is not an address");
    loopback_configuration_rejected("deny: ''", "is not an address");
    loopback_configuration_rejected("deny: 10.0.0.0/8\n    allow: [127.0.0.1, 10.0.0.0/8]",
                                    "denied here, and allowed in line 5");
    loopback_configuration_rejected("satisfy: some", "some");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {most_specific_range_decides, invalid_values_are_rejected, NULL};

    return loopback_run("access", tests);
}
