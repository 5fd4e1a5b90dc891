/*
 * The path of a byte through the server; the story is connection.c.
 */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "server/request_state.h"

/* One connection: what is asked of it by variables and the worker, too. Nothing of an exchange is kept in here. */
struct connection {
    struct list link;               /* in worker->connection_list, or worker->free_connections */
    struct list awake;              /* in worker->awake: to be pumped at the turn's end */
    struct worker *worker;
    const struct endpoint *endpoint;
    const struct location *location; /* of the newest request, whose timeouts hold; at first the default server's */
    struct session *session;        /* owned; NULL until the handshake is over */
    struct wire wire;
    struct op timer;                /* the one timer of the connection */
    uint64_t waiting_since_ms;      /* when that began, or last moved */
    uint64_t progress;              /* wire_bytes_sent or wire_bytes_received at that time */
    uint64_t number;                /* $connection */
    unsigned requests;              /* $connection_requests */
    unsigned requests_seen;         /* when the clock was last looked at */
    uint32_t opened_s;              /* for keepalive_time */
    uint32_t lingering_since_ms;    /* for lingering_time: the lower half of the clock */
    uint8_t phase;                  /* what is waited for: connection_timeout.c */
    bool closed;                    /* the wire is closed; the timer is still to be cancelled */
    union proxy_address peer;
    struct {
        uint64_t mark;              /* wire_bytes_sent or wire_bytes_received when the window began */
        uint32_t ms;                /* spent in `phase` since */
        uint32_t checked_ms;         /* the lower half of the clock at the last look */
        uint8_t phase;
        bool exact;                 /* what the peer has confirmed counts */
        bool slow;                  /* it was, in a whole window */
    } min_rate;                         /* for client_min_rate: connection_timeout.c */
    struct proxy_header *proxy_header;  /* owned: what a proxy before us said of the connection; NULL: nothing */
};

/* The listener handed us a socket (`owner` is the worker). */
void connection_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer);
/* Goes on with every request on worker->resumed and every connection on worker->awake; called at each turn's end. */
void connection_resume_all(struct worker *worker);
/* The worker stops: idle connections close now, others after their answer. */
void connection_drain_all(struct worker *worker);
/* At once, everything. */
void connection_abort_all(struct worker *worker);
/* No connection may be open: frees the memory kept for new ones. */
void connection_free_all(struct worker *worker);

#endif
