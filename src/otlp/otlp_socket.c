/*
 * Waits for the socket and for the end of the exporter at the same time.
 */
#include "otlp/otlp_socket.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
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
int otlp_socket_connect(struct otlp_events *events, const struct otlp_endpoint *endpoint, uint64_t deadline_ms,
                        struct otlp_socket *out_socket)
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
    if (fd < 0)
        return fd;
    *out_socket = (struct otlp_socket){.events = events, .deadline_ms = deadline_ms, .fd = fd};
    return 0;
}

int otlp_socket_write(const struct otlp_socket *socket, struct str bytes)
{
    while (!str_empty(bytes)) {
        ssize_t sent = send(socket->fd, bytes.data, bytes.length, MSG_NOSIGNAL);

        if (sent >= 0)
            bytes = str_skip(bytes, (size_t)sent);
        else if (errno == EAGAIN && !otlp_wait(socket->events, socket->fd, POLLOUT, socket->deadline_ms, false))
            return -ETIMEDOUT;
        else if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return 0;
}

void otlp_socket_offer(const struct otlp_socket *socket, struct str bytes)
{
    (void)!send(socket->fd, bytes.data, bytes.length, MSG_NOSIGNAL);
}

ssize_t otlp_socket_read(const struct otlp_socket *socket, char *into, size_t size)
{
    for (;;) {
        ssize_t received = recv(socket->fd, into, size, 0);

        if (received >= 0)
            return received;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        if (!otlp_wait(socket->events, socket->fd, POLLIN, socket->deadline_ms, false))
            return -ETIMEDOUT;
    }
}

bool otlp_socket_is_quiet(const struct otlp_socket *socket)
{
    struct pollfd entry = {.fd = socket->fd, .events = POLLIN};

    return poll(&entry, 1, 0) == 0;
}

void otlp_socket_close(struct otlp_socket *socket)
{
    close(socket->fd);
    socket->fd = -1;
}
