/*
 * The path of a byte through the server; the story is journey.c.
 */
#ifndef SERVER_JOURNEY_H
#define SERVER_JOURNEY_H

#include "server/visit.h"

/* One connection. Opaque but for what variables and the worker need. */
struct journey {
    struct list link;               /* in worker->journeys */
    struct worker *worker;
    const struct endpoint *endpoint;
    const struct protocol *protocol;
    struct session *session;
    struct wire wire;
    struct op timer;
    uint64_t number;                /* $connection */
    unsigned requests;              /* $connection_requests */
    struct str peer;                /* the address in text is made when asked for */
    struct sockaddr_storage address; /* of the peer: to be kept small, see journey.c */
};

/* The listener handed us a socket. */
void journey_accept(void *worker, struct listener *listener, int fd, const struct sockaddr_storage *peer);
/* Serves every visit on worker->resumed; called at each turn's end. */
void journey_resume_all(struct worker *worker);
/* The worker stops: idle connections close now, others after their answer. */
void journey_drain_all(struct worker *worker);
/* At once, everything. */
void journey_abort_all(struct worker *worker);

#endif
