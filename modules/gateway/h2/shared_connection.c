/*
 * Each event of the connection runs the same steps: the session consumes received bytes, updated streams are read, and
 * the frames that the session produces are sent. A stream may end, or begin, inside any of these steps.
 */
#include "modules/gateway/h2/shared_connection_private.h"

#include <errno.h>
#include <stdlib.h>

static void shared_run(struct shared_connection *shared);
static void shared_timed_out(void *user);

void shared_connection_wake(void *owner)
{
    struct shared_connection *shared = owner;

    if (shared->connection && shared->open && !shared->running)
        upstream_wake(shared->connection);
}

void shared_connection_free(struct shared_connection *shared)
{
    h2_client_session_finish(&shared->session);
    free(shared);
}

/* Ends all streams. */
static void fail_streams(struct shared_connection *shared, struct list *streams, int error)
{
    struct list *first;

    while ((first = streams->next) != streams) {
        struct gateway_stream *stream = container_of(first, struct gateway_stream, attached);

        stream->events->lost(stream, error, shared->session.fault);
    }
}

/* The connection is lost: requests that were not sent are repeated. */
static void shared_fail(struct shared_connection *shared, int error)
{
    shared->connection = NULL;
    shared->open = false;
    fail_streams(shared, &shared->streams, error);
    fail_streams(shared, &shared->waiting, error);
}

static void shared_failed(void *user, int error)
{
    struct shared_connection *shared = user;
    bool running = shared->running;

    shared->running = true;
    shared_fail(shared, error);
    shared->running = running;
    if (!running)
        shared_connection_free(shared);
}

/* A connection error of the session, or missing negotiation: queued output (GOAWAY) is still sent. */
static void shared_abort(struct shared_connection *shared, int error)
{
    struct upstream_connection *connection = shared->connection;

    shared->connection = NULL;
    if (error == -EPROTO)
        upstream_close(connection);
    else
        upstream_discard(connection);
    shared_fail(shared, error);
}

/* Sends the frames of the session while the wire has room. 0, or -errno: the connection is lost. */
static int shared_flush(struct shared_connection *shared)
{
    struct wire *wire = &shared->connection->wire;
    struct str parts[2];
    size_t room;
    int result;

    while ((room = wire_room(wire)) > 0) {
        result = h2_client_session_produce(&shared->session, room, parts);
        if (result == -EAGAIN)
            break;
        for (unsigned i = 0; i < 2 && result >= 0; i++) {
            struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = parts[i]};

            if (!str_empty(parts[i]))
                result = wire_send(wire, &chunk);
        }
        if (result < 0)
            return result;
    }
    wire_flush(wire);
    return 0;
}

bool shared_connection_may_begin(const struct shared_connection *shared)
{
    return shared->open && (shared->session.settings_received || list_empty(&shared->streams)) &&
           h2_client_session_capacity(&shared->session) > 0;
}

/* Begins waiting streams, as many as the server permits. */
static void begin_waiting(struct shared_connection *shared)
{
    while (!list_empty(&shared->waiting) && shared_connection_may_begin(shared)) {
        struct gateway_stream *stream = container_of(shared->waiting.next, struct gateway_stream, attached);

        list_remove(&stream->attached);
        list_push(&shared->streams, &stream->attached);
        stream->ready = true;
        stream->events->opened(stream);
    }
}

/* Waiting streams begin on another connection if the server permits no further streams on this one. */
static void move_waiting(struct shared_connection *shared)
{
    struct list *first;

    if (!shared->session.settings_received || list_empty(&shared->waiting) ||
        h2_client_session_capacity(&shared->session) > 0)
        return;
    while ((first = shared->waiting.next) != &shared->waiting) {
        struct gateway_stream *stream = container_of(first, struct gateway_stream, attached);

        stream->events->refused(stream);
    }
}

/* Calls `updated` of each updated stream. */
static void read_updated_streams(struct shared_connection *shared)
{
    struct h2_client_stream *client;

    while (shared->connection && (client = h2_client_session_next_updated(&shared->session)) != NULL) {
        struct gateway_stream *stream = container_of(client, struct gateway_stream, client);

        stream->events->updated(stream);
    }
}

/* Without streams, the connection becomes idle or is closed. */
static void shared_keep_idle_or_close(struct shared_connection *shared)
{
    struct upstream_connection *connection = shared->connection;

    if (shared->count > 0 || connection->state != UPSTREAM_OPEN)
        return;
    if (!shared->session.error && !shared->session.going_away && upstream_shared_keep_idle(connection))
        return;
    h2_client_session_goaway(&shared->session, H2_NO_ERROR);
    (void)shared_flush(shared);
    shared->connection = NULL;
    upstream_close(connection);
}

/* Runs all steps that may follow an event. */
static void shared_run(struct shared_connection *shared)
{
    int error = 0;

    shared->running = true;
    do {
        read_updated_streams(shared);
        begin_waiting(shared);
        move_waiting(shared);
        if (shared->connection)
            error = shared_flush(shared);
        if (shared->connection && error < 0)
            shared_abort(shared, error);
    } while (shared->connection && !list_empty(&shared->session.updated));
    if (shared->connection)
        shared_keep_idle_or_close(shared);
    shared->running = false;
    if (!shared->connection)
        shared_connection_free(shared);
}

static void shared_opened(void *user)
{
    struct shared_connection *shared = user;
    struct upstream_connection *connection = shared->connection;

    upstream_set_timeout(connection, 0);
    shared->running = true;
    if (connection->tls && !str_equal(tls_session_alpn(connection->wire.tls), STR("h2"))) {
        shared->session.fault = "the server did not negotiate HTTP/2 (ALPN \"h2\")";
        shared_abort(shared, -EPROTO);
        shared_run(shared);
    } else {
        shared->open = true;
        wire_receive(&connection->wire);
        shared_timed_out(shared); /* sets the deadline of the streams that wait */
    }
}

static size_t shared_received(void *user, struct str bytes)
{
    struct shared_connection *shared = user;
    struct upstream_connection *connection = shared->connection;
    int error;

    if (str_empty(bytes)) { /* the server has closed the connection */
        upstream_discard(connection);
        shared->connection = NULL;
        shared_failed(shared, -ECONNRESET);
        return 0;
    }
    shared->running = true;
    error = h2_client_session_consume(&shared->session, bytes);
    if (error < 0) {
        (void)shared_flush(shared);
        shared_abort(shared, error);
    } else {
        wire_receive(&connection->wire);
    }
    shared_run(shared);
    return bytes.length;
}

static void shared_writable(void *user)
{
    shared_run(user);
}

/* Ends the streams whose deadline has passed, and sets the next deadline. */
static void expire_streams(struct shared_connection *shared, struct list *streams, uint64_t *next_ms)
{
    uint64_t now_ms = shared->clock->monotonic_ms;
    struct list *node = streams->next;

    while (node != streams) {
        struct gateway_stream *stream = container_of(node, struct gateway_stream, attached);

        if (stream->deadline_ms <= now_ms) {
            stream->events->lost(stream, -ETIMEDOUT, NULL);
            node = streams->next; /* the list may have changed */
            continue;
        }
        if (stream->deadline_ms < *next_ms)
            *next_ms = stream->deadline_ms;
        node = node->next;
    }
}

static void shared_timed_out(void *user)
{
    struct shared_connection *shared = user;
    uint64_t next_ms = UINT64_MAX;

    shared->running = true;
    expire_streams(shared, &shared->streams, &next_ms);
    expire_streams(shared, &shared->waiting, &next_ms);
    if (shared->connection && next_ms != UINT64_MAX && next_ms < shared->connection->deadline_ms)
        upstream_set_timeout(shared->connection, next_ms - shared->clock->monotonic_ms);
    shared_run(shared);
}

const struct upstream_events shared_connection_events = {
    .opened = shared_opened,
    .received = shared_received,
    .writable = shared_writable,
    .failed = shared_failed,
    .timed_out = shared_timed_out,
};
