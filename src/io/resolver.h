/*
 * Names to addresses, by c-ares on the loop: hosts file and name servers, A, AAAA and SRV records, each with the
 * time for which it holds. Nothing blocks, and nothing is kept here: who asked decides when to ask again.
 */
#ifndef IO_RESOLVER_H
#define IO_RESOLVER_H

#include "io/loop.h"

struct resolver;
struct resolver_query;

/* Zeroed: this machine's name servers, both families. The text outlives the resolver. */
struct resolver_settings {
    struct str servers;             /* "127.0.0.1:53,[::1]:53"; empty: resolv.conf's */
    uint64_t valid_ms;              /* how long an answer holds, whatever it says itself; 0: as it says */
    uint64_t timeout_ms;            /* of one question, with all its tries; 0: LIMIT_RESOLVE_TIMEOUT_MS */
    bool no_ipv4, no_ipv6;
};

struct resolver_address {
    struct sockaddr_storage socket; /* with its port */
    socklen_t length;
    uint16_t priority, weight;      /* of SRV: the lowest priority comes first; else 0 */
};

struct resolver_answer {
    const struct resolver_address *addresses; /* none: an error */
    size_t count;
    uint64_t valid_ms;              /* how long they hold, within LIMIT_RESOLVE_LEAST_MS and LIMIT_RESOLVE_MOST_MS */
    const char *reason;             /* of an error, for the log; else NULL */
};

/* Called once for a question, from the loop. The answer is lent. */
typedef void resolver_done(void *owner, const struct resolver_answer *answer);

/* NULL when out of memory or descriptors. */
struct resolver *resolver_create(struct loop *loop, const struct resolver_settings *settings);
/* Nobody is answered any more. */
void resolver_stop(struct resolver *resolver);
/* After resolver_stop, once nothing is in flight. Accepts NULL. */
void resolver_destroy(struct resolver *resolver);

/*
 * Asks for the addresses of `host` (not longer than LIMIT_HOST), which get `port`; with a `service`, for its SRV records ("http" is
 * _http._tcp, what has a dot stands as it is), and their ports. At most LIMIT_UPSTREAM_ADDRESSES come. NULL when out of memory.
 */
struct resolver_query *resolver_ask(struct resolver *resolver, struct str host, uint16_t port, struct str service,
                                    resolver_done *done, void *owner);
/* Lets go of a question that was not answered yet: `done` does not run. Accepts NULL. */
void resolver_forget(struct resolver_query *query);

#endif
