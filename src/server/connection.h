/*
 * A client connection; the path of a request through it is described in connection.c.
 */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "server/request_state.h"

/* One connection, with the members that variables and the worker read. Stores no exchange state. */
struct connection {
    struct list link;                   /* in worker->connection_list, or worker->free_connections */
    struct list woken;                  /* in worker->woken: pumped at the end of the loop iteration */
    struct worker *worker;
    const struct endpoint *endpoint;
    const struct location *location;    /* of the newest request, for the timeouts; initially of the default server */
    struct session *session;            /* owned; NULL until the handshake is done, and after TLS has failed */
    struct wire wire;
    struct op timer;                    /* the connection's only timer */
    uint64_t waiting_since_ms;          /* start of the current wait, or its last progress */
    uint64_t progress;                  /* wire_bytes_sent or wire_bytes_received at that time */
    uint64_t number;                    /* $connection */
    unsigned requests;                  /* $connection_requests */
    unsigned requests_seen;             /* value at the last timeout update */
    uint32_t opened_s;                  /* for keepalive_time */
    uint32_t lingering_since_ms;        /* for lingering_time: low 32 bits of the monotonic clock */
    uint8_t phase;                      /* enum phase of connection_timeout.c */
    bool http2_preface;                 /* the bytes being received are the beginning of HTTP/2's preface */
    bool closed;                        /* the wire is closed; the timer's cancellation is pending */
    bool debug;                         /* has a debug log: connection_debug.h */
    union proxy_address peer;
    struct {
        uint64_t mark;                  /* wire_bytes_sent or wire_bytes_received at the start of the window */
        uint32_t ms;                    /* spent in `phase` since then */
        uint32_t checked_ms;            /* low 32 bits of the clock at the last check */
        uint8_t phase;
        bool exact;                     /* counts bytes acknowledged by the peer */
        bool slow;                      /* too slow during a whole window */
    } min_rate;                         /* for client_min_rate: connection_timeout.c */
    struct proxy_header *proxy_header;  /* owned: the received PROXY protocol header; NULL: none */
};

/* The log of the connection: the worker's, or its debug log. */
static inline struct log *connection_log(const struct connection *connection)
{
    struct worker *worker = connection->worker;

    return connection->debug && worker->log->level < LOG_DEBUG ? &worker->debug_log : worker->log;
}

/* Creates a connection for a socket accepted by a listener (`owner` is the worker). Owns fd. */
void connection_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer);
/*
 * Continues every request on worker->resumed and every connection on worker->woken; called at the end of each loop
 * iteration.
 */
void connection_resume_all(struct worker *worker);
/* The same for the loop of a worker, as its large_done: what a large op wakes uses the same part of the iteration. */
void connection_resume_after(struct loop *loop);
/* Drains all connections: idle ones close now, others after their response. */
void connection_drain_all(struct worker *worker);
/* Aborts all connections at once. */
void connection_abort_all(struct worker *worker);
/* Frees the memory kept for new connections. No connection may be open. */
void connection_free_all(struct worker *worker);

#endif
