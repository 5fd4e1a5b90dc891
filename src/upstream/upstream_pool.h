/*
 * The upstream state of one worker: servers, and connections to them, in use and idle. HTTP and stream share it: a
 * connection is a wire to a peer, and its user implements the protocol.
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
struct upstream_added;

/* One address of a server, as seen by this worker. */
struct upstream_peer {
    struct list link;               /* in group->peers */
    struct upstream_group *group;
    const struct upstream_server *server;
    struct upstream_added *added;   /* owned: `server` was added at run time; NULL: it is part of the configuration */
    struct listen_address address;
    char name[128];                 /* "127.0.0.1:9001", for logs and $upstream_addr */
    unsigned number;                /* unique in its group */
    struct list idle;               /* idle connections, most recently used first */
    struct list shared;             /* connections that exchanges share, idle ones included */
    unsigned active;                /* of this worker: connections in use or being opened */
    int64_t current_weight;         /* of smooth round robin */
    bool backup;
    uint64_t lost_weight;           /* subtracted after failures; less with each selection */
    int zone_index;                 /* negative: it has no entry in the zone */
    struct upstream_shared *state;  /* in the zone, or `own` */
    struct upstream_shared own;
    char route[17];                 /* value of sticky cookies */
    /* Of its newest TLS connection. */
    struct tls_resumption resumption;
    bool retired;                   /* not selected any more; freed with its last connection */
};

/* Waits for a name being resolved. Embedded in its owner. */
struct upstream_waiter {
    struct list link;
    void (*resolved)(struct upstream_waiter *waiter); /* called once, with any result: call upstream_choose again */
};

/* How to open a connection. */
struct upstream_transport {
    struct str proxy_header;                /* sent before TLS, constant until `opened`; prevents reuse; empty: none */
    const struct sockaddr *local_address;   /* lasts as long as the pool; NULL: chosen by the system */
    struct tls_context *context;            /* from upstream_pool_tls; NULL: plain */
    struct str name;                        /* name that the certificate must match */
};

/* Events of a connection for its user, always called from the loop. */
struct upstream_events {
    /* Connected: bytes may be sent. */
    void (*opened)(void *user);
    /* As in the wire: returns bytes consumed; length 0 is the end of the stream. */
    size_t (*received)(void *user, struct str bytes);
    /* As in the wire. NULL if wire_receive_pipe is not used. */
    void (*piped)(void *user, size_t count);
    /* The wire is writable again, or upstream_wake was called. */
    void (*writable)(void *user);
    /* The connection failed: -ECONNREFUSED, -ETIMEDOUT, -ECONNRESET ... It must not be used any more. */
    void (*failed)(void *user, int error);
    /* The timeout of the open connection has passed, and is off now. NULL: the connection fails with -ETIMEDOUT. */
    void (*timed_out)(void *user);
};

enum upstream_state { UPSTREAM_CONNECTING, UPSTREAM_OPEN, UPSTREAM_IDLE, UPSTREAM_CLOSING };

struct upstream_connection {
    struct list link;                       /* in pool->connections, or peer->idle */
    struct list woken;                      /* in pool->woken */
    struct list sharing;                    /* in peer->shared */
    struct upstream_pool *pool;
    struct upstream_peer *peer;
    struct wire wire;                       /* used directly by the user while open: receive, send, flush */
    struct op connect;
    struct op timer;
    struct str proxy_header;                /* of struct upstream_transport */
    struct tls_context *tls;                /* NULL: plain */
    const struct sockaddr *local_address;   /* of struct upstream_transport */
    uint64_t deadline_ms;                   /* UINT64_MAX: none */
    const struct upstream_events *events;
    void *user;
    uint64_t requests;                      /* exchanges begun on it */
    int fd;                                 /* while connecting */
    enum upstream_state state;
    bool opened;                            /* the wire is open */
    bool shared;                            /* opened by upstream_connect_shared */
    char name[];                            /* for the certificate; empty: plain */
};

/* The selection among the peers of a group, for all attempts of one request. Zeroed at first. */
struct upstream_choice {
    unsigned tried[LIMIT_UPSTREAM_TRIES];   /* numbers of the peers tried */
    unsigned tries;
    struct str route;                       /* of sticky: the server of the client's session; empty: none */
    struct str key;                         /* of hash and ip_hash */
};

/*
 * Creates the pool; all arguments outlive it. `zone` is the state shared with other workers; NULL: none. NULL when out
 * of memory.
 */
struct upstream_pool *upstream_pool_create(struct loop *loop, struct log *log, const struct upstreams *upstreams,
                                           struct upstream_zone *zone, unsigned worker);
/* Sets the counters of its wires; they outlive the pool. */
void upstream_pool_set_counters(struct upstream_pool *pool, struct wire_counters *counters);
/* The state shared by workers; NULL: none. */
struct upstream_zone *upstream_pool_zone(const struct upstream_pool *pool);
/* Stops health checks: a newer generation makes them. */
void upstream_pool_retire(struct upstream_pool *pool);
/* Closes all idle connections. Returns their number. */
unsigned upstream_pool_close_idle(struct upstream_pool *pool);
/* True while output of released connections is still being sent. */
bool upstream_pool_draining(const struct upstream_pool *pool);
/* Begins shutdown: idle and released connections close, name resolution stops. Users must release theirs. */
void upstream_pool_stop(struct upstream_pool *pool);
/* No operation may be in flight. Accepts NULL. */
void upstream_pool_destroy(struct upstream_pool *pool);

/* The group of a configured upstream. Never NULL. */
struct upstream_group *upstream_pool_group(struct upstream_pool *pool, const struct upstream *upstream);
/*
 * The group for an authority from a variable: a block of that name, else created on first use, at most
 * LIMIT_UPSTREAM_TARGETS. A created group without a connection in use and without a waiter may be freed by a later call
 * for another authority. NULL: -EINVAL, -ENOMEM or -ENOBUFS.
 */
struct upstream_group *upstream_pool_target_of(struct upstream_pool *pool, enum upstream_user user,
                                               struct str authority, uint16_t default_port, int *out_error);
/* The same for http. */
static inline struct upstream_group *upstream_pool_target(struct upstream_pool *pool, struct str authority,
                                                          uint16_t default_port, int *out_error)
{
    return upstream_pool_target_of(pool, UPSTREAM_HTTP, authority, default_port, out_error);
}
/* The TLS context for these settings: of the configuration, else created on first use. NULL: failed, and logged. */
struct tls_context *upstream_pool_tls(struct upstream_pool *pool, const struct tls_client_settings *settings);
/* The configuration of the group. */
const struct upstream *upstream_group_upstream(const struct upstream_group *group);

/*
 * Selects the next peer by the group's method and marks it as tried. NULL: -EAGAIN: names are being resolved
 * (upstream_wait); -ENOENT: none of its names resolves; -EBUSY: all peers were tried, are down, or full.
 */
struct upstream_peer *upstream_choose(struct upstream_group *group, struct upstream_choice *choice, int *out_error);
/* True if a peer that was not tried is available; upstream_choose skips it if another worker retries it first. */
bool upstream_has_another(const struct upstream_group *group, const struct upstream_choice *choice);
/* Waits until names of the group are resolved. upstream_wait_end cancels the wait. */
void upstream_wait(struct upstream_group *group, struct upstream_waiter *waiter);
void upstream_wait_end(struct upstream_waiter *waiter);
/* True if this process, not the server, is the cause of a failed attempt: max_conns (-EBUSY), descriptors or memory. */
bool upstream_is_local_error(int error);
/* Records a failure or success of the peer for passive health checks. */
void upstream_peer_failed(struct upstream_peer *peer);
void upstream_peer_succeeded(struct upstream_peer *peer);
/* Records response times for least_time, and the total time for the status page; UINT64_MAX: unknown. */
void upstream_peer_count_time(struct upstream_peer *peer, uint64_t header_us, uint64_t total_us);

/*
 * Reuses an idle connection to the peer (state UPSTREAM_OPEN, usable at once, `opened` is not called), or opens a new
 * one (`opened` or `failed` follows). `new_connection`: does not reuse. 0, or -errno without events; -EBUSY: max_conns.
 */
MUST_CHECK int upstream_connect(struct upstream_peer *peer, const struct upstream_transport *transport,
                                const struct upstream_events *events, void *user, uint64_t timeout_ms,
                                bool new_connection, struct upstream_connection **out_connection);
/*
 * Shared connections (HTTP/2): a connection has one user, which serves many exchanges. Each exchange counts as a use of
 * the peer, the connection does not. An idle one keeps its user and its events; if the
 * pool closes it, `failed` is called.
 */
/* Counts an exchange. False: max_conns. The peer is valid until upstream_use_end. */
MUST_CHECK bool upstream_use_begin(struct upstream_peer *peer);
void upstream_use_end(struct upstream_peer *peer);
/*
 * Opens a new connection; `opened` or `failed` follows. It is closed by upstream_discard or upstream_close. 0 or
 * -errno.
 */
MUST_CHECK int upstream_connect_shared(struct upstream_peer *peer, const struct upstream_transport *transport,
                                       const struct upstream_events *events, void *user, uint64_t timeout_ms,
                                       struct upstream_connection **out_connection);
/*
 * The shared connection after `previous` (NULL: the first) that has these events, local address, TLS settings and
 * name, and no PROXY protocol header. NULL: none.
 */
struct upstream_connection *upstream_shared_next(const struct upstream_peer *peer,
                                                 const struct upstream_transport *transport,
                                                 const struct upstream_events *events,
                                                 struct upstream_connection *previous);
/* True if keepalive_requests permits another exchange on the connection, and its peer is not retired. */
bool upstream_shared_is_usable(const struct upstream_connection *connection);
/* Counts an exchange that begins on the connection, and takes it from the idle ones. */
void upstream_shared_use(struct upstream_connection *connection);
/* Makes it idle after its last exchange, like upstream_release. False: not permitted; the caller closes it. */
MUST_CHECK bool upstream_shared_keep_idle(struct upstream_connection *connection);

/*
 * Sets the timeout; each call restarts it, 0 turns it off. When it passes, `timed_out` is called, or the connection
 * fails with -ETIMEDOUT.
 */
void upstream_set_timeout(struct upstream_connection *connection, uint64_t timeout_ms);
/* Calls `writable` later, from the loop. */
void upstream_wake(struct upstream_connection *connection);
/*
 * Ends the use of the connection after a complete exchange; it is kept for reuse where that is possible. No event
 * follows.
 */
void upstream_release(struct upstream_connection *connection);
/* Ends the use of the connection and closes it at once. No event follows. */
void upstream_discard(struct upstream_connection *connection);
/*
 * Ends the use of the connection. It sends the queued output, then waits for the server's close, for at most
 * LIMIT_UPSTREAM_CLOSE_MS: an immediate close could cause a reset before the server has read the output.
 * upstream_pool_stop does not wait for it. No event follows.
 */
void upstream_close(struct upstream_connection *connection);
/* True if the connection is reused: the server may have closed it at the same time. */
static inline bool upstream_reused(const struct upstream_connection *connection)
{
    return connection->requests > 1;
}

#endif
