/*
 * The tunnel after a 101: forwards bytes of an unknown protocol in both directions until one side closes. It
 * replaces HTTP on the client's connection. While both sides are idle it holds neither an exchange nor a buffer.
 */
#include "tunnel.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "connection.h"

#include <errno.h>
#include <stdlib.h>

struct tunnel {
    struct upgraded_session upgraded;     /* session on the client's connection, instead of HTTP */
    struct upstream_connection *connection; /* owned until released; NULL: closed */
    const struct gateway_conf *conf;
    struct buffer input;            /* received, not yet sent to the client; never reallocated while it has bytes */
    size_t input_at;
    int error;                      /* the upstream server failed: the client is aborted after the received bytes */
    bool over;                      /* one side has closed in order */
    bool blocked;                   /* the upstream's wire has no room for the client's bytes */
    struct str server;              /* for the log */
    struct gateway_attempt *attempt;  /* the last one */
    struct gateway_attempt attempts[]; /* linked list; the bytes of `server` follow */
};

static const struct upstream_events server_events;

static struct tunnel *tunnel_of(struct session *session)
{
    return container_of(session, struct tunnel, upgraded.session);
}

static void update_timeout(struct tunnel *t)
{
    uint64_t timeout_ms = t->conf->read_timeout_ms;

    if (!t->connection)
        return;
    if (t->blocked)
        timeout_ms = t->conf->send_timeout_ms;
    else if (!t->connection->wire.receiving)
        timeout_ms = 0;
    else if (timeout_ms > 0 && timeout_ms < LIMIT_PROXY_IDLE_MS)
        timeout_ms = LIMIT_PROXY_IDLE_MS;
    upstream_set_timeout(t->connection, timeout_ms);
}

static uint64_t tunnel_now_us(const struct tunnel *t)
{
    return t->connection->wire.shared->loop->clock.monotonic_us;
}

/* Detaches the upstream connection, which has ended; bytes received from it are still sent to the client. */
static struct upstream_connection *detach_connection(struct tunnel *t)
{
    struct upstream_connection *connection = t->connection;

    t->attempt->total_us = u64_sub_sat(tunnel_now_us(t), t->attempt->begun_us);
    t->connection = NULL;
    return connection;
}

/* From the upstream server. */

static void receive_from_server(struct tunnel *t)
{
    if (t->connection && size_sub_sat(t->input.capacity, t->input.length) >= LIMIT_RECEIVE_BYTES)
        wire_receive(&t->connection->wire);
    update_timeout(t);
}

static void connection_lost(struct tunnel *t, const char *what, int error)
{
    upgraded_log(&t->upgraded, LOG_ERROR, what, error, t->server);
    t->error = -ECONNRESET;
    upgraded_wake(&t->upgraded);
}

static size_t server_received(void *user, struct str bytes)
{
    struct tunnel *t = user;
    bool truncated = wire_truncated(&t->connection->wire);

    if (str_empty(bytes) || (t->input.capacity == 0 && buffer_reserve(&t->input, LIMIT_PROXY_INPUT) < 0)) {
        upstream_discard(detach_connection(t));
        t->over = str_empty(bytes) && !truncated;
        if (!t->over)
            connection_lost(t, "upstream prematurely closed connection", truncated ? -ECONNRESET : -ENOMEM);
        upgraded_wake(&t->upgraded);
        return bytes.length;
    }
    bytes = str_slice(bytes, 0, size_sub_sat(t->input.capacity, t->input.length));
    memcpy(t->input.data + t->input.length, bytes.data, bytes.length);
    t->input.length += bytes.length;
    t->attempt->bytes_received += bytes.length;
    upgraded_wake(&t->upgraded);
    receive_from_server(t);
    return bytes.length;
}

/* The upstream's wire has room again for the client's bytes. */
static void server_writable(void *user)
{
    struct tunnel *t = user;

    t->blocked = false;
    upgraded_wake(&t->upgraded);
    update_timeout(t);
}

static void server_failed(void *user, int error)
{
    struct tunnel *t = user;

    (void)detach_connection(t);
    connection_lost(t,
                    error == -ETIMEDOUT ? "upstream timed out"
                    : error == -EPROTO  ? "TLS failed"
                                        : "upstream prematurely closed connection",
                    error);
}

static const struct upstream_events server_events = {
    .received = server_received, .writable = server_writable, .failed = server_failed};

/* The client's session. */

static size_t tunnel_consume(struct session *session, struct str bytes)
{
    struct tunnel *t = tunnel_of(session);
    size_t taken = 0, room;

    if (!t->connection) /* discarded: the upstream server has closed */
        return bytes.length;
    while (taken < bytes.length && (room = wire_room(&t->connection->wire)) > 0) {
        struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = str_slice(str_skip(bytes, taken), 0, room)};

        if (wire_send(&t->connection->wire, &chunk) < 0) {
            upstream_discard(detach_connection(t));
            connection_lost(t, "sending to upstream failed", -ENOMEM);
            return bytes.length;
        }
        taken += chunk.bytes.length;
    }
    t->blocked = taken < bytes.length;
    t->upgraded.received += taken;
    t->attempt->bytes_sent += taken;
    wire_flush(&t->connection->wire);
    update_timeout(t);
    return taken;
}

static int tunnel_produce(struct session *session, unsigned accept, size_t room, struct chunk *out)
{
    struct tunnel *t = tunnel_of(session);
    struct str bytes = str_slice(str_skip(buffer_str(&t->input), t->input_at), 0, room);

    if (!str_empty(bytes)) {
        t->input_at += bytes.length;
        t->upgraded.sent += bytes.length;
        *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = bytes};
        return 1;
    }
    t->input_at = 0;
    buffer_finish(&t->input); /* an idle tunnel holds no buffer */
    if (t->connection)
        wire_receive(&t->connection->wire);
    update_timeout(t);
    if (!t->error && !t->over)
        return -EAGAIN;
    upgraded_end(&t->upgraded, !t->error);
    return t->error;
}

static enum session_phase tunnel_phase(const struct session *session)
{
    const struct tunnel *t = container_of(session, const struct tunnel, upgraded.session);

    return t->over || t->error ? SESSION_OVER : SESSION_WAITING;
}

/* After the client has closed, its bytes are still sent to the upstream server. Other signals do not end a tunnel. */
static void tunnel_signal(struct session *session, enum session_signal signal)
{
    struct tunnel *t = tunnel_of(session);

    if (signal != SESSION_PEER_CLOSED || !t->connection)
        return;
    t->over = true;
    upstream_close(detach_connection(t));
    upgraded_wake(&t->upgraded);
}

static void close_tunnel(struct session *session)
{
    struct tunnel *t = tunnel_of(session);

    if (t->connection)
        upstream_discard(detach_connection(t));
    upgraded_end(&t->upgraded, false);
    buffer_finish(&t->input);
    free(t);
}

static const struct protocol protocol_tunnel = {
    .alpn = "",
    .consume = tunnel_consume,
    .produce = tunnel_produce,
    .phase = tunnel_phase,
    .signal = tunnel_signal,
    .close = close_tunnel,
};

static void restore_exchange(struct upgraded_session *upgraded, struct exchange *x)
{
    struct tunnel *t = container_of(upgraded, struct tunnel, upgraded);
    struct gateway_request *p = gateway_request_make(x);

    if (!p)
        return;
    p->x = x;
    p->attempts = t->attempts;
}

static struct tunnel *tunnel_create(const struct gateway_request *p)
{
    const struct gateway_attempt *from = p->attempts;
    struct str server = p->attempt->server;
    size_t count = 0;
    struct tunnel *t;

    for (const struct gateway_attempt *each = from; each; each = each->next)
        count++;
    t = calloc(1, sizeof(*t) + count * sizeof(t->attempts[0]) + server.length);
    if (!t)
        return NULL;
    for (size_t i = 0; i < count; i++, from = from->next) {
        t->attempt = &t->attempts[i];
        *t->attempt = *from;
        t->attempt->server = STR("");
        t->attempt->next = i + 1 < count ? t->attempt + 1 : NULL;
    }
    t->server = str_of(memcpy(t->attempts + count, server.data, server.length), server.length);
    t->upgraded.session.protocol = &protocol_tunnel;
    t->upgraded.restore = restore_exchange;
    t->conf = p->conf;
    return t;
}

int gateway_tunnel(struct gateway_request *p)
{
    struct tunnel *t = tunnel_create(p);

    if (!t)
        return -ENOMEM;
    t->connection = p->upstream.connection;
    t->connection->events = &server_events;
    t->connection->user = t;
    p->upstream.connection = NULL;
    gateway_discard(p);
    buffer_finish(&p->incoming.input);
    exchange_end_with_client(p->x, false);
    exchange_upgrade(p->x, &t->upgraded);
    return 0;
}
