/*
 * A link consumes what its connection receives, lets updated streams read, and sends what the session produces. All of
 * this runs from the loop, so that a stream may end, or begin, inside any of these steps.
 */
#include "modules/gateway/h2/link.h"

#include <errno.h>
#include <stdlib.h>

struct gateway_link {
    struct upstream_connection *connection; /* owned; NULL: lost */
    struct h2_client_session session;
    const struct clock *clock;      /* of the worker */
    struct list streams;            /* attached, begun */
    struct list waiting;            /* attached, not begun: connecting, or above the server's limit */
    uint64_t created_ms;
    unsigned count;                 /* of attached streams */
    bool open;                      /* connected, and HTTP/2 was negotiated */
    bool running;                   /* inside an event: the link is not freed */
};

static void link_run(struct gateway_link *link);
static void link_timed_out(void *user);

/* Called by the session. Inside an event nothing is necessary. */
static void link_wake(void *owner)
{
    struct gateway_link *link = owner;

    if (link->connection && link->open && !link->running)
        upstream_wake(link->connection);
}

static void link_free(struct gateway_link *link)
{
    h2_client_session_finish(&link->session);
    free(link);
}

/* Removes the stream from the link. */
static void stream_unlink(struct gateway_stream *stream)
{
    struct gateway_link *link = stream->link;

    h2_client_stream_end(&stream->client);
    list_remove(&stream->attached);
    link->count--;
    stream->link = NULL;
    upstream_use_end(stream->peer);
}

/* Ends all streams. */
static void fail_streams(struct gateway_link *link, struct list *streams, int error)
{
    struct list *first;

    while ((first = streams->next) != streams) {
        struct gateway_stream *stream = container_of(first, struct gateway_stream, attached);

        stream->events->lost(stream, error, link->session.fault);
    }
}

/* The connection is lost: requests that were not sent are repeated. */
static void link_fail(struct gateway_link *link, int error)
{
    link->connection = NULL;
    link->open = false;
    fail_streams(link, &link->streams, error);
    fail_streams(link, &link->waiting, error);
}

static void link_failed(void *user, int error)
{
    struct gateway_link *link = user;
    bool running = link->running;

    link->running = true;
    link_fail(link, error);
    link->running = running;
    if (!running)
        link_free(link);
}

/* A connection error of the session, or missing negotiation: queued output (GOAWAY) is still sent. */
static void link_abort(struct gateway_link *link, int error)
{
    struct upstream_connection *connection = link->connection;

    link->connection = NULL;
    if (error == -EPROTO)
        upstream_close(connection);
    else
        upstream_discard(connection);
    link_fail(link, error);
}

/* Sends what the session produces while the wire has room. 0, or -errno: the connection is lost. */
static int link_flush(struct gateway_link *link)
{
    struct wire *wire = &link->connection->wire;
    struct str parts[2];
    size_t room;
    int result;

    while ((room = wire_room(wire)) > 0) {
        result = h2_client_session_produce(&link->session, room, parts);
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
static bool may_begin(const struct gateway_link *link)
{
    return link->open && (link->session.settings_received || list_empty(&link->streams)) &&
           h2_client_session_capacity(&link->session) > 0;
}

/* Begins waiting streams, as many as the server permits. */
static void begin_waiting(struct gateway_link *link)
{
    while (!list_empty(&link->waiting) && may_begin(link)) {
        struct gateway_stream *stream = container_of(link->waiting.next, struct gateway_stream, attached);

        list_remove(&stream->attached);
        list_push(&link->streams, &stream->attached);
        stream->ready = true;
        stream->events->opened(stream);
    }
}

/* Moves the streams that this connection cannot take to other connections. */
static void move_waiting(struct gateway_link *link)
{
    struct list *first;

    if (!link->session.settings_received || list_empty(&link->waiting) ||
        h2_client_session_capacity(&link->session) > 0)
        return;
    while ((first = link->waiting.next) != &link->waiting) {
        struct gateway_stream *stream = container_of(first, struct gateway_stream, attached);

        stream->events->progress(stream);
    }
}

/* Lets each updated stream read. */
static void read_updated_streams(struct gateway_link *link)
{
    struct h2_client_stream *client;

    while (link->connection && (client = h2_client_session_next_updated(&link->session)) != NULL) {
        struct gateway_stream *stream = container_of(client, struct gateway_stream, client);

        stream->events->updated(stream);
    }
}

/* Without streams, the connection becomes idle or is closed. */
static void link_keep_idle_or_close(struct gateway_link *link)
{
    struct upstream_connection *connection = link->connection;

    if (link->count > 0 || connection->state != UPSTREAM_OPEN)
        return;
    if (!link->session.error && !link->session.going_away && upstream_shared_keep_idle(connection))
        return;
    h2_client_session_goaway(&link->session, H2_NO_ERROR);
    (void)link_flush(link);
    link->connection = NULL;
    upstream_close(connection);
}

/* Runs all steps that may follow an event. */
static void link_run(struct gateway_link *link)
{
    int error = 0;

    link->running = true;
    do {
        read_updated_streams(link);
        begin_waiting(link);
        move_waiting(link);
        if (link->connection)
            error = link_flush(link);
        if (link->connection && error < 0)
            link_abort(link, error);
    } while (link->connection && !list_empty(&link->session.updated));
    if (link->connection)
        link_keep_idle_or_close(link);
    link->running = false;
    if (!link->connection)
        link_free(link);
}

static void link_opened(void *user)
{
    struct gateway_link *link = user;
    struct upstream_connection *connection = link->connection;

    upstream_set_timeout(connection, 0);
    link->running = true;
    if (connection->tls && !str_equal(tls_session_alpn(connection->wire.tls), STR("h2"))) {
        link->session.fault = "the server did not negotiate HTTP/2 (ALPN \"h2\")";
        link_abort(link, -EPROTO);
        link_run(link);
    } else {
        link->open = true;
        wire_receive(&connection->wire);
        link_timed_out(link); /* sets the deadline of the streams that wait */
    }
}

static size_t link_received(void *user, struct str bytes)
{
    struct gateway_link *link = user;
    struct upstream_connection *connection = link->connection;
    int error;

    if (str_empty(bytes)) { /* the server has closed the connection */
        upstream_discard(connection);
        link->connection = NULL;
        link_failed(link, -ECONNRESET);
        return 0;
    }
    link->running = true;
    error = h2_client_session_consume(&link->session, bytes);
    if (error < 0) {
        (void)link_flush(link);
        link_abort(link, error);
    } else {
        wire_receive(&connection->wire);
    }
    link_run(link);
    return bytes.length;
}

static void link_has_room(void *user)
{
    link_run(user);
}

/* Ends the streams whose deadline has passed, and sets the next deadline. */
static void expire_streams(struct gateway_link *link, struct list *streams, uint64_t *next_ms)
{
    uint64_t now_ms = link->clock->monotonic_ms;
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

static void link_timed_out(void *user)
{
    struct gateway_link *link = user;
    uint64_t next_ms = UINT64_MAX;

    link->running = true;
    expire_streams(link, &link->streams, &next_ms);
    expire_streams(link, &link->waiting, &next_ms);
    if (link->connection && next_ms != UINT64_MAX && next_ms < link->connection->deadline_ms)
        upstream_set_timeout(link->connection, next_ms - link->clock->monotonic_ms);
    link_run(link);
}

static const struct upstream_events link_events = {
    .opened = link_opened,
    .received = link_received,
    .room = link_has_room,
    .failed = link_failed,
    .timed_out = link_timed_out,
};

static bool has_room(const struct gateway_link *link)
{
    if (link->open && link->session.settings_received)
        return h2_client_session_capacity(&link->session) > 0;
    return link->count < LIMIT_H2_UPSTREAM_STREAMS;
}

static struct gateway_link *find_link(const struct gateway_request *p, bool fresh)
{
    struct upstream_connection *connection = NULL;

    while ((connection = upstream_shared_next(p->upstream.peer, &p->upstream.tls, &link_events, connection)) != NULL) {
        struct gateway_link *link = connection->user;

        if (upstream_shared_is_usable(connection) && has_room(link) && !link->session.going_away &&
            !link->session.error && (!fresh || link->created_ms >= p->upstream.begun_ms))
            return link;
    }
    return NULL;
}

static int create_link(const struct gateway_request *p, struct gateway_link **out_link)
{
    struct gateway_link *link = calloc(1, sizeof(*link));
    int error;

    if (!link)
        return -ENOMEM;
    link->clock = exchange_clock(p->x);
    link->created_ms = link->clock->monotonic_ms;
    list_init(&link->streams);
    list_init(&link->waiting);
    h2_client_session_init(&link->session, link_wake, link, link->clock);
    error = upstream_connect_shared(p->upstream.peer, &p->upstream.tls, &link_events, link, p->conf->connect_timeout_ms,
                                    &link->connection);
    if (error < 0) {
        link_free(link);
        return error;
    }
    *out_link = link;
    return 0;
}

int gateway_link_attach(struct gateway_stream *stream, bool fresh)
{
    struct gateway_request *p = stream->p;
    struct gateway_link *link;
    int error = 0;

    if (!upstream_use_begin(p->upstream.peer))
        return -EBUSY;
    link = find_link(p, fresh);
    if (!link)
        error = create_link(p, &link);
    if (error < 0) {
        upstream_use_end(p->upstream.peer);
        return error;
    }
    stream->reused = link->connection->state == UPSTREAM_IDLE;
    upstream_shared_use(link->connection);
    stream->link = link;
    stream->peer = p->upstream.peer;
    stream->deadline_ms = UINT64_MAX;
    link->count++;
    stream->ready = may_begin(link);
    list_init(&stream->attached);
    list_push(stream->ready ? &link->streams : &link->waiting, &stream->attached);
    return 0;
}

void gateway_link_begin(struct gateway_stream *stream)
{
    stream->begun = true;
    h2_client_stream_open(&stream->link->session, &stream->client);
    gateway_link_wake(stream);
}

void gateway_link_wake(struct gateway_stream *stream)
{
    link_wake(stream->link);
}

void gateway_link_detach(struct gateway_stream *stream)
{
    struct gateway_link *link = stream->link;

    if (!link)
        return;
    stream_unlink(stream);
    if (link->running || !link->connection)
        return;
    if (link->count > 0 || link->open) {
        link_wake(link);
        return;
    }
    upstream_discard(link->connection); /* nothing waits for it to connect */
    link_free(link);
}

void gateway_link_set_timeout(struct gateway_stream *stream, uint64_t timeout_ms)
{
    struct gateway_link *link = stream->link;

    stream->deadline_ms = timeout_ms ? link->clock->monotonic_ms + timeout_ms : UINT64_MAX;
    if (link->connection && link->open && stream->deadline_ms < link->connection->deadline_ms)
        upstream_set_timeout(link->connection, timeout_ms);
}
