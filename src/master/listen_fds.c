/*
 * Passed sockets are stored as the sockets of a generation, so that sockets_open inherits them as in a reload. All
 * workers accept from one socket of a service manager; the sockets of an address that another master opened for its
 * workers have one slot each.
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
static int check_socket(int fd)
{
    if (socket_option(fd, SO_TYPE) < 0)
        return socket_option(fd, SO_TYPE);
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM || socket_option(fd, SO_ACCEPTCONN) != 1)
        return -EPROTOTYPE;
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
}

/* Sets the options of a socket that the service manager opened. Returns 0 or -errno. */
static int prepare_socket(int fd)
{
    const int off = 0;
    const int on = 1;

    if (socket_option(fd, SO_DOMAIN) == AF_UNIX)
        return 0;
    /* sockets_open shares a socket without SO_REUSEPORT between all workers. */
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off)) < 0 ||
                   setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0
               ? -errno
               : 0;
}

/* Finds the endpoint with the address, or adds it. */
static size_t endpoint_of(struct listen_fds *passed, const struct listen_address *address)
{
    struct configuration *configuration = &passed->configuration;
    size_t i = 0;

    while (i < configuration->endpoint_count && !listen_address_equal(&configuration->endpoints[i].address, address))
        i++;
    if (i == configuration->endpoint_count)
        configuration->endpoints[configuration->endpoint_count++].address = *address;
    return i;
}

/* Stores a socket in the next slot of its address. */
static int add_socket(struct listen_fds *passed, int fd)
{
    struct listen_address address = {.length = sizeof(address.socket)};
    struct sockets *sockets = &passed->sockets;
    unsigned slot = 0;
    size_t at;

    if (getsockname(fd, (struct sockaddr *)&address.socket, &address.length) < 0)
        return -errno;
    at = endpoint_of(passed, &address) * sockets->slots;
    while (slot < sockets->slots && sockets->fds[at + slot] >= 0)
        slot++;
    if (slot == sockets->slots)
        return -ENOSPC;
    sockets->fds[at + slot] = fd;
    sockets->endpoints = passed->configuration.endpoint_count;
    return 0;
}

static struct listen_fds *listen_fds_create(size_t count, unsigned slots)
{
    struct listen_fds *passed = calloc(1, sizeof(*passed));

    if (!passed)
        return NULL;
    passed->sockets = (struct sockets){.fds = calloc(count * slots, sizeof(int)),
                                       .workers = slots,
                                       .slots = slots,
                                       .configuration = &passed->configuration};
    passed->configuration.endpoints = calloc(count, sizeof(struct endpoint));
    if (passed->sockets.fds && passed->configuration.endpoints) {
        memset(passed->sockets.fds, -1, count * slots * sizeof(int));
        return passed;
    }
    listen_fds_finish(passed, NULL, true, NULL);
    return NULL;
}

static const char *rejection_reason(int error)
{
    return error == -ENOSPC   ? "another passed socket has the same address"
           : error == -ENOMEM ? "it cannot be stored"
                              : "it is not a listening stream socket";
}

struct listen_fds *listen_fds_adopt(const int *fds, size_t count, unsigned slots, struct log *log)
{
    struct listen_fds *passed = count > 0 && slots > 0 ? listen_fds_create(count, slots) : NULL;

    for (size_t i = 0; i < count; i++) {
        int result = passed ? check_socket(fds[i]) : -ENOMEM;

        if (result == 0)
            result = add_socket(passed, fds[i]);
        if (result == 0)
            continue;
        log_write(log, LOG_WARN, "descriptor %d is ignored: %s (%d: %s)", fds[i], rejection_reason(result), -result,
                  strerror(-result));
        if (result != -EBADF)
            close(fds[i]);
    }
    return passed;
}

struct listen_fds *listen_fds_take(int first, struct log *log)
{
    unsigned count = read_count(log);
    int fds[LIMIT_LISTEN_FDS];
    struct listen_fds *passed;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    for (unsigned i = 0; i < count; i++) {
        fds[i] = first + (int)i;
        if (prepare_socket(fds[i]) < 0)
            errno = 0; /* check_socket finds the cause */
    }
    passed = listen_fds_adopt(fds, count, 1, log);
    if (passed)
        passed->sockets.keep_paths = true;
    return passed;
}

struct listen_fds *listen_fds_duplicate(const struct sockets *sockets, struct log *log)
{
    int *fds = calloc(sockets->endpoints * sockets->slots + 1, sizeof(*fds));
    size_t listed = fds ? sockets_list(sockets, fds) : 0, count = 0;
    struct listen_fds *kept;

    for (size_t i = 0; i < listed; i++) {
        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);

        if (fd >= 0)
            fds[count++] = fd;
        else
            log_write(log, LOG_ALERT, "a listening socket cannot be kept (%d: %s)", errno, strerror(errno));
    }
    kept = listen_fds_adopt(fds, count, sockets->slots, log);
    if (kept)
        kept->sockets.keep_paths = sockets->keep_paths;
    free(fds);
    return kept;
}

const struct sockets *listen_fds_sockets(const struct listen_fds *passed)
{
    return passed ? &passed->sockets : NULL;
}

static bool has_address(const struct configuration *configuration, const struct listen_address *address)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        if (listen_address_equal(&configuration->endpoints[i].address, address))
            return true;
    }
    return false;
}

void listen_fds_finish(struct listen_fds *passed, const struct configuration *configuration, bool keep_paths,
                       struct log *log)
{
    struct sockets others = {.configuration = configuration};
    char text[128];

    if (!passed)
        return;
    for (size_t i = 0; configuration && i < passed->configuration.endpoint_count; i++) {
        const struct listen_address *address = &passed->configuration.endpoints[i].address;

        if (!has_address(configuration, address)) {
            struct str name = listen_address_format(address, text, sizeof(text));

            log_write(log, LOG_WARN, "no server listens on " STR_FMT ": its passed socket is closed",
                      STR_ARG(name));
        }
    }
    if (configuration)
        others.endpoints = configuration->endpoint_count;
    passed->sockets.keep_paths |= keep_paths;
    sockets_close_except(&passed->sockets, &others);
    free(passed->configuration.endpoints);
    free(passed);
}
