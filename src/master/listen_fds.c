/*
 * The passed sockets are stored as the sockets of a generation with one slot, so that sockets_open inherits them as in
 * a reload. All workers accept from one socket.
 */
#include "master/listen_fds.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct listen_fds {
    struct configuration configuration; /* only endpoints, with only their addresses */
    struct sockets sockets;
};

/* Returns the number of passed descriptors; 0: none. */
static unsigned read_count(struct log *log)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    uint64_t number = 0;

    if (!pid || !count || str_to_u64(str_from(pid), &number) < 0 || number != (uint64_t)getpid())
        return 0;
    if (str_to_u64(str_from(count), &number) == 0 && number <= LIMIT_LISTEN_FDS)
        return (unsigned)number;
    log_write(log, LOG_WARN, "LISTEN_FDS: \"%s\" is not a number from 0 to %d: ignored", count, LIMIT_LISTEN_FDS);
    return 0;
}

static int socket_option(int fd, int option)
{
    int value = 0;
    socklen_t length = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &length) < 0 ? -errno : value;
}

/* Returns 0, or -errno: not a listening stream socket. */
static int take_socket(int fd, struct listen_address *out_address)
{
    struct listen_address address = {.length = sizeof(address.socket)};
    const int off = 0;
    const int on = 1;

    if (socket_option(fd, SO_TYPE) < 0)
        return socket_option(fd, SO_TYPE);
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM || socket_option(fd, SO_ACCEPTCONN) != 1)
        return -EPROTOTYPE;
    if (getsockname(fd, (struct sockaddr *)&address.socket, &address.length) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return -errno;
    /* sockets_open shares a socket without SO_REUSEPORT between all workers. */
    if (address.socket.ss_family != AF_UNIX && (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off)) < 0 ||
                                                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0))
        return -errno;
    *out_address = address;
    return 0;
}

static void take_all(struct listen_fds *passed, int first, unsigned count, struct log *log)
{
    for (unsigned i = 0; i < count; i++) {
        int fd = first + (int)i;
        struct listen_address *address = &passed->configuration.endpoints[passed->sockets.endpoints].address;
        int result = take_socket(fd, address);

        if (result < 0) {
            log_write(log, LOG_WARN, "LISTEN_FDS: descriptor %d is not a listening stream socket (%d: %s): ignored", fd,
                      -result, strerror(-result));
            if (result != -EBADF)
                close(fd);
            continue;
        }
        passed->sockets.keep_paths |= address->socket.ss_family == AF_UNIX;
        passed->sockets.fds[passed->sockets.endpoints++] = fd;
    }
    passed->configuration.endpoint_count = passed->sockets.endpoints;
}

struct listen_fds *listen_fds_take(int first, struct log *log)
{
    unsigned count = read_count(log);
    struct listen_fds *passed = count > 0 ? calloc(1, sizeof(*passed)) : NULL;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!passed)
        return NULL;
    passed->sockets = (struct sockets){.fds = calloc(count, sizeof(int)),
                                       .workers = 1,
                                       .slots = 1,
                                       .configuration = &passed->configuration};
    passed->configuration.endpoints = calloc(count, sizeof(struct endpoint));
    if (passed->sockets.fds && passed->configuration.endpoints)
        take_all(passed, first, count, log);
    return passed;
}

const struct sockets *listen_fds_sockets(const struct listen_fds *passed)
{
    return passed ? &passed->sockets : NULL;
}

static bool has_address(const struct configuration *configuration, const struct listen_address *address)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct listen_address *other = &configuration->endpoints[i].address;

        if (other->length == address->length && memcmp(&other->socket, &address->socket, address->length) == 0)
            return true;
    }
    return false;
}

void listen_fds_finish(struct listen_fds *passed, const struct configuration *configuration, struct log *log)
{
    char text[128];

    if (!passed)
        return;
    for (size_t i = 0; configuration && i < passed->configuration.endpoint_count; i++) {
        const struct listen_address *address = &passed->configuration.endpoints[i].address;

        if (!has_address(configuration, address)) {
            struct str name = listen_address_format(address, text, sizeof(text));

            log_write(log, LOG_WARN, "LISTEN_FDS: no server listens on " STR_FMT ": the socket is closed",
                      STR_ARG(name));
        }
    }
    sockets_close(&passed->sockets, false);
    free(passed->configuration.endpoints);
    free(passed);
}
