/*
 * Attaches streams to connections: to one that has room, or to a new one.
 */
#include "modules/gateway/h2/shared_connection_private.h"

#include <errno.h>
#include <stdlib.h>

static bool has_room(const struct shared_connection *shared)
{
    if (shared->open && shared->session.settings_received)
        return h2_client_session_capacity(&shared->session) > 0;
    return shared->count < LIMIT_H2_UPSTREAM_STREAMS;
}

static struct shared_connection *find_shared(const struct gateway_request *p, bool fresh)
{
    struct upstream_peer *peer = p->upstream.peer;
    const struct upstream_transport *transport = &p->upstream.transport;
    struct upstream_connection *connection = NULL;

    while ((connection = upstream_shared_next(peer, transport, &shared_connection_events, connection)) != NULL) {
        struct shared_connection *shared = connection->user;

        if (upstream_shared_is_usable(connection) && has_room(shared) && !shared->session.going_away &&
            !shared->session.error && (!fresh || shared->created_ms >= p->upstream.begun_ms))
            return shared;
    }
    return NULL;
}

static int create_shared(const struct gateway_request *p, struct shared_connection **out_shared)
{
    struct shared_connection *shared = calloc(1, sizeof(*shared));
    int error;

    if (!shared)
        return -ENOMEM;
    shared->clock = exchange_clock(p->x);
    shared->created_ms = shared->clock->monotonic_ms;
    list_init(&shared->streams);
    list_init(&shared->waiting);
    h2_client_session_init(&shared->session, shared_connection_wake, shared, shared->clock);
    error = upstream_connect_shared(p->upstream.peer, &p->upstream.transport, &shared_connection_events, shared,
                                    p->conf->connect_timeout_ms, &shared->connection);
    if (error < 0) {
        shared_connection_free(shared);
        return error;
    }
    *out_shared = shared;
    return 0;
}

int gateway_stream_attach(struct gateway_stream *stream, bool fresh)
{
    struct gateway_request *p = stream->p;
    struct shared_connection *shared;
    int error = 0;

    if (!upstream_use_begin(p->upstream.peer))
        return -EBUSY;
    shared = find_shared(p, fresh);
    if (!shared)
        error = create_shared(p, &shared);
    if (error < 0) {
        upstream_use_end(p->upstream.peer);
        return error;
    }
    stream->reused = shared->connection->state == UPSTREAM_IDLE;
    upstream_shared_use(shared->connection);
    stream->shared = shared;
    stream->peer = p->upstream.peer;
    stream->deadline_ms = UINT64_MAX;
    shared->count++;
    stream->ready = shared_connection_may_begin(shared);
    list_init(&stream->attached);
    list_push(stream->ready ? &shared->streams : &shared->waiting, &stream->attached);
    return 0;
}

void gateway_stream_begin(struct gateway_stream *stream)
{
    stream->begun = true;
    h2_client_stream_open(&stream->shared->session, &stream->client);
    gateway_stream_wake(stream);
}

void gateway_stream_wake(struct gateway_stream *stream)
{
    shared_connection_wake(stream->shared);
}

/* Removes the stream from its connection. */
static void detach_stream(struct gateway_stream *stream)
{
    struct shared_connection *shared = stream->shared;

    h2_client_stream_end(&stream->client);
    list_remove(&stream->attached);
    shared->count--;
    stream->shared = NULL;
    upstream_use_end(stream->peer);
}

void gateway_stream_detach(struct gateway_stream *stream)
{
    struct shared_connection *shared = stream->shared;

    if (!shared)
        return;
    detach_stream(stream);
    if (shared->running || !shared->connection)
        return;
    if (shared->count > 0 || shared->open) {
        shared_connection_wake(shared);
        return;
    }
    upstream_discard(shared->connection); /* nothing waits for it to connect */
    shared_connection_free(shared);
}

void gateway_stream_set_timeout(struct gateway_stream *stream, uint64_t timeout_ms)
{
    struct shared_connection *shared = stream->shared;

    stream->deadline_ms = timeout_ms ? shared->clock->monotonic_ms + timeout_ms : UINT64_MAX;
    if (shared->connection && shared->open && stream->deadline_ms < shared->connection->deadline_ms)
        upstream_set_timeout(shared->connection, timeout_ms);
}
