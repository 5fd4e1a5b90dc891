/*
 * Each event of the connection runs the same steps: the session consumes received bytes, updated streams are read, and
 * the frames that the session produces are sent. A stream may end, or begin, inside any of these steps.
 */
#include "modules/gateway/h2/shared_connection.h"

#include <errno.h>
#include <stdlib.h>

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

static void shared_run(struct shared_connection *shared);
static void shared_timed_out(void *user);

/* Called by the session. Inside an event nothing is necessary. */
static void shared_wake(void *owner)
{
    struct shared_connection *shared = owner;

    if (shared->connection && shared->open && !shared->running)
        upstream_wake(shared->connection);
}

static void shared_free(struct shared_connection *shared)
{
    h2_client_session_finish(&shared->session);
    free(shared);
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
        shared_free(shared);
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

/* Sends what the session produces while the wire has room. 0, or -errno: the connection is lost. */
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

/* Before the server's SETTINGS, which have its limit of streams, one stream begins. */
static bool may_begin(const struct shared_connection *shared)
{
    return shared->open && (shared->session.settings_received || list_empty(&shared->streams)) &&
           h2_client_session_capacity(&shared->session) > 0;
}

/* Begins waiting streams, as many as the server permits. */
static void begin_waiting(struct shared_connection *shared)
{
    while (!list_empty(&shared->waiting) && may_begin(shared)) {
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
        shared_free(shared);
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

static const struct upstream_events shared_events = {
    .opened = shared_opened,
    .received = shared_received,
    .writable = shared_writable,
    .failed = shared_failed,
    .timed_out = shared_timed_out,
};

static bool has_room(const struct shared_connection *shared)
{
    if (shared->open && shared->session.settings_received)
        return h2_client_session_capacity(&shared->session) > 0;
    return shared->count < LIMIT_H2_UPSTREAM_STREAMS;
}

static struct shared_connection *find_shared(const struct gateway_request *p, bool fresh)
{
    struct upstream_connection *connection = NULL;

    while ((connection = upstream_shared_next(p->upstream.peer, &p->upstream.tls, &shared_events, connection)) !=
           NULL) {
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
    h2_client_session_init(&shared->session, shared_wake, shared, shared->clock);
    error = upstream_connect_shared(p->upstream.peer, &p->upstream.tls, &shared_events, shared,
                                    p->conf->connect_timeout_ms, &shared->connection);
    if (error < 0) {
        shared_free(shared);
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
    stream->ready = may_begin(shared);
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
    shared_wake(stream->shared);
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
        shared_wake(shared);
        return;
    }
    upstream_discard(shared->connection); /* nothing waits for it to connect */
    shared_free(shared);
}

void gateway_stream_set_timeout(struct gateway_stream *stream, uint64_t timeout_ms)
{
    struct shared_connection *shared = stream->shared;

    stream->deadline_ms = timeout_ms ? shared->clock->monotonic_ms + timeout_ms : UINT64_MAX;
    if (shared->connection && shared->open && stream->deadline_ms < shared->connection->deadline_ms)
        upstream_set_timeout(shared->connection, timeout_ms);
}
