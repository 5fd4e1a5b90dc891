/*
 * The client of the benchmark: non-blocking sockets and poll(2) after blocking handshakes.
 */
#include "doctor/doctor_load.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define REQUEST "GET " LOAD_PATH " HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-%u\r\n\r\n"

/* READS: the number of receives from one connection before the next connection is served. */
enum { REQUEST_SIZE = 128, READ_SIZE = 65536, READS = 16, POLL_MS = 100, CONNECT_RETRIES = 10 };

struct load_connection {
    int fd;
    SSL *ssl; /* NULL: plain */
    size_t unsent; /* bytes of the request */
    struct load_reader reader;
};

struct load_client {
    struct load load;
    SSL_CTX *context; /* NULL: plain */
    char request[REQUEST_SIZE];
    size_t request_length;
    unsigned count; /* open connections */
    struct load_connection connections[LOAD_CONNECTIONS];
    char bytes[READ_SIZE];
};

/* Returns 0, or -EPROTO if the status is not 206, or Content-Length is missing. */
static int parse_head(struct load_reader *reader, struct str head)
{
    static const struct str name = {"\r\nContent-Length: ", 18};
    ssize_t at = str_search(head, name);
    struct str value = at < 0 ? STR("") : str_skip(head, (size_t)at + name.length);
    ssize_t end = str_search(value, STR("\r\n"));

    if (!str_starts(head, STR("HTTP/1.1 206 ")) || end < 0 ||
        str_to_u64(str_slice(value, 0, (size_t)end), &reader->left) < 0)
        return -EPROTO;
    reader->in_body = true;
    return 0;
}

/* Returns the number of bytes that belong to the header section, or -EPROTO. */
static ssize_t consume_head(struct load_reader *reader, struct str bytes)
{
    size_t room = sizeof(reader->head) - reader->head_length, before = reader->head_length;
    size_t copied = bytes.length < room ? bytes.length : room;
    struct str head;
    ssize_t end;

    memcpy(reader->head + before, bytes.data, copied);
    reader->head_length += copied;
    head = str_of(reader->head, reader->head_length);
    end = str_search(head, STR("\r\n\r\n"));
    if (end < 0)
        return copied < bytes.length ? -EPROTO : (ssize_t)copied;
    if (parse_head(reader, str_slice(head, 0, (size_t)end + 2)) < 0)
        return -EPROTO;
    return end + 4 - (ssize_t)before;
}

int load_reader_consume(struct load_reader *reader, struct str bytes, struct load_counts *counts)
{
    if (!reader->in_body) {
        ssize_t head = consume_head(reader, bytes);

        if (head < 0)
            return (int)head;
        bytes = str_skip(bytes, (size_t)head);
        if (!reader->in_body)
            return 0;
    }
    if (bytes.length > reader->left)
        return -EPROTO;
    reader->left -= bytes.length;
    counts->bytes += bytes.length;
    if (reader->left > 0)
        return 0;
    counts->responses++;
    reader->in_body = false;
    reader->head_length = 0;
    return 1;
}

/* Sends as much of the request as the socket accepts. Returns 0 or -errno. */
static int send_request(struct load_client *client, struct load_connection *connection)
{
    const char *from = client->request + client->request_length - connection->unsent;
    ssize_t sent;

    if (connection->unsent == 0)
        return 0;
    if (connection->ssl) {
        sent = SSL_write(connection->ssl, from, (int)connection->unsent);
        if (sent <= 0)
            return SSL_get_error(connection->ssl, (int)sent) == SSL_ERROR_WANT_WRITE ? 0 : -ECONNRESET;
    } else {
        sent = send(connection->fd, from, connection->unsent, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    connection->unsent -= (size_t)sent;
    return 0;
}

/* Returns the length; 0: no bytes are available; or -errno. */
static ssize_t receive_bytes(struct load_client *client, struct load_connection *connection)
{
    ssize_t got;

    if (connection->ssl) {
        got = SSL_read(connection->ssl, client->bytes, sizeof(client->bytes));
        if (got > 0)
            return got;
        return SSL_get_error(connection->ssl, (int)got) == SSL_ERROR_WANT_READ ? 0 : -ECONNRESET;
    }
    got = recv(connection->fd, client->bytes, sizeof(client->bytes), 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    return got > 0 ? got : -ECONNRESET;
}

/* Receives the available bytes, and sends the next request after each response. Returns 0 or -errno. */
static int advance_connection(struct load_client *client, struct load_connection *connection,
                              struct load_counts *counts)
{
    int result = send_request(client, connection);

    for (int i = 0; i < READS && result == 0; i++) {
        ssize_t got = receive_bytes(client, connection);

        if (got <= 0)
            return (int)got;
        result = load_reader_consume(&connection->reader, str_of(client->bytes, (size_t)got), counts);
        if (result == 1) {
            connection->unsent = client->request_length;
            result = send_request(client, connection);
        }
    }
    return result;
}

static int poll_connections(struct load_client *client, struct load_counts *counts)
{
    struct pollfd polled[LOAD_CONNECTIONS];
    int result = 0;

    for (unsigned i = 0; i < client->count; i++) {
        const struct load_connection *connection = &client->connections[i];

        polled[i] = (struct pollfd){.fd = connection->fd, .events = POLLIN | (connection->unsent ? POLLOUT : 0)};
    }
    if (poll(polled, client->count, POLL_MS) < 0)
        return errno == EINTR ? 0 : -errno;
    for (unsigned i = 0; i < client->count && result == 0; i++) {
        if (polled[i].revents)
            result = advance_connection(client, &client->connections[i], counts);
    }
    return result;
}

int load_run(struct load_client *client, uint64_t end_us, uint64_t bytes_max, const volatile sig_atomic_t *stop,
             struct load_counts *counts)
{
    uint64_t bytes = counts->bytes;
    int result = 0;

    ERR_clear_error();
    while (result == 0 && !*stop && counts->bytes - bytes < bytes_max && clock_monotonic_us() < end_us)
        result = poll_connections(client, counts);
    return result;
}

int load_await(struct load_client *client, const volatile sig_atomic_t *stop, struct load_counts *counts)
{
    int result = 0;

    ERR_clear_error();
    while (result == 0 && !*stop && counts->responses <= client->count && clock_monotonic_us() < client->load.last_us)
        result = poll_connections(client, counts);
    return result;
}

static int try_connect(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval wait = {.tv_sec = LIMIT_BENCHMARK_WAIT_MS / 1000};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error = -errno;
    close(fd);
    return error;
}

/*
 * With a timeout, connect(2) fails with EINTR also without a signal: if the kernel has to complete operations of a ring
 * that was closed before (io_uring(7)).
 */
static int connect_socket(uint16_t port)
{
    int fd = try_connect(port);

    for (unsigned i = 0; fd == -EINTR && i < CONNECT_RETRIES; i++)
        fd = try_connect(port);
    return fd;
}

/* Opens the next connection. Returns 0 or -errno. */
static int open_connection(struct load_client *client)
{
    struct load_connection *connection = &client->connections[client->count];
    int fd = clock_monotonic_us() < client->load.last_us ? connect_socket(client->load.port) : -ETIMEDOUT;

    if (fd < 0)
        return fd;
    *connection = (struct load_connection){.fd = fd, .unsent = client->request_length};
    client->count++;
    if (client->load.tls) {
        connection->ssl = SSL_new(client->context);
        if (!connection->ssl)
            return -ENOMEM;
        errno = 0;
        if (SSL_set_fd(connection->ssl, fd) != 1 || SSL_connect(connection->ssl) != 1)
            return errno == EINTR ? -EINTR : -EPROTO;
    }
    return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Returns the TLS context of the client, which verifies no certificate, or NULL. */
static SSL_CTX *create_context(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_ciphersuites(context, LOAD_SUITE) == 1)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

int load_open(const struct load *load, struct load_client **out_client)
{
    struct load_client *client = calloc(1, sizeof(*client));
    int result = 0;

    if (!client)
        return -ENOMEM;
    client->load = *load;
    client->request_length = (size_t)snprintf(client->request, sizeof(client->request), REQUEST, load->length - 1);
    if (load->tls) {
        client->context = create_context();
        result = client->context ? 0 : -EPROTO;
    }
    for (unsigned i = 0; i < load->connections && i < LOAD_CONNECTIONS && result == 0; i++)
        result = open_connection(client);
    if (result == 0)
        *out_client = client;
    else
        load_close(client);
    return result;
}

void load_close(struct load_client *client)
{
    const struct linger reset = {.l_onoff = 1}; /* no TIME_WAIT */

    if (!client)
        return;
    for (unsigned i = 0; i < client->count; i++) {
        SSL_free(client->connections[i].ssl);
        (void)setsockopt(client->connections[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(client->connections[i].fd);
    }
    SSL_CTX_free(client->context);
    free(client);
}
