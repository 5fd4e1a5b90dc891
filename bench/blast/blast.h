/*
 * The shared declarations of the load generator. A connection performs the handshake with OpenSSL, and decrypts and
 * checks its first response. After that it either parses only record headers while the kernel discards the payload, or
 * decrypts and hashes all responses (--verify). Every response must have the length of the first one. One thread,
 * one epoll descriptor; all descriptors are non-blocking.
 */
#ifndef BLAST_H
#define BLAST_H

#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "record_parser.h"

enum { PIPELINE_MAX = 64, DIGEST_SIZE = 32, SCRATCH_SIZE = 256 * 1024 };

enum mode { MODE_REQUESTS, MODE_HANDSHAKES };

struct options {
    enum mode mode;
    const char *address;
    const char *path;
    const char *suite;              /* NULL: the default of the version */
    uint16_t port;
    unsigned connections;
    unsigned idle;                  /* additional connections without requests after the first response */
    unsigned pipeline;
    unsigned ramp;                  /* connections to open per second; 0: no limit */
    double seconds;
    double warmup;                  /* seconds of the same load before the ready line */
    double rate;                    /* requests per second; 0: each response triggers the next request */
    uint64_t responses;             /* stop after this many; 0: by time */
    uint64_t slow;                  /* bytes that each connection reads per second; 0: no limit */
    bool plain;
    bool tls12;
    bool resume;
    bool verify;
    bool busy;                      /* poll without sleeping, so that the server spends no time on wakeups */
    bool wait;                      /* after the ready line: wait for the end of standard input */
};

struct connection {
    int fd;
    SSL *ssl;                       /* NULL: plain */
    EVP_MD_CTX *digest;             /* of the body being received; NULL: nothing is decrypted */
    struct record_parser parser;
    uint64_t received;              /* plaintext of the current response */
    unsigned outstanding;           /* requests without a complete response */
    unsigned first_outstanding;     /* index in due_at of the oldest outstanding request */
    uint64_t due_at[PIPELINE_MAX];  /* start of the latency of each outstanding request, nanoseconds */
};

struct counts {
    uint64_t responses;
    uint64_t bytes;                 /* plaintext, including response heads */
};

struct blast {
    const struct options *options;
    SSL_CTX *tls;
    SSL_SESSION *session;           /* for resumption; used by handshakes.c */
    struct connection *connections;
    char request[2048];
    char one_byte_request[2048];    /* used if complete responses have too many bytes */
    uint64_t response_length;       /* head and body */
    uint64_t head_length;
    uint8_t body_digest[DIGEST_SIZE];
    struct counts done;
    uint64_t verified;
    uint64_t handshakes;
    uint64_t resumed;
    struct histogram latency;
    struct histogram connect_time;  /* connect and handshake */
    uint64_t idle_poll_ns;          /* nanoseconds of polls that found no response (busy) */
    bool draining;                  /* after the measured time: no requests are sent */
    int poll_fd;
    uint8_t *scratch;
};

/* fatal.c: Prints a message, with the text of errno unless it is 0, and ends the program. */
_Noreturn void fatal(const char *what);
uint64_t monotonic_ns(void);

/* options.c: Parses the command line; ends the program if it is invalid. */
void options_read(int argc, char **argv, struct options *out_options);

/*
 * connect.c: socket_connect returns a connected, blocking socket. `source_index` selects the source address, since each
 * address has its own ephemeral ports.
 */
int socket_connect(const struct options *options, unsigned source_index);
SSL_CTX *tls_context_create(const struct options *options);

/* connection_setup.c: Opens all connections, checks a response on each, and makes their descriptors non-blocking. */
void connections_establish(struct blast *blast);

/*
 * Reads and decrypts a response from a blocking descriptor. Sets head_length and body_digest; returns the length of
 * head and body.
 */
uint64_t response_read(struct blast *blast, struct connection *connection, const char *request);

/*
 * receive.c: connection_send_request sends one request; its latency counts from due_at (clock of monotonic_ns).
 * connection_receive reads at most `limit` bytes, and returns the number of completed responses.
 */
void connection_send_request(struct blast *blast, struct connection *connection, uint64_t due_at);
unsigned connection_receive(struct blast *blast, struct connection *connection, size_t limit);

/*
 * load.c: Runs the load for a time or a number of responses, and returns the elapsed seconds. Then receives outstanding
 * responses, unless they have too many bytes. *out_measured has the counts before that, blast->done those after it.
 */
double run_requests(struct blast *blast, double seconds, struct counts *out_measured);

/* slow_readers.c: As run_requests, with slow readers. */
double run_slow(struct blast *blast, double seconds, struct counts *out_measured);

/* handshakes.c: Opens connections one after another, `connections` of them in parallel. */
double run_handshakes(struct blast *blast, double seconds);

#endif
