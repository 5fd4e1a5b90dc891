/*
 * What one worker knows of its upstreams: which servers can be asked, and the
 * connections to them, in use and idle. HTTP and stream share it: a connection is a
 * wire with a peer, and what is said over it is the user's.
 */
#ifndef UPSTREAM_UPSTREAM_POOL_H
#define UPSTREAM_UPSTREAM_POOL_H

#include "base/limits.h"
#include "base/list.h"
#include "tls/tls_client.h"
#include "upstream/upstream.h"
#include "upstream/upstream_zone.h"
#include "wire/wire.h"

struct upstream_pool;
struct upstream_group;

/* One address of a server, as this worker sees it. */
struct upstream_peer {
    struct list link;               /* in group->peers */
    struct upstream_group *group;
    const struct upstream_server *server;
    struct listen_address address;
    char name[128];                 /* "127.0.0.1:9001", for logs and $upstream_addr */
    unsigned number;                /* in its group */
    struct list idle;               /* connections kept for the next request, the one used last in front */
    unsigned active;                /* of this worker: connections in use, and being made */
    int64_t share;                  /* of the smooth round robin: grows by its weight, shrinks by all weights when chosen */
    uint64_t weight;                /* the server's, or its SRV record's */
    bool backup;
    uint64_t effective_weight;      /* lower after failures */
    int place;                      /* in the zone; negative: none */
    struct upstream_shared *state;   /* there, or `own` */
    struct upstream_shared own;
    char route[17];                 /* for sticky cookies */
    struct tls_resumption resumption; /* of the newest TLS connection to it */
    bool gone;                      /* its name has other addresses now: freed with its last connection */
};

/* Waits for a name that is being resolved. Embedded in its owner. */
struct upstream_waiter {
    struct list link;
    void (*resolved)(struct upstream_waiter *waiter); /* once, whatever came out: choose again */
};

/* How a connection is to be begun. */
struct upstream_tls {
    struct str proxy_header;            /* said before all else, TLS too, and frozen until it is open: such a connection is nobody else's. Empty: none */
    const struct sockaddr *from;    /* the address that it comes from, with `fresh` alone; NULL: as the system likes */
    struct tls_context *context;    /* of upstream_pool_tls; NULL: plain */
    struct str name;                /* whom the certificate must name */
};

/* What the user of a connection is told. Each from the loop, never inside a call of the user. */
struct upstream_events {
    /* It is connected: bytes may be sent. */
    void (*opened)(void *user);
    /* As the wire's: bytes taken; length 0 is the end of the stream. */
    size_t (*received)(void *user, struct str bytes);
    /* As the wire's. NULL where wire_receive_pipe is not used. */
    void (*piped)(void *user, size_t count);
    /* There is room again, or upstream_wake was called. */
    void (*room)(void *user);
    /* The connection is gone: -ECONNREFUSED, -ETIMEDOUT, -ECONNRESET ... Nothing may be called on it any more. */
    void (*failed)(void *user, int error);
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_OPEN, UPSTREAM_IDLE, UPSTREAM_CLOSING };

struct upstream_connection {
    struct list link;               /* in pool->connections, or peer->idle */
    struct list awake;              /* in pool->awake */
    struct upstream_pool *pool;
    struct upstream_peer *peer;
    struct wire wire;               /* the user's own while the connection is open: receive, send, flush */
    struct op connect;
    struct op timer;
    struct str proxy_header;            /* of struct upstream_tls */
    struct tls_context *tls;        /* NULL: plain */
    uint64_t deadline_ms;           /* UINT64_MAX: none */
    const struct upstream_events *events;
    void *user;
    uint64_t requests;              /* begun on it */
    int fd;                         /* while connecting */
    enum upstream_state state;
    bool opened;                    /* the wire was opened and is not closed yet */
    char name[];                    /* of the certificate; empty where plain */
};

/* A choice among the peers of a group. Zeroed at first; kept over the attempts of one request. */
struct upstream_choice {
    unsigned tried[LIMIT_UPSTREAM_TRIES]; /* numbers of the peers that were asked */
    unsigned tries;
    struct str route;               /* of sticky: where the client was sent before; empty: nowhere */
    struct str key;                 /* of hash and ip_hash */
};

/* Both outlive the pool. `zone` is what the workers know together, NULL: this one is alone. NULL when out of memory. */
struct upstream_pool *upstream_pool_create(struct loop *loop, struct log *log, const struct upstreams *upstreams,
                                           struct upstream_zone *zone, unsigned worker);
/* Counts its wires there from now on: memory that outlives the pool. */
void upstream_pool_count(struct upstream_pool *pool, struct wire_counters *counters);
/* What workers know together; NULL: this one is alone. */
struct upstream_zone *upstream_pool_zone(const struct upstream_pool *pool);
/* Others look after the servers' health from now on. */
void upstream_pool_retire(struct upstream_pool *pool);
/* Closes all idle connections. How many there were. */
unsigned upstream_pool_close_idle(struct upstream_pool *pool);
/* True while bytes that were given to a connection before its release are still leaving. */
bool upstream_pool_draining(const struct upstream_pool *pool);
/*
 * Begins to end: idle connections and those that were released close, nothing is resolved any more. Connections in use are their users' to
 * release.
 */
void upstream_pool_stop(struct upstream_pool *pool);
/* Nothing may be in flight. Accepts NULL. */
void upstream_pool_destroy(struct upstream_pool *pool);

/* The group of a configured upstream. Never NULL. */
struct upstream_group *upstream_pool_group(struct upstream_pool *pool, const struct upstream *upstream);
/* The group for an authority that came out of a variable: a block of that name, else made when first asked for, at most LIMIT_UPSTREAM_TARGETS. NULL: -EINVAL, -ENOMEM or -ENOBUFS. */
struct upstream_group *upstream_pool_target_of(struct upstream_pool *pool, enum upstream_user user, struct str authority, uint16_t default_port, int *out_error);
/* The same for http. */
static inline struct upstream_group *upstream_pool_target(struct upstream_pool *pool, struct str authority, uint16_t default_port, int *out_error)
{
    return upstream_pool_target_of(pool, UPSTREAM_HTTP, authority, default_port, out_error);
}
/* The context for these settings: the configuration's, else made when first asked for. NULL: it cannot be made, and the log says why. */
struct tls_context *upstream_pool_tls(struct upstream_pool *pool, const struct tls_client_settings *settings);
/* What it was made of. */
const struct upstream *upstream_group_upstream(const struct upstream_group *group);

/*
 * The peer to ask next, by the group's rule; marks it as tried. NULL: -EAGAIN, names are being resolved (upstream_wait), -ENOENT: no name of it
 * resolves, or -EBUSY: all were tried, are down, or full.
 */
struct upstream_peer *upstream_choose(struct upstream_group *group, struct upstream_choice *choice, int *out_error);
/* True where upstream_choose would find one. */
bool upstream_has_another(const struct upstream_group *group, const struct upstream_choice *choice);
/* Waits until names of the group are resolved. upstream_wait_end lets go early. */
void upstream_wait(struct upstream_group *group, struct upstream_waiter *waiter);
void upstream_wait_end(struct upstream_waiter *waiter);
/* What came of asking a peer: decides whether it is asked again soon. */
void upstream_peer_failed(struct upstream_peer *peer);
void upstream_peer_succeeded(struct upstream_peer *peer);
/* How long its answer took, for least_time; UINT64_MAX: not known. */
void upstream_peer_count_time(struct upstream_peer *peer, uint64_t header_us, uint64_t whole_us);

/*
 * A connection to the peer: an idle one (state UPSTREAM_OPEN, and to be used at once: `opened` does not come), or a new one, and `opened` follows.
 * `fresh`: never an idle one. 0 or -errno, -EBUSY where it has max_conns by now; then nothing follows.
 */
MUST_CHECK int upstream_connect(struct upstream_peer *peer, const struct upstream_tls *tls, const struct upstream_events *events, void *user,
                                uint64_t timeout_ms, bool fresh,
                                struct upstream_connection **out_connection);
/* From now on, so long without another call, and it fails with -ETIMEDOUT. 0: as long as it takes. */
void upstream_set_timeout(struct upstream_connection *connection, uint64_t timeout_ms);
/* `room` follows, from the loop. */
void upstream_wake(struct upstream_connection *connection);
/* The user lets go. `keep`: the exchange on it is whole, and another may follow; else it is closed at once. No event follows. */
void upstream_release(struct upstream_connection *connection, bool keep);
/*
 * The user lets go. What it has given to the wire leaves first, then the server's end is awaited, both for at most LIMIT_UPSTREAM_PARTING_MS: a
 * server that still sends would be reset otherwise, and might not read the rest. upstream_pool_stop does not wait for it. No event follows.
 */
void upstream_release_orderly(struct upstream_connection *connection);
/* True where it has carried requests before this one: its end may have crossed with ours. */
static inline bool upstream_reused(const struct upstream_connection *connection)
{
    return connection->requests > 1;
}

#endif
