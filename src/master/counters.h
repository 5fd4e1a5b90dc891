/*
 * The counters of a worker, in memory shared by all processes. Each block has one writer at a time (the worker of
 * that slot; the master while there is none), so counting is a plain store without locks. A reader may
 * observe the counters of one event at different times, but reads each word whole. The replacement of a worker
 * continues its counts.
 */
#ifndef MASTER_COUNTERS_H
#define MASTER_COUNTERS_H

#include "base/latency.h"
#include "base/memory_budget.h"
#include "http/exchange.h"
#include "http/protocol_counters.h"
#include "io/file_cache.h"
#include "wire/wire.h"

enum connection_state {
    CONNECTION_HANDSHAKE,           /* in the TLS handshake */
    CONNECTION_READING,             /* a request was received in part */
    CONNECTION_WRITING,             /* a response is being produced or sent */
    CONNECTION_WAITING,             /* for the first or the next request */
    CONNECTION_STATES
};

enum request_protocol { REQUEST_HTTP_1_0, REQUEST_HTTP_1_1, REQUEST_HTTP_2, COUNTERS_PROTOCOLS };

#define COUNTERS_STATUSES 600

/* Every member consists of uint64_t. */
struct counters {
    /* Current values, like exchange_memory and h2_streams; the others only grow. */
    uint64_t connections[CONNECTION_STATES];
    uint64_t exchange_memory;               /* bytes of requests and responses being processed */
    uint64_t exchange_rejections;           /* number of allocations rejected at the limit of this memory */
    uint64_t accepted;
    uint64_t rejected;                      /* rejected by the limit per address */
    uint64_t requests;                      /* received heads; `status` counts ended exchanges */
    /* The same by enum request_protocol. */
    uint64_t requests_by_protocol[COUNTERS_PROTOCOLS];
    struct latency latency;                 /* of ended exchanges */
    uint64_t log_lines_dropped;
    struct protocol_counters protocols;
    struct wire_counters wires;
    struct wire_counters upstream_wires;    /* to upstream servers */
    struct file_cache_counters files;
    uint64_t status[COUNTERS_STATUSES];     /* by $status; [0]: others */
};

/* The sums of the counters of all workers, and the state of the server. */
struct counters_total {
    struct counters sum;
    uint64_t workers;                       /* configured number */
    uint64_t restarts;                      /* of workers that died */
    uint64_t generation;                    /* 1, and one more after each reload */
    uint64_t started_s;                     /* since the epoch: start of the master */
    uint64_t spans_sent;
    uint64_t spans_dropped[2];              /* because the queue of a worker was full; because they were not sent */
    /* ssl_ktls: auto: CPU time in ns per KiB of large bodies; 0: not measured */
    uint64_t ktls_kernel_ns[RECORD_CIPHERS], ktls_user_ns[RECORD_CIPHERS];
    uint64_t aead_ipsec_mb[RECORD_CIPHERS]; /* 1: the AEAD engine of the cipher is ipsec-mb; 0: OpenSSL */
};

/* Counts a received head. */
void counters_add_request(struct counters *counters, enum http_version version);
/* Counts an exchange that ended with `status` ($status as a number), `took_us` after its first byte. */
void counters_add_response(struct counters *counters, int status, uint64_t took_us);
/* Copies the memory in use, and moves the rejections counted since the previous call. */
void counters_set_memory(struct counters *counters, struct memory_budget *budget);
/* Clears the current values of a worker that has exited. */
void counters_reset_current(struct counters *counters);
/* Adds counters that another process may be updating. */
void counters_add(struct counters *sum, const struct counters *part);

#endif
