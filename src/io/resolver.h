/*
 * Resolves names by c-ares on the loop: hosts file and name servers; A, AAAA and SRV records, each with its time to
 * live. Does not block and does not cache: the caller decides when to resolve again.
 */
#ifndef IO_RESOLVER_H
#define IO_RESOLVER_H

#include "io/loop.h"

struct resolver;
struct resolver_query;

/* Zeroed: the system's name servers, both address families. `servers` must outlive the resolver. */
struct resolver_settings {
    struct str servers;             /* "127.0.0.1:53,[::1]:53"; empty: from resolv.conf */
    uint64_t valid_ms;              /* overrides the TTL of all answers; 0: the TTL of the records */
    uint64_t timeout_ms;            /* of one query with all retries; 0: LIMIT_RESOLVE_TIMEOUT_MS */
    bool no_ipv4, no_ipv6;
};

struct resolver_address {
    struct sockaddr_storage socket; /* with its port */
    socklen_t length;
    uint16_t priority, weight;      /* of the SRV record, the lowest priority value is preferred; else 0 */
};

struct resolver_answer {
    const struct resolver_address *addresses;
    size_t count;                               /* 0 on an error */
    /* resolver_settings.valid_ms; else the TTL, limited to LIMIT_RESOLVE_MIN_MS and LIMIT_RESOLVE_MAX_MS. */
    uint64_t valid_ms;
    const char *reason;                         /* error text for the log; NULL without an error */
};

/* Called once per query, from the loop. The answer is valid during the call. */
typedef void resolver_done(void *owner, const struct resolver_answer *answer);

/* NULL when out of memory or descriptors. */
struct resolver *resolver_create(struct loop *loop, const struct resolver_settings *settings);
/* Drops all queries: `done` does not run. */
void resolver_stop(struct resolver *resolver);
/* After resolver_stop, once nothing is in flight. Accepts NULL. */
void resolver_destroy(struct resolver *resolver);

/*
 * Resolves `host` (at most LIMIT_HOST bytes); the addresses get `port`. With a `service`, resolves its SRV records
 * ("http" is _http._tcp, a name with a dot is used unchanged) and uses their ports. At most LIMIT_UPSTREAM_ADDRESSES
 * results. NULL when out of memory.
 */
struct resolver_query *resolver_query_start(struct resolver *resolver, struct str host, uint16_t port,
                                            struct str service, resolver_done *done, void *owner);
/* Drops a query that was not answered yet: `done` does not run. Accepts NULL. */
void resolver_query_cancel(struct resolver_query *query);

#endif
