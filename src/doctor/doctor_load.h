/*
 * The client of the benchmark: requests the same range of a file repeatedly over several connections, with HTTP/1.1,
 * plain or over TLS 1.3. It has one thread; it decrypts and counts the bodies, but does not verify them.
 */
#ifndef DOCTOR_DOCTOR_LOAD_H
#define DOCTOR_DOCTOR_LOAD_H

#include "base/must_check.h"
#include "base/str.h"

#include <signal.h>
#include <stdint.h>

#define LOAD_CONNECTIONS 16
#define LOAD_PATH        "/body"
#define LOAD_SUITE       "TLS_AES_128_GCM_SHA256"

struct load {
    uint16_t port;                  /* on 127.0.0.1 */
    bool tls;
    uint32_t length;                /* of each body */
    unsigned connections;           /* at most LOAD_CONNECTIONS */
    uint64_t last_us;               /* CLOCK_MONOTONIC: the end of load_open and load_await */
};

struct load_counts {
    uint64_t responses;             /* received completely */
    uint64_t bytes;                 /* of bodies, including parts of the responses that are not complete */
};

/* The state of one response in a stream of responses. Zeroed: at the beginning of a response. */
struct load_reader {
    char head[1024];                /* the beginning of the header section */
    size_t head_length;
    bool in_body;
    uint64_t left;                  /* bytes of the body that are missing */
};

/*
 * Consumes received bytes of one response, and adds them to `counts`. Returns 1 if the response is complete, 0 if not,
 * or -EPROTO: its status is not 206, its header section has no Content-Length or is too long, or bytes follow it.
 */
MUST_CHECK int load_reader_consume(struct load_reader *reader, struct str bytes, struct load_counts *counts);

struct load_client;

/*
 * Connects all connections, with their handshakes. Returns 0, or -errno: -EPROTO if a handshake failed, -ETIMEDOUT if
 * one would begin after `last_us`. Each step ends after LIMIT_BENCHMARK_WAIT_MS; a signal ends a handshake with -EINTR.
 */
MUST_CHECK int load_open(const struct load *load, struct load_client **out_client);
/*
 * Requests until `end_us` (CLOCK_MONOTONIC), `bytes_max` or `*stop`, and adds to `counts`. Responses may be incomplete
 * at the end: the next call continues them. Returns 0 or -errno: -ECONNRESET if the server closed a connection.
 */
MUST_CHECK int load_run(struct load_client *client, uint64_t end_us, uint64_t bytes_max,
                        const volatile sig_atomic_t *stop, struct load_counts *counts);
/*
 * The same until `last_us`, `*stop`, or until `counts` has more responses than there are connections: then the server
 * has received at least one request since `counts` was zeroed.
 */
MUST_CHECK int load_await(struct load_client *client, const volatile sig_atomic_t *stop, struct load_counts *counts);
/* Closes the connections. Accepts NULL. */
void load_close(struct load_client *client);

#endif
