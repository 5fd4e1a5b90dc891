/*
 * A connection with its streams, shared by shared_connection.c (its events) and stream_attach.c (its streams). Private
 * to these files.
 */
#ifndef MODULES_GATEWAY_H2_SHARED_CONNECTION_PRIVATE_H
#define MODULES_GATEWAY_H2_SHARED_CONNECTION_PRIVATE_H

#include "modules/gateway/h2/shared_connection.h"

struct shared_connection {
    struct upstream_connection *connection; /* owned; NULL: lost */
    struct h2_client_session session;
    const struct clock *clock;      /* of the worker */
    struct list streams;            /* attached, begun */
    struct list waiting;            /* attached, not begun: connecting, or above the server's limit */
    uint64_t created_ms;
    unsigned count;                 /* of attached streams */
    bool open;                      /* connected, and HTTP/2 was negotiated */
    bool running;                   /* inside an event: this struct is not freed */
};

/* The events of a connection; its user is a struct shared_connection. */
extern const struct upstream_events shared_connection_events;

/* The session has frames to send. Inside an event nothing is necessary. */
void shared_connection_wake(void *owner);
/* Frees a connection without streams, whose upstream connection is closed. */
void shared_connection_free(struct shared_connection *shared);
/* True if one more stream may begin. Before the server's SETTINGS, which have its limit of streams, one may. */
bool shared_connection_may_begin(const struct shared_connection *shared);

#endif
