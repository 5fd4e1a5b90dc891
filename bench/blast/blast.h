/*
 * The load generator's parts. A connection shakes hands by OpenSSL, opens and checks its first answer, and from then
 * on only walks over records while the kernel drops what is in them; or it opens and hashes all of them (--verify).
 * Every answer must be as long as the first. One thread, one epoll descriptor, all descriptors without blocking.
 */
#ifndef BLAST_H
#define BLAST_H

#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "walk.h"

enum { PIPELINE_MAX = 64, DIGEST_SIZE = 32, SCRATCH_SIZE = 256 * 1024 };

enum mode { MODE_REQUESTS, MODE_HANDSHAKES };

struct options {
    enum mode mode;
    const char *address;
    const char *path;
    const char *suite;              /* NULL: the one that comes with the version */
    uint16_t port;
    unsigned connections;
    unsigned idle;                  /* more connections, which ask for nothing after their first answer */
    unsigned pipeline;
    unsigned ramp;                  /* connections to open per second; 0: as fast as it goes */
    double seconds;
    double warm;                    /* seconds of the same load before the ready line */
    double rate;                    /* requests per second, whatever the server does; 0: each answer brings a request */
    uint64_t answers;               /* end after so many; 0: by time */
    uint64_t slow;                  /* bytes that each connection reads per second; 0: all there is */
    bool plain;
    bool tls12;
    bool resume;
    bool verify;
    bool busy;                      /* never sleep: no server spends time on waking the client */
    bool wait;                      /* ready: wait for the end of standard input */
};

struct connection {
    int fd;
    SSL *ssl;                       /* NULL: plain */
    EVP_MD_CTX *digest;             /* of the body that is arriving; NULL: nothing is opened */
    struct walk walk;
    uint64_t have;                  /* plaintext of the answer that is arriving */
    unsigned outstanding;           /* requests without a whole answer */
    unsigned oldest;                /* the place of the oldest one's time in asked_at */
    uint64_t asked_at[PIPELINE_MAX];
};

struct counts {
    uint64_t answers;
    uint64_t bytes;                 /* plaintext, heads included */
};

struct blast {
    const struct options *options;
    SSL_CTX *tls;
    SSL_SESSION *session;           /* for resumption; the handshakes' own */
    struct connection *connections;
    char request[2048];
    char probe[2048];               /* the same for one byte, where a whole answer for each connection were too much */
    uint64_t answer_length;         /* head and body */
    uint64_t head_length;
    uint8_t body_digest[DIGEST_SIZE];
    struct counts done;
    uint64_t verified;
    uint64_t handshakes;
    uint64_t resumed;
    struct histogram latency;
    struct histogram opening;       /* connect and handshake */
    uint64_t looking;               /* nanoseconds of looking for answers when none were there (busy) */
    bool closing;                   /* the time is over: answers are awaited, nothing is asked */
    int poll_fd;
    uint8_t *scratch;
};

/* fail.c: ends the program with a message; errno is told where it is set. */
_Noreturn void fail(const char *what);
uint64_t now(void);                 /* nanoseconds, monotonic */

/* options.c: the command line; ends the program where it is wrong. */
void options_read(int argc, char **argv, struct options *out_options);

/* dial.c: a connected socket that blocks; `turn` spreads the source addresses so that ports do not run out. */
int dial(const struct options *options, unsigned turn);
SSL_CTX *tls_open(const struct options *options);

/* open.c: opens all connections, checks an answer on each, and leaves their descriptors without blocking. */
void connections_open(struct blast *blast);

/* An answer read and opened while the descriptor blocks: fills head_length, body_digest; returns head and body. */
uint64_t answer_open(struct blast *blast, struct connection *connection, const char *request);

/* receive.c: sends one request (its time counts from asked_at), and takes what has arrived, at most `most` bytes.
   Returns how many answers are over. */
void connection_ask(struct blast *blast, struct connection *connection, uint64_t asked_at);
unsigned connection_take(struct blast *blast, struct connection *connection, size_t most);

/* run.c: the load for so many seconds or answers; out_inside counts what had come when the time was over, blast->done
   all. The rest of answers is awaited, unless it would be too many bytes. */
double run_requests(struct blast *blast, double seconds, struct counts *out_inside);

/* slow.c: the same with slow readers. */
double run_slow(struct blast *blast, double seconds, struct counts *out_inside);

/* handshakes.c: connections one after another in `connections` places. */
double run_handshakes(struct blast *blast, double seconds);

#endif
