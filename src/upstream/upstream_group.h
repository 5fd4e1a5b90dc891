/*
 * What the files of upstream ask of each other. Private to upstream.
 */
#ifndef UPSTREAM_UPSTREAM_GROUP_H
#define UPSTREAM_UPSTREAM_GROUP_H

#include "base/table.h"
#include "upstream/upstream_pool.h"

struct upstream_name;

struct upstream_group {
    const struct upstream *upstream;
    struct upstream_pool *pool;
    struct list peers;
    unsigned next_number;
    unsigned count;                 /* peers that are not gone */
    unsigned idle;                  /* connections kept */
    struct upstream_name *names;    /* owned: those of its servers that are to be resolved */
    struct list waiting;            /* struct upstream_waiter */
    struct op check;                /* when its servers are checked next */
    struct list probes;             /* checks under way */
};

/* A name among the servers of a group. */
struct upstream_name {
    struct upstream_name *next;     /* of the group */
    struct list due;                /* in pool->names_due, while it is not asked for */
    struct upstream_group *group;
    const struct upstream_server *server;
    uint64_t again_ms;              /* when it is asked for again */
    struct resolver_query *query;   /* under way; NULL: none */
    bool asked;                     /* an answer, good or bad, has come */
    unsigned failures;              /* bad answers in a row; the first of them was logged */
};

/* Names as one kind of settings wants them asked for. */
struct upstream_resolver {
    const struct resolver_settings *settings; /* the configuration's */
    struct resolver *resolver;      /* owned */
    struct upstream_resolver *next;
};

/* Groups made of variables: each owns what it points to. `text` is its authority, and as its key the default port behind it. */
struct upstream_target {
    struct upstream upstream;
    struct upstream_server server;
    struct upstream_group group;
    struct upstream_target *next;
    uint64_t used_ms;               /* asked for last */
    struct str key;                 /* in the table; of `text` */
    char text[];
};

/* TLS as one kind of settings wants it. */
struct upstream_tls_context {
    struct tls_client_settings settings; /* its text is the configuration's */
    struct tls_context *context;    /* owned */
    struct upstream_tls_context *next;
};

struct upstream_pool {
    struct loop *loop;
    struct log *log;
    const struct upstreams *upstreams; /* the configuration's */
    struct upstream_zone *zone;     /* NULL: each peer's state is its own */
    unsigned worker;                /* in the zone */
    struct wire_shared wires;       /* apart from the clients': their figures and caps are not mixed */
    struct wire_counters counters;
    struct wire_settings settings;
    struct upstream_group *groups;  /* by upstream->index */
    unsigned group_count;
    struct upstream_target *targets;
    struct upstream_tls_context *tls_contexts;
    struct table targets_by_name;
    struct list connections;        /* all but the idle ones */
    struct list awake;
    struct op tick;                 /* runs what is on `awake` */
    struct upstream_resolver *resolvers;
    struct list names_due;          /* those that are not being asked for */
    struct op next_name;            /* when the next name is due */
    bool stopping;
    bool retired;                   /* by upstream_pool_retire */
};

/* upstream_pool.c */

/* A peer of the group at that address. NULL when out of memory. */
struct upstream_peer *upstream_peer_add(struct upstream_group *group, const struct upstream_server *server,
                                        const struct listen_address *address);
/* Its name has other addresses now. It may be freed by this. */
void upstream_peer_retire(struct upstream_peer *peer);
/* Frees a retired peer that nobody uses any more. */
void upstream_peer_record(struct upstream_peer *peer);

/* upstream_connection.c */

/* Closes an idle connection. */
void upstream_connection_discard(struct upstream_connection *connection);
/* Closes the connections that were released and have not ended yet: what they still have to send is lost. */
void upstream_connections_stop(struct upstream_pool *pool);

/* upstream_tls.c */

void upstream_tls_contexts_finish(struct upstream_tls_context **tls_contexts);

/* upstream_balance.c */

/* A key and the name of a server, stirred: the same in every worker and after every start. */
uint64_t upstream_hash(struct str key, struct str server);

/* upstream_health.c */

#define UPSTREAM_WEIGHT_UNIT 256

/* Not gone, down, full, found bad by a check, or paused after failures. */
bool upstream_peer_available(const struct upstream_peer *peer);
/* Before it is asked: false where it has failed, and somebody else tries whether it is back. */
bool upstream_peer_try(struct upstream_peer *peer);
/* Its weight as of now, in UPSTREAM_WEIGHT_UNIT: less after failures, and during slow_start. */
uint64_t upstream_peer_weight(const struct upstream_peer *peer);
/* It can be asked again: failures are forgotten, and slow_start begins. */
void upstream_peer_returned(struct upstream_peer *peer);
/* A connection to it begins: false where it has max_conns. It ends. */
bool upstream_peer_enter(struct upstream_peer *peer);
void upstream_peer_leave(struct upstream_peer *peer);

/* upstream_check.c */

/* Checks its servers, now and again, where that is wanted. */
void upstream_checks_start(struct upstream_group *group);
void upstream_checks_stop(struct upstream_group *group);

/* upstream_resolve.c */

/* Has every name of the group resolved, now and again. 0 or -ENOMEM. */
MUST_CHECK int upstream_names_start(struct upstream_group *group);
/*
 * Until a name is asked for again after so many failures in a row (at least 1): LIMIT_RESOLVE_RETRY_MS, doubled up to
 * LIMIT_RESOLVE_RETRY_MOST_MS, and at most valid_ms, if that is not 0.
 */
uint64_t upstream_resolve_retry_ms(unsigned failures, uint64_t valid_ms);
void upstream_names_stop(struct upstream_pool *pool);
void upstream_names_finish(struct upstream_group *group);
/* After the last group. */
void upstream_resolvers_finish(struct upstream_pool *pool);

#endif
