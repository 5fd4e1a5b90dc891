/*
 * Functions and structs shared by the files of upstream/. Private to upstream/.
 */
#ifndef UPSTREAM_UPSTREAM_GROUP_H
#define UPSTREAM_UPSTREAM_GROUP_H

#include "base/table.h"
#include "upstream/upstream_changes.h"
#include "upstream/upstream_pool.h"

struct upstream_name;

struct upstream_group {
    const struct upstream *upstream;
    struct upstream_pool *pool;
    struct list peers;
    unsigned next_number;
    unsigned count;                 /* peers in use */
    unsigned idle;                  /* idle connections */
    struct upstream_name *names;    /* owned: the names to resolve */
    struct list waiting;            /* struct upstream_waiter */
    struct op check;                /* timer of the next health checks */
    struct list probes;             /* checks in progress */
};

/* A name among the servers of a group. */
struct upstream_name {
    struct upstream_name *next;     /* next name of the group */
    struct list due;                /* in pool->names_due unless a query is open */
    struct upstream_group *group;
    const struct upstream_server *server;
    struct upstream_added *added;   /* owned: `server` was added at run time; NULL: it is part of the configuration */
    uint64_t next_query_ms;         /* time of the next query */
    struct resolver_query *query;   /* open query; NULL: none */
    bool resolved;                  /* a query has ended, also with an error, or stored addresses were loaded */
    unsigned failures;              /* consecutive errors; the first of them was logged */
};

/* The resolver of one set of settings. */
struct upstream_resolver {
    const struct resolver_settings *settings;   /* part of the configuration */
    struct resolver *resolver;                  /* owned */
    struct upstream_resolver *next;
};

/* A group created from variables, with its memory. `text` holds its authority and, for the key, the default port. */
struct upstream_target {
    struct upstream upstream;
    struct upstream_server server;
    struct upstream_group group;
    struct upstream_target *next;
    uint64_t used_ms;               /* time of the last use */
    struct str key;                 /* in the table; part of `text` */
    char text[];
};

/* A server that was added at run time: an address, a name, or an address of a name. */
struct upstream_added {
    struct upstream_server server;
    uint64_t serial;                /* of its row in the table of changes */
    char text[128];                 /* of `server`; begins with its host */
};

/* The TLS context of one set of settings. */
struct upstream_tls_context {
    struct tls_client_settings settings;    /* its texts are part of the configuration */
    struct tls_context *context;            /* owned */
    struct upstream_tls_context *next;
};

struct upstream_pool {
    struct loop *loop;
    struct log *log;
    const struct upstreams *upstreams;  /* part of the configuration */
    struct upstream_zone *zone;         /* NULL: peers have only per-worker state */
    unsigned worker;                    /* index in the zone */
    struct wire_shared wires;           /* counters and caps of the wires, separate from those of clients */
    struct wire_counters counters;
    struct wire_settings settings;
    struct upstream_group *groups;      /* indexed by upstream->index */
    unsigned group_count;
    struct upstream_target *targets;
    struct upstream_tls_context *tls_contexts;
    struct table targets_by_name;
    uint64_t check_interval_ms;         /* the shortest interval of the groups' health checks; 0: none */
    struct list connections;            /* all but idle connections */
    struct list woken;
    struct op tick;                     /* processes `woken` */
    struct upstream_resolver *resolvers;
    struct list names_due;              /* names without an open query */
    struct op next_name;                /* timer of the next due name */
    bool name_removed;                  /* requests may wait for a removed name: that timer notifies them */
    struct upstream_changes *changes;   /* the zone's table of changes; NULL: none are applied */
    uint64_t configuration;             /* number of the configuration of this worker */
    uint64_t changes_seen;              /* upstream_changes_count when they were last applied */
    uint64_t newer_since_ms;            /* when the table got a newer configuration number; 0: it has none */
    struct op follow;                   /* timer: applies changes, frees retired peers */
    bool sweep;                         /* that timer has retired peers to free */
    bool stopping;
    bool retired;                       /* set by upstream_pool_retire */
};

/* upstream_peer.c: creates the peer of the group with that address. NULL when out of memory. */
struct upstream_peer *upstream_peer_add(struct upstream_group *group, const struct upstream_server *server,
                                        const struct listen_address *address, uint64_t weight);
/* The same for a server that was added at run time. Copies `server`. */
struct upstream_peer *upstream_peer_add_changed(struct upstream_group *group, const struct upstream_server *server,
                                                const struct listen_address *address, uint64_t serial);
/* Copies the server; the caller frees the copy. NULL when out of memory. */
struct upstream_added *upstream_added_create(const struct upstream_server *server, uint64_t serial);
/* Frees a peer that is in no list, and releases its state in the zone. */
void upstream_peer_free(struct upstream_peer *peer);
/* Frees a retired peer without connections. */
void upstream_peer_free_unused(struct upstream_peer *peer);

/*
 * upstream_socket.c: opens a socket for a connection to that address, not connected, bound to the local address unless
 * that is NULL. Returns the descriptor or -errno.
 */
MUST_CHECK int upstream_socket_open(const struct listen_address *address, const struct sockaddr *local_address);

/* upstream_connection.c: closes an idle connection; the user of a shared one gets `failed`. */
void upstream_connection_discard(struct upstream_connection *connection);
/* Creates a connection, which connects, and is in no list yet. NULL with *out_error. */
struct upstream_connection *upstream_connection_create(struct upstream_peer *peer,
                                                       const struct upstream_transport *transport, int *out_error);
/* Stores the server's TLS session, which arrived with or after the first response. */
void upstream_connection_store_session(struct upstream_connection *connection);
/* Aborts released connections that have not closed yet; their unsent output is lost. */
void upstream_connections_stop(struct upstream_pool *pool);

/* upstream_keepalive.c: true if the connection has this local address, these TLS settings and this name. */
bool upstream_connection_matches(const struct upstream_connection *connection,
                                 const struct upstream_transport *transport);
/*
 * True if it can become idle. If its group has `keepalive` idle connections already, closes the one of the same peer
 * that has been idle longest.
 */
bool upstream_connection_may_keep_idle(struct upstream_connection *connection);
/* Puts it among the idle connections of its peer, and sets keepalive_timeout. */
void upstream_connection_keep_idle(struct upstream_connection *connection);

/* upstream_idle.c: closes the idle connections of the group. Returns their number. */
unsigned upstream_group_close_idle(struct upstream_group *group);
/* Retires a peer whose address is no longer current. May free it. */
void upstream_peer_retire(struct upstream_peer *peer);
/* Closes the idle connections of a retired peer, and frees it unless it is in use. */
void upstream_peer_sweep(struct upstream_peer *peer);

/* upstream_follow.c: applies the changes of servers since the last call. Frees no peer. */
void upstream_follow_now(struct upstream_pool *pool);
/* Applies the rows of the table to the peers of this worker. The caller holds its lock. Frees no peer. */
void upstream_apply_changes(struct upstream_pool *pool);
/* True if the peer is in use and has this name. */
static inline bool upstream_peer_is_named(const struct upstream_peer *peer, struct str name)
{
    return !peer->retired && str_equal(str_from(peer->name), name);
}
/* Applies new changes before a server of the group is selected; without `zone`, has no effect. */
static inline void upstream_group_follow(const struct upstream_group *group)
{
    struct upstream_pool *pool = group->pool;

    if (group->upstream->zone && pool->changes && upstream_changes_count(pool->changes) != pool->changes_seen)
        upstream_follow_now(pool);
}

/* upstream_tls.c */

void upstream_tls_contexts_finish(struct upstream_tls_context **tls_contexts);

/* upstream_hash.c: a hash of a key and a server's name, identical in every worker and after every start. */
uint64_t upstream_hash(struct str key, struct str server);

/* upstream_health.c */

#define UPSTREAM_WEIGHT_UNIT 256

/*
 * False if the peer is retired, down, at max_conns, failed its health checks, or pauses after failures; or if it is
 * draining, unless the request belongs to one of its sticky sessions (`bound`).
 */
bool upstream_peer_available(const struct upstream_peer *peer, bool bound);
/* Called before a request. False: the peer has failed, and it is still paused or another request retries it already. */
bool upstream_peer_try(struct upstream_peer *peer);
/* The current weight times UPSTREAM_WEIGHT_UNIT: reduced after failures and during slow_start. */
uint64_t upstream_peer_weight(const struct upstream_peer *peer);
/* Reduces lost_weight, after a selection among the group's peers. */
void upstream_peer_regain_weight(struct upstream_peer *peer);
/* The peer is available again: resets its failures, and begins slow_start. */
void upstream_peer_recovered(struct upstream_peer *peer);
/* Counts a new connection, or returns false if max_conns is reached; upstream_peer_release counts its end. */
bool upstream_peer_acquire(struct upstream_peer *peer);
void upstream_peer_release(struct upstream_peer *peer);

/* upstream_check.c: starts periodic checks of the group's servers, if configured. */
void upstream_checks_start(struct upstream_group *group);
/* Cancels the timer and the checks in progress. */
void upstream_checks_stop(struct upstream_group *group);

/* upstream_resolve.c: starts periodic resolution of the group's names. 0 or -ENOMEM. */
MUST_CHECK int upstream_names_start(struct upstream_group *group);
/*
 * Adds a name that was added at run time, with the addresses that other workers stored; the first query begins later.
 * The server is copied. Does nothing when out of memory.
 */
void upstream_names_add(struct upstream_group *group, const struct upstream_server *server, uint64_t serial);
/* Removes such a name from the group; its peers remain. */
void upstream_name_remove(struct upstream_name *name);
/*
 * The delay before the next query after `failures` consecutive errors (at least 1): LIMIT_RESOLVE_RETRY_MS, doubled
 * up to LIMIT_RESOLVE_RETRY_MAX_MS, and at most valid_ms unless that is 0.
 */
uint64_t upstream_resolve_retry_ms(unsigned failures, uint64_t valid_ms);
/* Stops the timer and all queries; upstream_names_finish frees the names of a group. */
void upstream_names_stop(struct upstream_pool *pool);
void upstream_names_finish(struct upstream_group *group);

/*
 * upstream_addresses.c: creates peers for the addresses of the answer that are new, and retires those whose address is
 * gone.
 */
void upstream_addresses_apply(struct upstream_name *name, const struct resolver_answer *answer);
/* Stores the addresses of a server's name for all workers. */
void upstream_addresses_store(const struct upstream_group *group, const struct upstream_server *server,
                              const struct resolver_answer *answer);
/* Uses the addresses that earlier workers stored, if any, so that requests need not wait for the first answer. */
void upstream_addresses_load(struct upstream_name *name);

/* upstream_resolvers.c: `resolver` of the group's block, or the default. */
const struct resolver_settings *upstream_resolver_settings(const struct upstream_group *group);
/* The resolver for the names of the group. NULL when out of memory. */
struct resolver *upstream_group_resolver(const struct upstream_group *group);
/* Call it after the last group is finished. */
void upstream_resolvers_finish(struct upstream_pool *pool);

#endif
