/*
 * A load generator that costs little beside the server it measures: OpenSSL shakes hands and seals the
 * requests, but answers are not opened. One answer is read in full, to know its length; from then on only the
 * headers of TLS records are walked, and an answer is over when as many bytes of plaintext went by. Every
 * answer must therefore be as long as the first. It is no test of correctness.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_HEADER = 5, SEAL_OVERHEAD_13 = 17, SEAL_OVERHEAD_12 = 24, READ_SIZE = 512 * 1024, EVENTS = 64 };

struct options {
    const char *address;
    const char *path;
    const char *suite;
    uint16_t port;
    unsigned connections;
    double seconds;
    bool plain;
    bool tls12;
    bool wait;                      /* connected and ready: wait for the end of standard input */
};

struct connection {
    int fd;
    SSL *ssl;
    uint64_t left;                  /* plaintext of this answer that is still to come */
    uint32_t record_left;           /* bytes of the record that is going by */
    unsigned header_have;
    uint8_t header[RECORD_HEADER];
};

struct blast {
    const struct options *options;
    SSL_CTX *tls;
    struct connection *connections;
    char request[1024];
    char probe[1024];               /* the same for one byte: opened, and with it the session tickets before it */
    uint64_t answer_length;         /* head and body */
    uint64_t answers;
    uint64_t plaintext;
    int poll_fd;
    char *scratch;
};

static void fail(const char *what)
{
    fprintf(stderr, "blast: %s: %s\n", what, errno ? strerror(errno) : "failed");
    ERR_print_errors_fp(stderr);
    exit(1);
}

static double now(void)
{
    struct timespec moment;

    clock_gettime(CLOCK_MONOTONIC, &moment);
    return (double)moment.tv_sec + (double)moment.tv_nsec * 1e-9;
}

static int dial(const struct options *options)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    if (fd < 0 || inet_pton(AF_INET, options->address, &address.sin_addr) != 1)
        fail("socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void request_send(struct blast *blast, struct connection *connection, const char *request)
{
    size_t length = strlen(request);
    ssize_t sent = blast->options->plain ? send(connection->fd, request, length, 0)
                                         : SSL_write(connection->ssl, request, (int)length);

    if (sent != (ssize_t)length)
        fail("sending a request");
    connection->left = blast->answer_length;
}

static ssize_t read_some(struct blast *blast, struct connection *connection, char *into, size_t room)
{
    ssize_t got = blast->options->plain ? recv(connection->fd, into, room, 0)
                                        : SSL_read(connection->ssl, into, (int)room);

    if (got <= 0)
        fail("reading an answer");
    return got;
}

/* An answer, opened and measured: the length of its head and its body. */
static uint64_t answer_read(struct blast *blast, struct connection *connection)
{
    char head[4096];
    size_t have = 0;
    char *end = NULL;
    const char *length;
    uint64_t whole;

    while (!end) {
        if (have >= sizeof(head) - 1)
            fail("the head of an answer is too long");
        have += (size_t)read_some(blast, connection, head + have, sizeof(head) - 1 - have);
        head[have] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    length = strcasestr(head, "content-length:");
    if (strncmp(head, "HTTP/1.1 20", 11) != 0 || !length || length > end)
        fail("an answer is no 200 with a length");
    whole = (uint64_t)(end + 4 - head) + strtoull(length + 15, NULL, 10);
    for (uint64_t seen = have; seen < whole;)
        seen += (uint64_t)read_some(blast, connection, blast->scratch, READ_SIZE);
    return whole;
}

static void connection_open(struct blast *blast, struct connection *connection)
{
    connection->fd = dial(blast->options);
    if (!blast->options->plain) {
        connection->ssl = SSL_new(blast->tls);
        if (!connection->ssl || SSL_set_fd(connection->ssl, connection->fd) != 1 || SSL_connect(connection->ssl) != 1)
            fail("handshake");
    }
    request_send(blast, connection, blast->probe);
    (void)answer_read(blast, connection);
}

/* Walks over plaintext; returns true when the answer is over. */
static bool plaintext_went_by(struct blast *blast, struct connection *connection, uint64_t count)
{
    if (count > connection->left)
        fail("an answer is longer than the first one");
    blast->plaintext += count;
    connection->left -= count;
    return connection->left == 0;
}

/* Walks over records; returns true when the answer is over. */
static bool records_went_by(struct blast *blast, struct connection *connection, const char *bytes, size_t length)
{
    unsigned overhead = blast->options->tls12 ? SEAL_OVERHEAD_12 : SEAL_OVERHEAD_13;
    bool over = false;

    while (length > 0) {
        if (connection->record_left > 0) {
            size_t step = length < connection->record_left ? length : connection->record_left;

            connection->record_left -= (uint32_t)step;
            bytes += step;
            length -= step;
            continue;
        }
        connection->header[connection->header_have++] = (uint8_t)*bytes++;
        length--;
        if (connection->header_have < RECORD_HEADER)
            continue;
        connection->header_have = 0;
        connection->record_left = (uint32_t)connection->header[3] << 8 | connection->header[4];
        if (connection->header[0] != 23 || connection->record_left < overhead)
            fail("a record that is no application data");
        over = plaintext_went_by(blast, connection, connection->record_left - overhead);
    }
    return over && connection->record_left == 0;
}

/* Readable: reads what is there, and asks again when an answer is over. */
static void connection_read(struct blast *blast, struct connection *connection)
{
    ssize_t got = recv(connection->fd, blast->scratch, READ_SIZE, MSG_DONTWAIT);
    bool over;

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0)
        fail("the connection ended");
    if (blast->options->plain)
        over = plaintext_went_by(blast, connection, (uint64_t)got);
    else
        over = records_went_by(blast, connection, blast->scratch, (size_t)got);
    /* the last record of an answer counts when its header is seen: wait for its bytes, too */
    if (over || (connection->left == 0 && connection->record_left == 0 && connection->header_have == 0)) {
        blast->answers++;
        request_send(blast, connection, blast->request);
    }
}

static void run(struct blast *blast)
{
    struct epoll_event events[EVENTS];
    double begin = now();
    double end = begin + blast->options->seconds;

    for (unsigned i = 0; i < blast->options->connections; i++)
        request_send(blast, &blast->connections[i], blast->request);
    while (now() < end) {
        int count = epoll_wait(blast->poll_fd, events, EVENTS, 100);

        for (int i = 0; i < count; i++)
            connection_read(blast, events[i].data.ptr);
    }
    printf("{\"answers\": %llu, \"bytes\": %llu, \"seconds\": %.3f}\n", (unsigned long long)blast->answers,
           (unsigned long long)blast->plaintext, now() - begin);
}

static void connections_open(struct blast *blast)
{
    blast->connections = calloc(blast->options->connections, sizeof(*blast->connections));
    blast->scratch = malloc(READ_SIZE);
    blast->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!blast->connections || !blast->scratch || blast->poll_fd < 0)
        fail("memory");
    for (unsigned i = 0; i < blast->options->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &blast->connections[i]};

        connection_open(blast, &blast->connections[i]);
        if (epoll_ctl(blast->poll_fd, EPOLL_CTL_ADD, blast->connections[i].fd, &event) < 0)
            fail("epoll_ctl");
    }
}

static SSL_CTX *tls_open(const struct options *options)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

    if (!tls)
        fail("TLS");
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    if (options->tls12) {
        SSL_CTX_set_max_proto_version(tls, TLS1_2_VERSION);
        if (SSL_CTX_set_cipher_list(tls, options->suite) != 1)
            fail(options->suite);
    } else {
        SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
        if (SSL_CTX_set_ciphersuites(tls, options->suite) != 1)
            fail(options->suite);
    }
    return tls;
}

static void usage(void)
{
    fputs("usage: blast [-a ADDRESS] [-c CONNECTIONS] [-s SECONDS] [-x SUITE] [-2] [-n] [-w] PORT PATH\n"
          "  -2  TLS 1.2   -n  no TLS   -w  says when it is ready, and begins when standard input ends\n",
          stderr);
    exit(2);
}

static void options_read(int argc, char **argv, struct options *out_options)
{
    int letter;

    while ((letter = getopt(argc, argv, "a:c:s:x:2nw")) != -1) {
        switch (letter) {
        case 'a': out_options->address = optarg; break;
        case 'c': out_options->connections = (unsigned)strtoul(optarg, NULL, 10); break;
        case 's': out_options->seconds = strtod(optarg, NULL); break;
        case 'x': out_options->suite = optarg; break;
        case '2': out_options->tls12 = true; break;
        case 'n': out_options->plain = true; break;
        case 'w': out_options->wait = true; break;
        default: usage();
        }
    }
    if (argc - optind != 2 || out_options->connections == 0)
        usage();
    out_options->port = (uint16_t)strtoul(argv[optind], NULL, 10);
    out_options->path = argv[optind + 1];
}

static void request_write(const struct blast *blast, const char *more, char *into, size_t size)
{
    int length = snprintf(into, size, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n%s\r\n",
                          blast->options->path, more);

    if (length < 0 || (size_t)length >= size)
        fail("the path is too long");
}

int main(int argc, char **argv)
{
    struct options options = {
        .address = "127.0.0.1", .suite = "TLS_AES_128_GCM_SHA256", .connections = 64, .seconds = 5};
    struct blast blast = {.options = &options};

    options_read(argc, argv, &options);
    blast.tls = options.plain ? NULL : tls_open(&options);
    request_write(&blast, "", blast.request, sizeof(blast.request));
    request_write(&blast, "Range: bytes=0-0\r\n", blast.probe, sizeof(blast.probe));
    connections_open(&blast);
    request_send(&blast, &blast.connections[0], blast.request);
    blast.answer_length = answer_read(&blast, &blast.connections[0]);
    puts("{\"ready\": true}");
    fflush(stdout);
    while (options.wait && getchar() != EOF)
        continue;
    if (options.seconds > 0)
        run(&blast);
    return 0;
}
