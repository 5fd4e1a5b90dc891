/*
 * Opens the listening sockets in two passes: first every address is probed without SO_REUSEPORT, so that all
 * conflicts are reported together; then the sockets are opened.
 */
#include "master/sockets.h"

#include "master/socket_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void log_probe_failure(struct log *log, const struct listen_address *address, int error)
{
    char text[128];
    struct str name = listen_address_format(address, text, sizeof(text));

    log_write(log, LOG_EMERG, "bind() to " STR_FMT " failed (%d: %s)%s", STR_ARG(name), -error,
              strerror(-error),
              error == -EACCES ? "; ports below 1024 need root or CAP_NET_BIND_SERVICE" : "");
}

/* Returns the endpoint with the address; -1: none. */
static ssize_t find_address(const struct sockets *sockets, const struct listen_address *address)
{
    for (size_t i = 0; sockets && i < sockets->endpoints; i++) {
        if (listen_address_equal(&sockets->configuration->endpoints[i].address, address))
            return (ssize_t)i;
    }
    return -1;
}

/*
 * A port that `sockets` has on another address would fail the probe with EADDRINUSE, although SO_REUSEPORT allows
 * both.
 */
static bool has_port(const struct sockets *sockets, const struct endpoint *endpoint)
{
    unsigned port = listen_address_port(&endpoint->address);

    for (size_t i = 0; sockets && port > 0 && i < sockets->endpoints; i++) {
        if (listen_address_port(&sockets->configuration->endpoints[i].address) == port)
            return true;
    }
    return false;
}

static int probe_all(const struct configuration *configuration, const struct sockets *before, struct log *log)
{
    int result = 0;

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];
        const struct listen_address *address = &endpoint->address;
        int error;

        if (find_address(before, address) >= 0 || has_port(before, endpoint))
            continue;
        /* Retries only for the first address in use. */
        error = result == 0 ? socket_probe_again(address) : socket_probe(address);
        if (error < 0) {
            log_probe_failure(log, address, error);
            result = error;
        }
    }
    return result;
}

/* Duplicates the previous generation's socket, since each generation closes its own. -1: none in this slot. */
static int inherit_socket(const struct sockets *before, ssize_t endpoint, unsigned slot, uint64_t backlog)
{
    int fd = endpoint >= 0 && slot < before->slots ? sockets_get(before, (size_t)endpoint, slot) : -1;

    if (fd < 0)
        return -1;
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    (void)listen(fd, (int)backlog); /* the backlog may have changed */
    return fd;
}

/*
 * umask() sets the mode with which bind() creates a Unix socket. chmod() after bind() would follow a symbolic link that
 * a worker's user may have put in place of the socket. As in nginx, only the permissions of the directory restrict
 * access; to the control socket, also its mode.
 */
static int open_slot(const struct endpoint *place)
{
    mode_t before = umask(place->control ? 0177 : 0111);
    int fd = listener_open(&place->address, (int)place->backlog);

    umask(before);
    return fd;
}

/* Sets the mode of a socket, but of nothing else that has its path. Returns 0 or -errno. */
static int set_socket_mode(const char *path, mode_t mode)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char name[32];
    struct stat status;
    int error = 0;

    if (fd < 0)
        return -errno;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    if (fstat(fd, &status) < 0)
        error = -errno;
    else if (!S_ISSOCK(status.st_mode))
        error = -ENOTSOCK;
    else if (chmod(name, mode) < 0)
        error = -EACCES; /* ENOENT would mean the path */
    close(fd);
    return error;
}

/*
 * Sets the mode of an inherited control socket, which a server or the service manager may have opened to others.
 * Without a path, no client can connect. Returns 0 or -errno.
 */
static int restrict_inherited(const struct endpoint *place)
{
    const char *path = listen_address_path(&place->address);
    int error = place->control && path ? set_socket_mode(path, 0600) : 0;

    return error == -ENOENT ? 0 : error;
}

/* A socket without SO_REUSEPORT is the only one of its address, so all workers accept from it. */
static bool is_shared(int fd)
{
    int reuse = 0;
    socklen_t length = sizeof(reuse);

    return getsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &reuse, &length) == 0 && !reuse;
}

static int open_endpoint(struct sockets *sockets, size_t endpoint, const struct sockets *before, struct log *log)
{
    const struct endpoint *place = &sockets->configuration->endpoints[endpoint];
    ssize_t predecessor = find_address(before, &place->address);
    int *fds = sockets->fds + endpoint * sockets->slots;
    int result;

    for (unsigned i = 0; i < sockets->slots; i++) {
        if (i > 0 && (listen_address_path(&place->address) || is_shared(fds[0]))) {
            fds[i] = i < sockets->workers ? fds[0] : -1;
            continue;
        }
        fds[i] = inherit_socket(before, predecessor, i, place->backlog);
        if (fds[i] >= 0 && (result = restrict_inherited(place)) < 0) {
            log_probe_failure(log, &place->address, result);
            return result;
        }
        if (fds[i] == -1 && i < sockets->workers)
            fds[i] = open_slot(place);
        if (fds[i] < -1 || (fds[i] < 0 && i < sockets->workers)) {
            log_probe_failure(log, &place->address, fds[i]);
            return fds[i];
        }
    }
    return 0;
}

int sockets_open(struct sockets *sockets, const struct configuration *configuration, unsigned workers,
                 const struct sockets *before, struct log *log)
{
    unsigned slots = before && before->slots > workers ? before->slots : workers;
    size_t count = configuration->endpoint_count * slots;
    int result = probe_all(configuration, before, log);

    *sockets = (struct sockets){.endpoints = configuration->endpoint_count,
                                .workers = workers,
                                .slots = slots,
                                .keep_paths = before && before->keep_paths,
                                .configuration = configuration};
    if (result < 0)
        return result;
    sockets->fds = calloc(count ? count : 1, sizeof(int));
    if (!sockets->fds)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sockets->fds[i] = -1;
    for (size_t i = 0; i < sockets->endpoints && result == 0; i++)
        result = open_endpoint(sockets, i, before, log);
    if (result < 0 && before)
        sockets_close_except(sockets, before);
    else if (result < 0)
        sockets_close(sockets, false);
    return result;
}

int sockets_get(const struct sockets *sockets, size_t endpoint, unsigned slot)
{
    return sockets->fds[endpoint * sockets->slots + slot];
}

size_t sockets_list(const struct sockets *sockets, int *out_fds)
{
    size_t count = 0;

    for (size_t at = 0; at < sockets->endpoints * sockets->slots; at++) {
        bool listed = sockets->fds[at] < 0;

        for (size_t i = 0; i < count && !listed; i++)
            listed = out_fds[i] == sockets->fds[at];
        if (!listed)
            out_fds[count++] = sockets->fds[at];
    }
    return count;
}

/* Closes one socket and clears all its slots. */
static void close_socket_slots(struct sockets *sockets, size_t at)
{
    int fd = sockets->fds[at];

    if (fd < 0)
        return;
    close(fd);
    for (size_t i = 0; i < sockets->endpoints * sockets->slots; i++) {
        if (sockets->fds[i] == fd)
            sockets->fds[i] = -1;
    }
}

static bool has_socket(const struct sockets *sockets, size_t endpoint, unsigned worker, int fd)
{
    for (unsigned slot = worker; slot < sockets->slots; slot += sockets->workers) {
        if (sockets_get(sockets, endpoint, slot) == fd)
            return true;
    }
    return false;
}

void sockets_close_others(struct sockets *sockets, unsigned worker)
{
    for (size_t at = 0; at < sockets->endpoints * sockets->slots; at++) {
        if (!has_socket(sockets, at / sockets->slots, worker, sockets->fds[at]))
            close_socket_slots(sockets, at);
    }
}

/* `successor`: sockets with unix: paths that are not removed; NULL: none. */
static void close_all(struct sockets *sockets, bool unlink_paths, const struct sockets *successor)
{
    bool removes_paths = unlink_paths && !sockets->keep_paths;

    for (size_t i = 0; sockets->fds && i < sockets->endpoints * sockets->slots; i++) {
        const struct listen_address *address = &sockets->configuration->endpoints[i / sockets->slots].address;
        const char *path = listen_address_path(address);

        if (removes_paths && path && path[0] && sockets->fds[i] >= 0 && find_address(successor, address) < 0)
            unlink(path);
        close_socket_slots(sockets, i);
    }
    free(sockets->fds);
    *sockets = (struct sockets){.fds = NULL};
}

void sockets_close(struct sockets *sockets, bool unlink_paths)
{
    close_all(sockets, unlink_paths, NULL);
}

void sockets_close_except(struct sockets *sockets, const struct sockets *others)
{
    close_all(sockets, true, others);
}
