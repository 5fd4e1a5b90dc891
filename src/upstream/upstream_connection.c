/*
 * Connections to upstream servers: opened, used by successive exchanges, closed. A connection has a wire, a user that
 * gets its events, and one timer. It is freed when nothing is in flight.
 */
#include "upstream/upstream_group.h"

#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>

static struct upstream_connection *upstream_connection_of(struct wire *wire)
{
    return container_of(wire, struct upstream_connection, wire);
}

static struct loop *loop_of(const struct upstream_connection *connection)
{
    return connection->pool->loop;
}

/* Frees it once the wire is closed and no op is in flight. */
static void connection_free_when_idle(struct upstream_connection *connection)
{
    if (connection->opened || !op_idle(&connection->connect) || !op_idle(&connection->timer))
        return;
    list_remove(&connection->link);
    free(connection);
}

void upstream_connection_store_session(struct upstream_connection *connection)
{
    if (connection->tls && connection->opened)
        tls_session_store(connection->wire.tls, connection->tls, str_from(connection->name),
                          &connection->peer->resumption);
}

/* Detaches the connection from its peer. */
static void leave_peer(struct upstream_connection *connection)
{
    struct upstream_peer *peer = connection->peer;

    if (!peer)
        return;
    upstream_connection_store_session(connection);
    connection->peer = NULL;
    if (connection->state == UPSTREAM_IDLE)
        peer->group->idle--;
    else if (!connection->shared)
        upstream_peer_release(peer);
    upstream_peer_free_unused(peer);
}

/* Detaches the connection from its user and its peer; afterwards it can only close. */
static void start_closing(struct upstream_connection *connection)
{
    list_remove(&connection->link);
    list_remove(&connection->woken);
    list_remove(&connection->sharing);
    leave_peer(connection);
    connection->state = UPSTREAM_CLOSING;
    connection->events = NULL;
    connection->user = NULL;
    list_push(&connection->pool->connections, &connection->link);
}

/* After start_closing(): no event follows. */
static void abort_connection(struct upstream_connection *connection)
{
    loop_cancel(loop_of(connection), &connection->timer);
    loop_cancel(loop_of(connection), &connection->connect);
    if (connection->opened)
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
    connection_free_when_idle(connection);
}

static void close_connection(struct upstream_connection *connection)
{
    start_closing(connection);
    abort_connection(connection);
}

bool upstream_pool_draining(const struct upstream_pool *pool)
{
    for (const struct list *link = pool->connections.next; link != &pool->connections; link = link->next) {
        const struct upstream_connection *connection = container_of(link, struct upstream_connection, link);

        if (connection->state == UPSTREAM_CLOSING && connection->opened && !wire_drained(&connection->wire))
            return true;
    }
    return false;
}

void upstream_connections_stop(struct upstream_pool *pool)
{
    struct list *link = pool->connections.next;

    while (link != &pool->connections) {
        struct upstream_connection *connection = container_of(link, struct upstream_connection, link);

        link = link->next;
        if (connection->state == UPSTREAM_CLOSING)
            abort_connection(connection);
    }
}

/* Calls `failed`, which is the last event. The peer is valid until `failed` returns. */
static void notify_failure(struct upstream_connection *connection, int error)
{
    const struct upstream_events *events = connection->events;

    connection->events = NULL;
    if (events)
        events->failed(connection->user, error);
}

static void connection_fail(struct upstream_connection *connection, int error)
{
    notify_failure(connection, error);
    close_connection(connection);
}

void upstream_connection_discard(struct upstream_connection *connection)
{
    connection_fail(connection, -ECANCELED);
}

/* True if its user gets events: an idle connection that is not shared has no user. */
static bool has_user(const struct upstream_connection *connection)
{
    return connection->state == UPSTREAM_OPEN || (connection->state == UPSTREAM_IDLE && connection->shared);
}

static void wire_opened(struct wire *wire)
{
    struct upstream_connection *connection = upstream_connection_of(wire);

    if (connection->state != UPSTREAM_CONNECTING)
        return;
    connection->state = UPSTREAM_OPEN;
    connection->events->opened(connection->user);
}

/* An idle connection that receives bytes or ends is closed, unless it is shared. */
static size_t wire_received(struct wire *wire, struct str bytes)
{
    struct upstream_connection *connection = upstream_connection_of(wire);

    if (has_user(connection))
        return connection->events->received(connection->user, bytes);
    if (connection->state == UPSTREAM_IDLE)
        close_connection(connection);
    return bytes.length;
}

static void wire_piped(struct wire *wire, size_t count)
{
    struct upstream_connection *connection = upstream_connection_of(wire);

    if (connection->state == UPSTREAM_OPEN)
        connection->events->piped(connection->user, count);
}

static void wire_writable(struct wire *wire)
{
    struct upstream_connection *connection = upstream_connection_of(wire);

    if (has_user(connection))
        connection->events->writable(connection->user);
}

static void log_tls_failure(const struct upstream_connection *connection)
{
    if (connection->wire.tls)
        log_write(connection->pool->log, LOG_ERROR, "TLS to upstream \"%s\" failed: %s", connection->name,
                  tls_session_error(connection->wire.tls));
}

/* The user does not wait until the server has read the alert. */
static void wire_tls_failed(struct wire *wire)
{
    struct upstream_connection *connection = upstream_connection_of(wire);

    if (connection->state == UPSTREAM_CLOSING)
        return;
    log_tls_failure(connection);
    notify_failure(connection, -EPROTO);
    start_closing(connection);
    upstream_set_timeout(connection, LIMIT_UPSTREAM_CLOSE_MS);
}

static void wire_closed(struct wire *wire, enum wire_close_reason end)
{
    struct upstream_connection *connection = upstream_connection_of(wire);

    connection->opened = false;
    if (connection->state == UPSTREAM_CLOSING) {
        loop_cancel(loop_of(connection), &connection->timer);
        connection_free_when_idle(connection);
        return;
    }
    if (end == WIRE_CLOSE_PROTOCOL)
        log_tls_failure(connection);
    connection_fail(connection, end == WIRE_CLOSE_TIMEOUT    ? -ETIMEDOUT
                                : end == WIRE_CLOSE_PROTOCOL ? -EPROTO
                                                           : -ECONNRESET);
}

static const struct wire_events wire_events = {
    .opened = wire_opened,
    .received = wire_received,
    .piped = wire_piped,
    .writable = wire_writable,
    .tls_failed = wire_tls_failed,
    .closed = wire_closed,
};

/* Sends the header by one call: a newly connected socket has room for it. */
static int send_proxy_header(int fd, struct str proxy_header)
{
    ssize_t sent = str_empty(proxy_header) ? 0 : send(fd, proxy_header.data, proxy_header.length, MSG_NOSIGNAL);

    return sent < 0 ? -errno : (size_t)sent < proxy_header.length ? -ENOBUFS : 0;
}

static void connect_done(struct op *op, int result)
{
    struct upstream_connection *connection = container_of(op, struct upstream_connection, connect);
    struct upstream_pool *pool = connection->pool;
    int fd = connection->fd;

    connection->fd = -1;
    if (result >= 0 && connection->state != UPSTREAM_CLOSING)
        result = send_proxy_header(fd, connection->proxy_header);
    if (result < 0 || connection->state == UPSTREAM_CLOSING) {
        loop_close_fd(pool->loop, fd);
        if (connection->state == UPSTREAM_CLOSING)
            connection_free_when_idle(connection);
        else
            connection_fail(connection, result);
        return;
    }
    if (connection->tls)
        result = wire_open_client(&connection->wire, &pool->wires, &wire_events, &pool->settings, fd,
                                  connection->tls, str_from(connection->name), &connection->peer->resumption);
    else
        result = wire_open(&connection->wire, &pool->wires, &wire_events, &pool->settings, fd, NULL);
    if (result < 0)
        connection_fail(connection, result);
    else
        connection->opened = true;
}

static void connection_timer_done(struct op *op, int result)
{
    struct upstream_connection *connection = container_of(op, struct upstream_connection, timer);
    uint64_t now = loop_of(connection)->clock.monotonic_ms;

    if (connection->state == UPSTREAM_CLOSING && connection->opened && result == 0 &&
        connection->deadline_ms > now)
        loop_timer(loop_of(connection), op, connection->deadline_ms);
    else if (connection->state == UPSTREAM_CLOSING && connection->opened)
        wire_close(&connection->wire, WIRE_CLOSE_ABORT); /* the timeout of the close has passed */
    else if (connection->state == UPSTREAM_CLOSING)
        connection_free_when_idle(connection);
    else if (connection->deadline_ms <= now && connection->state == UPSTREAM_OPEN && connection->events->timed_out) {
        connection->deadline_ms = UINT64_MAX;
        connection->events->timed_out(connection->user);
    } else if (connection->deadline_ms <= now)
        connection_fail(connection, -ETIMEDOUT); /* an idle connection without a user is closed */
    else if (connection->deadline_ms != UINT64_MAX)
        loop_timer(loop_of(connection), op, connection->deadline_ms);
}

/* Each call moves the deadline; the timer itself is moved when it expires, or to an earlier deadline. */
void upstream_set_timeout(struct upstream_connection *connection, uint64_t timeout_ms)
{
    struct loop *loop = loop_of(connection);
    uint64_t before = connection->deadline_ms;

    connection->deadline_ms = timeout_ms ? loop->clock.monotonic_ms + timeout_ms : UINT64_MAX;
    if (connection->deadline_ms == UINT64_MAX)
        return;
    if (op_idle(&connection->timer))
        loop_timer(loop, &connection->timer, connection->deadline_ms);
    else if (connection->deadline_ms < before)
        loop_timer_move(loop, &connection->timer, connection->deadline_ms);
}

struct upstream_connection *upstream_connection_create(struct upstream_peer *peer,
                                                       const struct upstream_transport *transport, int *out_error)
{
    struct upstream_pool *pool = peer->group->pool;
    size_t named = transport->context && transport->name.length <= LIMIT_SERVER_NAME ? transport->name.length : 0;
    struct upstream_connection *connection = calloc(1, sizeof(*connection) + named + 1);

    *out_error = -ENOMEM;
    if (!connection)
        return NULL;
    connection->fd = upstream_socket_open(&peer->address, transport->local_address);
    if (connection->fd < 0) {
        *out_error = connection->fd;
        free(connection);
        return NULL;
    }
    connection->pool = pool;
    connection->proxy_header = transport->proxy_header;
    connection->tls = transport->context;
    connection->local_address = transport->local_address;
    if (named) /* a longer name is no host name */
        memcpy(connection->name, transport->name.data, named);
    connection->state = UPSTREAM_CONNECTING;
    connection->deadline_ms = UINT64_MAX;
    connection->connect.done = connect_done;
    connection->timer.done = connection_timer_done;
    list_init(&connection->woken);
    list_init(&connection->sharing);
    list_init(&connection->link);
    loop_connect(pool->loop, &connection->connect, connection->fd, &peer->address.socket,
                 peer->address.length);
    return connection;
}

static void resume_woken_connections(struct op *op, int result)
{
    struct upstream_pool *pool = container_of(op, struct upstream_pool, tick);
    struct list *link;
    struct list now;

    list_init(&now);
    while ((link = list_pop(&pool->woken)) != NULL) /* connections woken meanwhile wait for the next iteration */
        list_push(&now, link);
    while ((link = list_pop(&now)) != NULL) {
        struct upstream_connection *connection = container_of(link, struct upstream_connection, woken);

        if (has_user(connection))
            connection->events->writable(connection->user);
    }
}

void upstream_wake(struct upstream_connection *connection)
{
    struct upstream_pool *pool = connection->pool;

    if (!list_empty(&connection->woken))
        return;
    list_push(&pool->woken, &connection->woken);
    pool->tick.done = resume_woken_connections;
    if (op_idle(&pool->tick))
        loop_timer(pool->loop, &pool->tick, pool->loop->clock.monotonic_ms);
}

void upstream_close(struct upstream_connection *connection)
{
    if (connection->state != UPSTREAM_OPEN) {
        close_connection(connection);
        return;
    }
    start_closing(connection);
    upstream_set_timeout(connection, LIMIT_UPSTREAM_CLOSE_MS);
    wire_close(&connection->wire, WIRE_CLOSE_ORDERLY);
}

void upstream_discard(struct upstream_connection *connection)
{
    close_connection(connection);
}
