/*
 * HTTP/2 connections to upstream servers, each shared by many exchanges. struct shared_connection is the user of one
 * (upstream_pool.h); each attempt of an exchange is a stream, which takes the place of a connection of its own.
 */
#ifndef MODULES_GATEWAY_H2_SHARED_CONNECTION_H
#define MODULES_GATEWAY_H2_SHARED_CONNECTION_H

#include "http/h2/client_session.h"
#include "modules/gateway/gateway.h"

struct shared_connection;

/* Events of a stream, called from the loop. */
struct gateway_stream_events {
    /* The stream may begin. */
    void (*opened)(struct gateway_stream *stream);
    /* There is something to read, or the state of sending has changed. */
    void (*updated)(struct gateway_stream *stream);
    /* The connection is lost, or the deadline has passed; `fault`: the server violated the protocol (else NULL). */
    void (*lost)(struct gateway_stream *stream, int error, const char *fault);
    /*
     * The server permits no further stream on this connection: the request was not sent, and begins on another
     * connection.
     */
    void (*refused)(struct gateway_stream *stream);
};

/* One attempt. In the exchange's arena; zeroed at first. */
struct gateway_stream {
    struct h2_client_stream client;
    struct gateway_request *p;
    const struct gateway_stream_events *events;
    struct shared_connection *shared;   /* NULL: detached */
    struct upstream_peer *peer;         /* counted by upstream_use_begin while the stream is attached */
    struct list attached;               /* in shared->streams or shared->waiting */
    uint64_t deadline_ms;               /* UINT64_MAX: none */
    bool ready;                         /* it may begin */
    bool reused;                        /* the connection was idle before */
    bool begun;                         /* the request was handed to the session */
    bool has_room;                      /* the gateway has room for more of the response */
};

/*
 * Attaches a stream to a connection to p->upstream.peer: one that has room, or a new one. `fresh`: only one that was
 * opened after the exchange had begun. 0: `opened` or `lost` follow, unless stream->ready; or -errno
 * as upstream_connect.
 */
MUST_CHECK int gateway_stream_attach(struct gateway_stream *stream, bool fresh);
/* Passes the request to the session. The caller has set `client`. */
void gateway_stream_begin(struct gateway_stream *stream);
/* Ends the stream in any state; an incomplete one is cancelled. */
void gateway_stream_detach(struct gateway_stream *stream);
/* Sets the stream's deadline; 0: none. */
void gateway_stream_set_timeout(struct gateway_stream *stream, uint64_t timeout_ms);
/* Continues from the loop: the stream has something to send or to read. */
void gateway_stream_wake(struct gateway_stream *stream);

#endif
