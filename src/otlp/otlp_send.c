/*
 * Connects to the addresses of the collector in turn, sends head and body, and reads the response.
 */
#include "otlp/otlp_send.h"

#include "base/clock.h"
#include "base/limits.h"
#include "build_options.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

uint64_t otlp_now_ms(void)
{
    return clock_monotonic_us() / 1000;
}

static void channel_closed(struct otlp_events *events)
{
    events->channel_fd = -1;
    events->ending = true;
    events->end_ms = otlp_now_ms() + LIMIT_OTLP_FLUSH_MS;
}

bool otlp_wait(struct otlp_events *events, int fd, short wanted, uint64_t deadline_ms, bool until_ending)
{
    for (;;) {
        struct pollfd entries[] = {{.fd = events->channel_fd, .events = POLLIN}, {.fd = fd, .events = wanted}};
        uint64_t now = otlp_now_ms();

        if (events->ending && until_ending)
            return false;
        if (events->ending && events->end_ms < deadline_ms)
            deadline_ms = events->end_ms;
        if (poll(entries, 2, now >= deadline_ms ? 0 : (int)(deadline_ms - now)) < 0 && errno != EINTR)
            return false;
        if (entries[1].revents)
            return true;
        if (entries[0].revents)
            channel_closed(events);
        else if (now >= deadline_ms)
            return false;
    }
}

/* Returns a connected socket, or -errno. */
static int connect_address(struct otlp_events *events, const struct addrinfo *address, uint64_t deadline_ms)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return -errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0) {
        error = errno;
        if (error == EINPROGRESS && !otlp_wait(events, fd, POLLOUT, deadline_ms, false))
            error = ETIMEDOUT;
        else if (error == EINPROGRESS && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            error = errno;
    }
    if (error == 0)
        return fd;
    close(fd);
    return -error;
}

/* getaddrinfo(3) may wait for name servers; the master kills an exporter that does not end in time. */
static int connect_endpoint(struct otlp_events *events, const struct otlp_endpoint *endpoint, uint64_t deadline_ms)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *addresses = NULL;
    char host[LIMIT_OTLP_URL + 1], port[8];
    int fd = -EHOSTUNREACH;

    snprintf(host, sizeof(host), STR_FMT, STR_ARG(endpoint->host));
    snprintf(port, sizeof(port), STR_FMT, STR_ARG(endpoint->port));
    if (getaddrinfo(host, port, &hints, &addresses) != 0)
        return -EHOSTUNREACH;
    for (const struct addrinfo *address = addresses; address && fd < 0; address = address->ai_next)
        fd = connect_address(events, address, deadline_ms);
    freeaddrinfo(addresses);
    return fd;
}

static int send_all(struct otlp_events *events, int fd, struct str bytes, uint64_t deadline_ms)
{
    while (!str_empty(bytes)) {
        ssize_t sent = send(fd, bytes.data, bytes.length, MSG_NOSIGNAL);

        if (sent >= 0)
            bytes = str_skip(bytes, (size_t)sent);
        else if (errno == EAGAIN && !otlp_wait(events, fd, POLLOUT, deadline_ms, false))
            return -ETIMEDOUT;
        else if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return 0;
}

/* `room` has LIMIT_OTLP_RESPONSE bytes. */
static int read_response(struct otlp_events *events, int fd, char *room, uint64_t deadline_ms,
                         struct otlp_response *out_response)
{
    size_t length = 0;
    int result = 0;

    while (result == 0) {
        ssize_t received = recv(fd, room + length, LIMIT_OTLP_RESPONSE - length, 0);

        if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!otlp_wait(events, fd, POLLIN, deadline_ms, false))
                return -ETIMEDOUT;
            continue;
        }
        if (received < 0)
            return -errno;
        length += (size_t)received;
        result = otlp_response_parse(str_of(room, length), received == 0, out_response);
    }
    return result < 0 ? result : 0;
}

static int exchange_messages(struct otlp_events *events, int fd, struct str head, struct str body, uint64_t deadline_ms,
                             struct otlp_response *out_response)
{
    char *room = malloc(LIMIT_OTLP_RESPONSE);
    int error = room ? send_all(events, fd, head, deadline_ms) : -ENOMEM;

    if (error == 0)
        error = send_all(events, fd, body, deadline_ms);
    /* A collector may respond before it has read the request: its response is read then, too. */
    if (error == 0 || error == -EPIPE || error == -ECONNRESET) {
        int received = read_response(events, fd, room, deadline_ms, out_response);

        error = received == 0 || error == 0 ? received : error;
    }
    free(room);
    return error;
}

int otlp_send(struct otlp_events *events, const struct otlp_endpoint *endpoint, struct str body,
              struct otlp_response *out_response)
{
    uint64_t deadline_ms = otlp_now_ms() + LIMIT_OTLP_SEND_MS;
    char head[2 * LIMIT_OTLP_URL + 512];
    int length = snprintf(head, sizeof(head),
                          "POST " STR_FMT " HTTP/1.1\r\nHost: " STR_FMT "\r\nUser-Agent: sluice/" SLUICE_VERSION
                          "\r\nContent-Type: application/x-protobuf\r\nContent-Length: %zu\r\n"
                          "Connection: close\r\n\r\n",
                          STR_ARG(endpoint->path), STR_ARG(endpoint->authority), body.length);
    int fd, error;

    if (length < 0 || (size_t)length >= sizeof(head))
        return -EINVAL;
    fd = connect_endpoint(events, endpoint, deadline_ms);
    if (fd < 0)
        return fd;
    error = exchange_messages(events, fd, str_of(head, (size_t)length), body, deadline_ms, out_response);
    close(fd);
    return error;
}
