/*
 * Parses and formats addresses in the syntax of `listen`, and opens listening sockets on them.
 */
#include "io/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT_DEFAULT 80

static int parse_listen_port(struct str text, in_port_t *out_port)
{
    uint64_t port;

    if (str_to_u64(text, &port) < 0 || port == 0 || port > 65535)
        return -EINVAL;
    *out_port = htons((in_port_t)port);
    return 0;
}

static int parse_unix(struct str path, struct listen_address *address)
{
    struct sockaddr_un *local = (struct sockaddr_un *)&address->socket;

    if (str_empty(path) || path.length >= sizeof(local->sun_path) || str_find(path, '\0') >= 0)
        return -EINVAL;
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path.data, path.length);
    address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.length + 1);
    return 0;
}

/* inet_pton needs a terminated string. */
static int parse_ip(int family, struct str text, void *into)
{
    char terminated[INET6_ADDRSTRLEN];

    if (text.length >= sizeof(terminated))
        return -EINVAL;
    memcpy(terminated, text.data, text.length);
    terminated[text.length] = '\0';
    return inet_pton(family, terminated, into) == 1 ? 0 : -EINVAL;
}

static int parse_v6(struct str text, struct listen_address *address)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->socket;
    ssize_t end = str_find(text, ']');
    struct str port;

    if (end < 0 || parse_ip(AF_INET6, str_slice(text, 1, (size_t)end), &v6->sin6_addr) < 0)
        return -EINVAL;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(PORT_DEFAULT);
    address->length = sizeof(*v6);
    port = str_skip(text, (size_t)end + 1);
    if (str_empty(port))
        return 0;
    return port.data[0] == ':' ? parse_listen_port(str_skip(port, 1), &v6->sin6_port) : -EINVAL;
}

static int parse_v4(struct str text, struct listen_address *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
    ssize_t colon = str_rfind(text, ':');
    struct str host = colon < 0 ? text : str_slice(text, 0, (size_t)colon);

    v4->sin_family = AF_INET;
    v4->sin_port = htons(PORT_DEFAULT);
    v4->sin_addr.s_addr = htonl(INADDR_ANY);
    address->length = sizeof(*v4);
    if (colon < 0 && parse_listen_port(text, &v4->sin_port) == 0)
        return 0;
    if (colon >= 0 && parse_listen_port(str_skip(text, (size_t)colon + 1), &v4->sin_port) < 0)
        return -EINVAL;
    return str_equal(host, STR("*")) ? 0 : parse_ip(AF_INET, host, &v4->sin_addr);
}

int listen_address_parse(struct str text, struct listen_address *out_address)
{
    struct listen_address address = {.length = 0};
    int error;

    if (str_empty(text))
        return -EINVAL;
    if (str_starts(text, STR("unix:")))
        error = parse_unix(str_skip(text, 5), &address);
    else if (text.data[0] == '[')
        error = parse_v6(text, &address);
    else
        error = parse_v4(text, &address);
    if (error == 0)
        *out_address = address;
    return error;
}

struct str listen_address_format(const struct listen_address *address, char *into, size_t size)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->socket;
    const struct sockaddr_un *local = (const struct sockaddr_un *)&address->socket;
    char ip[INET6_ADDRSTRLEN] = "?";
    int length;

    switch (address->socket.ss_family) {
    case AF_INET:
        inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof(ip));
        length = snprintf(into, size, "%s:%u", ip, ntohs(v4->sin_port));
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof(ip));
        length = snprintf(into, size, "[%s]:%u", ip, ntohs(v6->sin6_port));
        break;
    case AF_UNIX:
        length = snprintf(into, size, "unix:%.*s", (int)sizeof(local->sun_path), local->sun_path);
        break;
    default:
        length = snprintf(into, size, "unknown");
        break;
    }
    if (length < 0)
        length = 0;
    return str_of(into, (size_t)length < size ? (size_t)length : size - 1);
}

static int set_options(int fd, int family)
{
    const int on = 1;

    if (family == AF_UNIX)
        return 0;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return -errno;
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
        return -errno;
    return 0;
}

/* True if connect(2) to the socket file is refused: the process that created it has ended. */
static bool is_stale_unix_socket(const struct listen_address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool refused;

    if (fd < 0)
        return false;
    refused = connect(fd, (const struct sockaddr *)&address->socket, address->length) < 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int bind_address(int fd, const struct listen_address *address)
{
    const struct sockaddr *to = (const struct sockaddr *)&address->socket;
    int error;

    if (bind(fd, to, address->length) == 0)
        return 0;
    error = errno;
    if (error != EADDRINUSE || to->sa_family != AF_UNIX || !is_stale_unix_socket(address))
        return -error;
    if (unlink(listen_address_path(address)) < 0)
        return -error;
    return bind(fd, to, address->length) < 0 ? -errno : 0;
}

int listener_open(const struct listen_address *address, int backlog)
{
    int family = address->socket.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    error = set_options(fd, family);
    if (error == 0)
        error = bind_address(fd, address);
    if (error == 0 && listen(fd, backlog) < 0)
        error = -errno;
    if (error < 0) {
        close(fd);
        return error;
    }
    return fd;
}

bool listen_address_equal(const struct listen_address *a, const struct listen_address *b)
{
    return a->length == b->length && memcmp(&a->socket, &b->socket, a->length) == 0;
}

const char *listen_address_path(const struct listen_address *address)
{
    const struct sockaddr_un *path = (const void *)&address->socket;

    return address->socket.ss_family == AF_UNIX ? path->sun_path : NULL;
}

unsigned listen_address_port(const struct listen_address *address)
{
    const struct sockaddr_storage *socket = &address->socket;

    if (socket->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)socket)->sin_port);
    if (socket->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)socket)->sin6_port);
    return 0;
}
