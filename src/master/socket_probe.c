/*
 * Probes whether a listening address is free.
 */
#include "master/socket_probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROBES   5
#define PROBE_MS 100

/* Removes a unix: socket that rejects connections, which a crashed server left. */
static int probe_unix(const struct listen_address *address, const char *path)
{
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
    const char *path = listen_address_path(address);
    int family = address->socket.ss_family;
    int on = 1;
    int error = 0;
    int fd;

    if (path)
        return probe_unix(address, path);
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

int socket_probe_again(const struct listen_address *address)
{
    int error = socket_probe(address);

    for (int i = 0; i < PROBES && error == -EADDRINUSE; i++) {
        poll(NULL, 0, PROBE_MS);
        error = socket_probe(address);
    }
    return error;
}
