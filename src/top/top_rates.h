/*
 * The difference of two samples: values per second, shares, quantiles of the latency.
 */
#ifndef TOP_TOP_RATES_H
#define TOP_TOP_RATES_H

#include "top/top_sample.h"

enum { TOP_P50, TOP_P90, TOP_P99, TOP_QUANTILES };
extern const char *const top_quantile_names[TOP_QUANTILES];

struct top_path_rate {
    struct str name;
    double bytes, transfers;        /* per second */
    double share;                   /* of all bytes sent, from 0 to 1 */
};

struct top_quantile {
    double seconds;
    bool beyond;                    /* it is in the last bucket: longer than `seconds` */
};

struct top_upstream_rate {
    const struct top_upstream *upstream;    /* of the later sample */
    double requests, failures;              /* per second */
};

struct top_zone_rate {
    const struct top_zone *zone;    /* of the later sample */
    double requests, failures;      /* per second; failures: status 5xx */
    double active;                  /* requests in progress on average: their times per second; open connections */
    bool has_latency;               /* requests ended between the samples */
    struct top_quantile quantiles[TOP_QUANTILES];
};

struct top_zone_rates {
    struct top_zone_rate *items;
    unsigned count;
};

struct top_cache_rate {
    const struct top_cache *cache;  /* of the later sample */
    double responses, hits;         /* per second; hits: not more than responses */
};

/* Texts belong to the later sample. */
struct top_rates {
    double seconds;                 /* between the samples */
    bool restarted;                 /* the server started between them: the rates count from its start on */
    double accepted, requests, bytes;
    double responses[TOP_CLASSES];
    double handshakes[TOP_HANDSHAKES];
    struct top_path_rate paths[LIMIT_TOP_PATHS];
    unsigned path_count;
    bool has_latency;               /* requests ended between the samples */
    struct top_quantile quantiles[TOP_QUANTILES];
    struct top_upstream_rate *upstreams;
    unsigned upstream_count;
    struct top_zone_rates zones[TOP_ZONE_KINDS];
    struct top_cache_rate *caches;
    unsigned cache_count;
};

/*
 * Compares `now` with the earlier sample `before`. A counter that decreased has begun again at 0. The lists of
 * upstream servers, zones and caches are in the arena of `now`. Returns 0 or -ENOMEM.
 */
MUST_CHECK int top_rates_compute(const struct top_sample *before, struct top_sample *now, struct top_rates *out_rates);

#endif
