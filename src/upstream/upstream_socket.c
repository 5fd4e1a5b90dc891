/*
 * The sockets of connections to upstream servers.
 */
#include "upstream/upstream_group.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* Binds the local address without a port: connect(2) chooses one, so that connections to other servers can share it. */
static int bind_source(int fd, const struct sockaddr *local_address, int family)
{
    const int on = 1;
    socklen_t length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    if (local_address->sa_family != family)
        return -EAFNOSUPPORT;
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    return bind(fd, local_address, length) < 0 ? -errno : 0;
}

int upstream_socket_open(const struct listen_address *address, const struct sockaddr *local_address)
{
    const int on = 1;
    int error;
    int family = address->socket.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (family == AF_UNIX)
        return fd;
    error = local_address ? bind_source(fd, local_address, family) : 0;
    if (error < 0) {
        close(fd);
        return error;
    }
    /* Detects on idle connections that the peer is not reachable any more. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}
