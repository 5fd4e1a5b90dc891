/*
 * Settings and counters of the export of spans by OTLP/HTTP. The directives are those of the module otel.
 */
#ifndef OTLP_OTLP_H
#define OTLP_OTLP_H

#include "base/str.h"

struct span_zone;                   /* otlp/span_ring.h */
struct tls_context;                 /* tls/tls_context.h */

struct otlp_pair {
    struct str name, value;
};

/* The collector: "http://HOST[:PORT][/PATH]", or the same with https. */
struct otlp_endpoint {
    struct str url;                 /* for messages; empty: spans are not exported */
    struct str host;                /* a name or an address, without brackets */
    struct str port;
    struct str authority;           /* for Host */
    struct str path;
    bool tls;                       /* https */
};

struct otlp {
    struct otlp_endpoint endpoint;
    uint64_t interval_ms, batch_size, batch_count;
    bool gzip;                          /* bodies of requests are compressed; only if otlp_gzip_built */
    struct str service_name;
    const struct otlp_pair *resource;   /* further attributes of the resource */
    size_t resource_count;
    const struct otlp_pair *fields;     /* further fields of the requests; valid by RFC 9110 5.1 and 5.5 */
    size_t field_count;
    struct tls_context *tls;            /* of an https endpoint; owned */
    struct span_zone *zone;             /* opened by the master before it forks; NULL: spans are not exported */
};

/* In memory shared by all processes; atomic. No decision depends on them. */
struct otlp_counters {
    uint64_t sent;                  /* spans that the collector accepted */
    uint64_t dropped_full;          /* the queue of the worker was full */
    uint64_t dropped_failed;        /* not accepted by the collector, or lost with an exporter that died */
};

/*
 * Parses an endpoint into slices of `text`. "host:port" alone is accepted, too, and means http. Without a port 4318,
 * for https 443; without a path /v1/traces. 0 or -EINVAL.
 */
MUST_CHECK int otlp_endpoint_parse(struct str text, struct otlp_endpoint *out_endpoint);

/*
 * Creates the context that verifies the collector's certificate: by the PEM file `trusted`, or by the system's store if
 * it is empty. Replaces an earlier one. 0, or -EINVAL with an error text in `out_error` (at least 256 bytes).
 */
MUST_CHECK int otlp_tls_context_open(struct otlp *otlp, struct str trusted, char *out_error, size_t error_size);
/* Frees the context, if there is one. */
void otlp_tls_context_close(struct otlp *otlp);

/* Adds to one of the counters. */
static inline void otlp_count(uint64_t *counter, uint64_t spans)
{
    __atomic_fetch_add(counter, spans, __ATOMIC_RELAXED);
}

#endif
