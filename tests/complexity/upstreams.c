#include "upstreams.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define UPSTREAMS 16

struct test_upstream {
    int fd;                         /* -1: unused */
    struct str answer;              /* unsent rest of the response */
    unsigned ends;                  /* number of empty lines still to be received before the response */
    bool fastcgi;
    uint64_t last;                  /* the last bytes of the request */
};

static struct {
    int http, fastcgi;              /* listening sockets */
    struct test_upstream connections[UPSTREAMS];
    struct str first, later;
    unsigned answered;
    bool bodies;
    size_t piece;
} upstreams;

static int listen_at(struct loopback *server, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", loopback_path(server, name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    return fd;
}

static void accept_from(int listener, bool fastcgi)
{
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    size_t i = 0;
    int fd;

    if (poll(&waiting, 1, 0) == 0) /* much less work for the kernel than accept4 */
        return;
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    while (i < UPSTREAMS && upstreams.connections[i].fd >= 0)
        i++;
    ck_assert_uint_lt(i, UPSTREAMS);
    upstreams.connections[i] =
        (struct test_upstream){.fd = fd, .fastcgi = fastcgi, .ends = upstreams.bodies ? 2 : 1};
}

/* An empty line ends a head, or the body of a kind with a body. An empty STDIN record ends a FastCGI request. */
static void count_ends(struct test_upstream *upstream, const char *bytes, size_t length)
{
    uint64_t end = upstream->fastcgi ? 0x0105000100000000 : 0x0d0a0d0a;
    uint64_t mask = upstream->fastcgi ? UINT64_MAX : UINT32_MAX;

    for (size_t i = 0; i < length && upstream->ends > 0; i++) {
        upstream->last = upstream->last << 8 | (unsigned char)bytes[i];
        upstream->ends -= (upstream->last & mask) == end;
    }
}

static void serve(struct test_upstream *upstream)
{
    char bytes[65536];
    struct str rest;
    ssize_t length = read(upstream->fd, bytes, sizeof(bytes));
    ssize_t sent;

    if (length == 0 || (length < 0 && errno != EAGAIN)) {
        close(upstream->fd);
        upstream->fd = -1;
        return;
    }
    if (length > 0)
        count_ends(upstream, bytes, (size_t)length);
    if (upstream->ends == 0) {
        upstream->answer = upstreams.answered++ ? upstreams.later : upstreams.first;
        upstream->ends = upstreams.bodies ? 2 : 1;
    }
    rest = upstreams.piece ? str_slice(upstream->answer, 0, upstreams.piece) : upstream->answer;
    sent = rest.length ? send(upstream->fd, rest.data, rest.length, MSG_NOSIGNAL) : 0;
    upstream->answer = str_skip(upstream->answer, sent > 0 ? (size_t)sent : 0);
}

void upstreams_serve(void)
{
    accept_from(upstreams.http, false);
    accept_from(upstreams.fastcgi, true);
    for (size_t i = 0; i < UPSTREAMS; i++) {
        if (upstreams.connections[i].fd >= 0)
            serve(&upstreams.connections[i]);
    }
}

void upstreams_disconnect(void)
{
    for (size_t i = 0; i < UPSTREAMS; i++) {
        if (upstreams.connections[i].fd >= 0)
            close(upstreams.connections[i].fd);
        upstreams.connections[i].fd = -1;
    }
}

void upstreams_open(struct loopback *server)
{
    upstreams.http = listen_at(server, "http");
    upstreams.fastcgi = listen_at(server, "fastcgi");
    for (size_t i = 0; i < UPSTREAMS; i++)
        upstreams.connections[i].fd = -1;
}

void upstreams_set_responses(struct str first, struct str later, size_t piece, bool bodies)
{
    upstreams.first = first;
    upstreams.later = later;
    upstreams.piece = piece;
    upstreams.bodies = bodies;
    upstreams.answered = 0;
}
