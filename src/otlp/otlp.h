/*
 * Settings and counters of the export of spans by OTLP/HTTP. The directives are those of the module otel.
 */
#ifndef OTLP_OTLP_H
#define OTLP_OTLP_H

#include "base/str.h"

struct span_zone;                   /* otlp/span_ring.h */

struct otlp_pair {
    struct str name, value;
};

/* The collector: "http://HOST[:PORT][/PATH]". */
struct otlp_endpoint {
    struct str url;                 /* for messages; empty: spans are not exported */
    struct str host;                /* a name or an address, without brackets */
    struct str port;
    struct str authority;           /* for Host */
    struct str path;
};

struct otlp {
    struct otlp_endpoint endpoint;
    uint64_t interval_ms, batch_size, batch_count;
    struct str service_name;
    const struct otlp_pair *resource; /* further attributes of the resource */
    size_t resource_count;
    struct span_zone *zone;         /* opened by the master before it forks; NULL: spans are not exported */
};

/* In memory shared by all processes; atomic. No decision depends on them. */
struct otlp_counters {
    uint64_t sent;                  /* spans that the collector accepted */
    uint64_t dropped_full;          /* the queue of the worker was full */
    uint64_t dropped_failed;        /* not accepted by the collector, or lost with an exporter that died */
};

/*
 * Parses an endpoint into slices of `text`. "host:port" alone is accepted, too; without
 * port 4318, without path /v1/traces. 0, -EINVAL, or -EPROTONOSUPPORT for https.
 */
MUST_CHECK int otlp_endpoint_parse(struct str text, struct otlp_endpoint *out_endpoint);

static inline void otlp_count(uint64_t *counter, uint64_t spans)
{
    __atomic_fetch_add(counter, spans, __ATOMIC_RELAXED);
}

#endif
