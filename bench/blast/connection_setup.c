/*
 * Establishes connections: handshake, one request, and decryption of the whole response. The response must be a 200
 * with the length and the body of the first one. If all responses together exceed CHECKED_BYTES_MAX, only the first
 * connection requests a complete response, and all others request one byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "blast.h"

enum { HEAD_MAX = 8192, BATCH = 64 };
static const uint64_t CHECKED_BYTES_MAX = 256ull << 20;

static size_t read_some(struct connection *connection, void *into, size_t room)
{
    ssize_t got = connection->ssl ? SSL_read(connection->ssl, into, (int)room) : recv(connection->fd, into, room, 0);

    if (got <= 0)
        fatal("a response is incomplete");
    return (size_t)got;
}

/* Reads a header section and possibly the beginning of the body; returns the number of bytes read. */
static size_t head_read(struct connection *connection, char *head, size_t *out_length)
{
    size_t received = 0;
    char *end = NULL;

    while (!end) {
        if (received >= HEAD_MAX - 1)
            fatal("the head of a response is too long");
        received += read_some(connection, head + received, HEAD_MAX - 1 - received);
        head[received] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    *out_length = (size_t)(end + 4 - head);
    return received;
}

static uint64_t body_length(const char *head, size_t head_length)
{
    const char *length = strcasestr(head, "\ncontent-length:");

    if (strncmp(head, "HTTP/1.1 20", 11) != 0 || !length || length > head + head_length)
        fatal("a response is not a 200 with Content-Length");
    return strtoull(length + strlen("\ncontent-length:"), NULL, 10);
}

static void request_send(struct connection *connection, const char *request)
{
    int length = (int)strlen(request);

    if ((connection->ssl ? SSL_write(connection->ssl, request, length)
                         : (int)send(connection->fd, request, (size_t)length, MSG_NOSIGNAL)) != length)
        fatal("sending a request");
}

static uint64_t response_receive(struct blast *blast, struct connection *connection)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    char head[HEAD_MAX];
    size_t received;
    uint64_t length;

    received = head_read(connection, head, &blast->head_length);
    length = blast->head_length + body_length(head, blast->head_length);
    if (!digest || received > length || EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1)
        fatal("a response is longer than its Content-Length");
    EVP_DigestUpdate(digest, head + blast->head_length, received - blast->head_length);
    for (uint64_t seen = received; seen < length;) {
        size_t got = read_some(connection, blast->scratch,
                               length - seen < SCRATCH_SIZE ? (size_t)(length - seen) : SCRATCH_SIZE);

        EVP_DigestUpdate(digest, blast->scratch, got);
        seen += got;
    }
    EVP_DigestFinal_ex(digest, blast->body_digest, NULL);
    EVP_MD_CTX_free(digest);
    return length;
}

uint64_t response_read(struct blast *blast, struct connection *connection, const char *request)
{
    request_send(connection, request);
    return response_receive(blast, connection);
}

/*
 * Bytes of a record in addition to its plaintext: the tag; in TLS 1.3 the content type; in 1.2 the explicit GCM
 * nonce.
 */
static uint32_t record_overhead(const SSL *ssl)
{
    const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);
    bool is_gcm = SSL_CIPHER_get_cipher_nid(cipher) != NID_chacha20_poly1305;

    if (!SSL_CIPHER_is_aead(cipher))
        fatal("the cipher suite is not an AEAD suite");
    if (SSL_version(ssl) == TLS1_3_VERSION)
        return 16 + 1;
    return is_gcm ? 8 + 16 : 16;
}

/* Connects and sends the ClientHello. */
static void connection_begin(struct blast *blast, struct connection *connection, unsigned source_index)
{
    int result;

    connection->due_at[0] = monotonic_ns();
    connection->fd = socket_connect(blast->options, source_index);
    if (!blast->tls)
        return;
    connection->ssl = SSL_new(blast->tls);
    if (!connection->ssl || SSL_set_fd(connection->ssl, connection->fd) != 1)
        fatal("memory");
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    SSL_set_connect_state(connection->ssl);
    result = SSL_do_handshake(connection->ssl);     /* 1: the handshake is already complete */
    if (result != 1 && SSL_get_error(connection->ssl, result) != SSL_ERROR_WANT_READ)
        fatal("handshake");
    fcntl(connection->fd, F_SETFL, 0);
}

static void connection_finish(struct blast *blast, struct connection *connection)
{
    if (connection->ssl) {
        if (SSL_do_handshake(connection->ssl) != 1)
            fatal("handshake");
        connection->parser.overhead = record_overhead(connection->ssl);
        blast->handshakes++;
    }
    histogram_record(&blast->connect_time, monotonic_ns() - connection->due_at[0]);
}

static bool checks_whole_bodies(const struct blast *blast)
{
    return blast->options->connections * blast->response_length <= CHECKED_BYTES_MAX;
}

/* Checks a response against that of the first connection. */
static void response_compare(struct blast *blast, struct connection *connection)
{
    uint8_t digest[DIGEST_SIZE];
    uint64_t head_length = blast->head_length;
    uint64_t length;

    memcpy(digest, blast->body_digest, DIGEST_SIZE);
    length = response_receive(blast, connection);
    if (checks_whole_bodies(blast)
        && (length != blast->response_length || memcmp(digest, blast->body_digest, DIGEST_SIZE) != 0)) {
        errno = 0;
        fatal("two responses differ");
    }
    memcpy(blast->body_digest, digest, DIGEST_SIZE);
    blast->head_length = head_length;
}

static void ramp_wait(const struct options *options, uint64_t begin, unsigned opened)
{
    uint64_t due;
    struct timespec deadline;

    if (options->ramp == 0)
        return;
    due = begin + (uint64_t)(1e9 * opened / options->ramp);
    deadline = (struct timespec){.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
        continue;
}

/* Interleaves the handshakes of several connections: the server processes one while the client processes another. */
static void batch_open(struct blast *blast, struct connection *batch, unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        connection_begin(blast, &batch[i], first + i);
    for (unsigned i = 0; i < count; i++) {
        connection_finish(blast, &batch[i]);
        if (blast->response_length == 0)
            blast->response_length = response_read(blast, &batch[i], blast->request);
        request_send(&batch[i], checks_whole_bodies(blast) ? blast->request : blast->one_byte_request);
    }
    for (unsigned i = 0; i < count; i++) {
        response_compare(blast, &batch[i]);
        if (blast->options->verify && !(batch[i].digest = EVP_MD_CTX_new()))
            fatal("memory");
        fcntl(batch[i].fd, F_SETFL, O_NONBLOCK);
    }
}

void connections_establish(struct blast *blast)
{
    unsigned active = blast->options->connections;
    unsigned all = active + blast->options->idle;
    unsigned step = blast->options->ramp > 0 ? 1 : BATCH;
    uint64_t begin = monotonic_ns();

    blast->connections = calloc(all, sizeof(*blast->connections));
    if (!blast->connections)
        fatal("memory");
    for (unsigned i = 0; i < all; i += step) {
        ramp_wait(blast->options, begin, i);
        batch_open(blast, &blast->connections[i], i, all - i < step ? all - i : step);
    }
    for (unsigned i = 0; i < active && blast->options->slow == 0; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &blast->connections[i]};

        if (epoll_ctl(blast->poll_fd, EPOLL_CTL_ADD, blast->connections[i].fd, &event) < 0)
            fatal("epoll_ctl");
    }
}
