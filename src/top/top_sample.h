/*
 * One reading of a status page: the JSON object of the module `status`. The page comes from another process, perhaps
 * on another machine, and is not trusted.
 */
#ifndef TOP_TOP_SAMPLE_H
#define TOP_TOP_SAMPLE_H

#include "base/arena.h"
#include "base/limits.h"

enum top_connection { TOP_HANDSHAKE, TOP_READING, TOP_WRITING, TOP_WAITING, TOP_CONNECTIONS };
enum top_handshake { TOP_FULL, TOP_RESUMED, TOP_FAILED, TOP_HANDSHAKES };
enum { TOP_CLASSES = 6 };

/* The labels of the metrics, ended by NULL. */
extern const char *const top_connection_names[TOP_CONNECTIONS + 1];
extern const char *const top_handshake_names[TOP_HANDSHAKES + 1];
extern const char *const top_class_names[TOP_CLASSES + 1];

/* A transmission path: $tls_path. */
struct top_path {
    struct str name;
    uint64_t bytes, transfers;
};

/* The requests that took at most this long. */
struct top_bucket {
    uint64_t bound_us;              /* UINT64_MAX: all */
    uint64_t count;
};

/* Buckets with increasing bounds and counts. */
struct top_histogram {
    struct top_bucket buckets[LIMIT_TOP_BUCKETS];
    unsigned count;
    uint64_t sum_us;                /* of all times */
};

enum top_zone_kind { TOP_SERVERS, TOP_LOCATIONS, TOP_STREAMS, TOP_ZONE_KINDS };

/* A zone of servers, of locations, or of servers of stream, which counts connections (`status_zone`). */
struct top_zone {
    struct str name;
    uint64_t requests;
    uint64_t responses[TOP_CLASSES];
    struct top_histogram latency;
    uint64_t active;                /* of TOP_STREAMS: open connections */
};

struct top_zones {
    struct top_zone *items;
    unsigned count, capacity;
};

/* A response cache. */
struct top_cache {
    struct str name;
    uint64_t files, bytes;
    uint64_t max_bytes;             /* 0: unlimited */
    uint64_t responses;             /* the sum over all values of $upstream_cache_status */
    uint64_t hits;
};

struct top_upstream {
    struct str group, server, state;
    uint64_t requests, failures, active;
    uint64_t header_us, answer_us;  /* recent response times */
};

/* Counters and gauges as on the page; 0 or empty if the page lacks them. */
struct top_sample {
    struct arena arena;             /* texts and lists */
    uint64_t read_us;               /* monotonic time of the reading, set by the caller */
    struct str version;
    uint64_t started_s, generation, workers, restarts;
    uint64_t connections[TOP_CONNECTIONS];
    uint64_t accepted, requests;
    uint64_t responses[TOP_CLASSES];
    uint64_t handshakes[TOP_HANDSHAKES];
    struct top_path paths[LIMIT_TOP_PATHS];
    unsigned path_count;
    struct top_histogram latency;
    struct top_upstream *upstreams;
    unsigned upstream_count, upstream_capacity;
    struct top_zones zones[TOP_ZONE_KINDS];
    struct top_cache *caches;
    unsigned cache_count, cache_capacity;
};

/*
 * Parses a page. Returns 0, -EBADMSG: it is not the JSON form of a status page, -E2BIG: it exceeds a limit, -ENOMEM.
 * The sample is valid in each case and needs top_sample_finish. Metrics with unknown names are ignored.
 */
MUST_CHECK int top_sample_parse(struct str page, struct top_sample *out_sample);
/* The sentence for an error of top_sample_parse. Static. */
const char *top_sample_fault(int error);
/* Accepts a zeroed sample. */
void top_sample_finish(struct top_sample *sample);

#endif
