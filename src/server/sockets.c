/*
 * Opens the listening sockets, in two passes: first every address is tried without
 * SO_REUSEPORT, so that all conflicts are told at once; then they are opened in earnest.
 */
#include "server/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PROBES   5
#define PROBE_MS 100

static const char *unix_path(const struct listen_address *address)
{
    const struct sockaddr_un *path = (const void *)&address->socket;

    return address->socket.ss_family == AF_UNIX ? path->sun_path : NULL;
}

/* A path that is a socket with nobody behind it is a left-over of a crash. */
static int probe_unix(const struct listen_address *address)
{
    const char *path = unix_path(address);
    struct stat status;
    int error = 0;
    int fd;

    if (!path[0] || lstat(path, &status) < 0)
        return 0;
    if (!S_ISSOCK(status.st_mode))
        return -EADDRINUSE;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address->socket, address->length) == 0 || errno != ECONNREFUSED)
        error = -EADDRINUSE;
    else if (unlink(path) < 0)
        error = -errno;
    close(fd);
    return error;
}

int socket_probe(const struct listen_address *address)
{
    int family = address->socket.ss_family;
    int on = 1;
    int error = 0;
    int fd;

    if (family == AF_UNIX)
        return probe_unix(address);
    fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, (const struct sockaddr *)&address->socket, address->length) < 0)
        error = -errno;
    close(fd);
    return error;
}

static void say_refused(struct log *log, const struct listen_address *address, int error)
{
    char text[128];
    struct str name = listen_address_format(address, text, sizeof(text));

    log_write(log, LOG_EMERG, "bind() to " STR_FMT " failed (%d: %s)%s", STR_ARG(name), -error,
              strerror(-error),
              error == -EACCES ? "; ports below 1024 need root or CAP_NET_BIND_SERVICE" : "");
}

/* A predecessor that was killed may still be going: the kernel takes a ring's sockets down some time after
 * its process. */
static int probe_patiently(const struct listen_address *address)
{
    int error = socket_probe(address);

    for (int i = 0; i < PROBES && error == -EADDRINUSE; i++) {
        poll(NULL, 0, PROBE_MS);
        error = socket_probe(address);
    }
    return error;
}

static int probe_all(const struct configuration *configuration, struct log *log)
{
    int result = 0;

    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct listen_address *address = &configuration->endpoints[i].address;
        /* One address in use is reason enough not to wait for the next. */
        int error = result == 0 ? probe_patiently(address) : socket_probe(address);

        if (error < 0) {
            say_refused(log, address, error);
            result = error;
        }
    }
    return result;
}

static int open_endpoint(struct sockets *sockets, size_t endpoint, struct log *log)
{
    const struct endpoint *place = &sockets->configuration->endpoints[endpoint];
    int *fds = sockets->fds + endpoint * sockets->workers;

    for (unsigned i = 0; i < sockets->workers; i++) {
        if (i > 0 && unix_path(&place->address)) {
            fds[i] = fds[0];
            continue;
        }
        fds[i] = listener_open(&place->address, (int)place->backlog);
        if (fds[i] < 0) {
            say_refused(log, &place->address, fds[i]);
            return fds[i];
        }
        /* As nginx: whoever may enter its folder may connect. */
        if (unix_path(&place->address) && chmod(unix_path(&place->address), 0666) < 0)
            log_write(log, LOG_WARN, "chmod() \"%s\" failed (%d: %s)", unix_path(&place->address), errno,
                      strerror(errno));
    }
    return 0;
}

int sockets_open(struct sockets *sockets, const struct configuration *configuration, unsigned workers,
                 struct log *log)
{
    size_t count = configuration->endpoint_count * workers;
    int result = probe_all(configuration, log);

    *sockets = (struct sockets){.endpoints = configuration->endpoint_count, .workers = workers};
    sockets->configuration = configuration;
    if (result < 0)
        return result;
    sockets->fds = calloc(count ? count : 1, sizeof(int));
    if (!sockets->fds)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sockets->fds[i] = -1;
    for (size_t i = 0; i < sockets->endpoints && result == 0; i++)
        result = open_endpoint(sockets, i, log);
    if (result < 0)
        sockets_close(sockets, false);
    return result;
}

int sockets_get(const struct sockets *sockets, size_t endpoint, unsigned worker)
{
    return sockets->fds[endpoint * sockets->workers + worker];
}

/* Closes one socket in every place where it stands. */
static void close_everywhere(struct sockets *sockets, size_t at)
{
    int fd = sockets->fds[at];

    if (fd < 0)
        return;
    close(fd);
    for (size_t i = 0; i < sockets->endpoints * sockets->workers; i++) {
        if (sockets->fds[i] == fd)
            sockets->fds[i] = -1;
    }
}

void sockets_keep_own(struct sockets *sockets, unsigned worker)
{
    for (size_t endpoint = 0; endpoint < sockets->endpoints; endpoint++) {
        int own = sockets_get(sockets, endpoint, worker);

        for (unsigned i = 0; i < sockets->workers; i++) {
            size_t at = endpoint * sockets->workers + i;

            if (sockets->fds[at] != own)
                close_everywhere(sockets, at);
        }
    }
}

void sockets_close(struct sockets *sockets, bool unlink_paths)
{
    for (size_t i = 0; sockets->fds && i < sockets->endpoints * sockets->workers; i++) {
        const char *path = unix_path(&sockets->configuration->endpoints[i / sockets->workers].address);

        if (unlink_paths && path && path[0] && sockets->fds[i] >= 0)
            unlink(path);
        close_everywhere(sockets, i);
    }
    free(sockets->fds);
    *sockets = (struct sockets){.fds = NULL};
}
