/*
 * The path of a connection below HTTP, top to bottom:
 *
 *      accept -> handshake -> preread -> choose -> connect -> both ways -> end
 *
 * The client's bytes are asked for once there is a server to give them to. Each direction (stream_flow.c) ends by
 * itself; when both have ended the connection has.
 */
#include "server/stream.h"

#include "base/buffer.h"
#include "server/core_stream.h"
#include "server/journey_steps.h"
#include "server/route.h"
#include "server/stream_flow.h"
#include "tls/client_hello.h"

#include <errno.h>
#include <stdlib.h>

struct stream {
    struct list link;               /* in worker->streams */
    struct worker *worker;
    const struct endpoint *endpoint;
    const struct core_stream *conf;
    struct wire client;
    struct upstream_group *group;
    struct upstream_choice choice;
    struct upstream_waiter waiter;
    struct upstream_peer *peer;
    struct upstream_connection *server; /* owned until released; NULL: none */
    struct stream_flow up, down;    /* the client's bytes, the server's */
    struct buffer hello;            /* what was read before the server was chosen */
    struct op timer;
    uint64_t moved_ms;              /* when anything last happened */
    uint64_t began_ms;
    uint64_t number;                /* $connection */
    uint64_t tries;
    bool prereading;                /* no server is chosen yet */
    bool connected;
    bool ending;                    /* the client's wire was told to close */
    bool closed;                    /* the client's wire is */
    union proxy_address address;
};

static struct stream *stream_of(struct wire *client)
{
    return container_of(client, struct stream, client);
}

static uint64_t now_ms(const struct stream *stream)
{
    return stream->worker->loop.clock.monotonic_ms;
}

static void say(const struct stream *stream, enum log_level level, const char *what, int error)
{
    const char *server = stream->peer ? stream->peer->name : "";

    if (error)
        log_write(stream->worker->log, level, "*%llu %s (%d: %s), upstream: \"%s\"",
                  (unsigned long long)stream->number, what, -error, strerror(-error), server);
    else
        log_write(stream->worker->log, level, "*%llu %s, upstream: \"%s\"",
                  (unsigned long long)stream->number, what, server);
}

/* Freed when the client's wire is closed and the timer has been told. */
static void bury(struct stream *stream)
{
    struct worker *worker = stream->worker;

    if (!stream->closed || !op_idle(&stream->timer))
        return;
    list_remove(&stream->link);
    journey_leave(worker, &stream->address);
    buffer_finish(&stream->hello);
    free(stream);
}

/* The server's side: gone at once, or after what was given to it has left. */
static void let_go(struct stream *stream, bool orderly)
{
    struct upstream_connection *server = stream->server;

    stream->server = NULL;
    upstream_wait_end(&stream->waiter);
    stream_flow_stop(&stream->up);
    stream_flow_stop(&stream->down);
    if (server && orderly)
        upstream_release_orderly(server);
    else if (server)
        upstream_release(server, false);
}

static void end(struct stream *stream, enum wire_end how)
{
    let_go(stream, how == WIRE_END_ORDERLY);
    stream->ending = true;
    loop_timer_move(&stream->worker->loop, &stream->timer,
                    now_ms(stream) + stream->client.settings->lingering_ms);
    wire_close(&stream->client, how);
}

/* Both ends were passed on, or one is enough. */
static void look_for_end(struct stream *stream)
{
    bool both = stream->up.over && stream->down.over;

    if (both || (!stream->conf->half_close && (stream->up.over || stream->down.over)))
        end(stream, WIRE_END_ORDERLY);
}

static void moved(struct stream *stream)
{
    stream->moved_ms = now_ms(stream);
}

/* The server's side. */

/* One block takes it: preread_buffer_size is no larger. */
static int send_hello(struct stream *stream)
{
    const struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = buffer_str(&stream->hello)};
    int error = chunk.bytes.length > 0 ? wire_send(&stream->server->wire, &chunk) : 0;

    buffer_finish(&stream->hello);
    wire_flush(&stream->server->wire);
    return error;
}

static void server_opened(void *user)
{
    struct stream *stream = user;

    if (send_hello(stream) < 0) {
        end(stream, WIRE_END_REFUSED);
        return;
    }
    stream->connected = true;
    moved(stream);
    upstream_peer_worked(stream->peer);
    upstream_patience(stream->server, 0);
    stream_flow_start(&stream->up, &stream->client, &stream->server->wire);
    stream_flow_start(&stream->down, &stream->server->wire, &stream->client);
}

static size_t server_received(void *user, struct str bytes)
{
    struct stream *stream = user;
    size_t taken;

    moved(stream);
    taken = stream_flow_received(&stream->down, bytes);
    look_for_end(stream);
    return taken;
}

static void server_piped(void *user, size_t count)
{
    struct stream *stream = user;

    moved(stream);
    stream_flow_piped(&stream->down, count);
}

static void server_has_room(void *user)
{
    struct stream *stream = user;

    moved(stream);
    stream_flow_room(&stream->up);
    look_for_end(stream);
}

static void ask_server(struct stream *stream);

static bool may_ask_another(const struct stream *stream)
{
    const struct core_stream *conf = stream->conf;

    return conf->next_upstream && (conf->next_tries == 0 || stream->tries < conf->next_tries) &&
           (conf->next_timeout_ms == 0 || now_ms(stream) - stream->began_ms < conf->next_timeout_ms) &&
           upstream_has_another(stream->group, &stream->choice);
}

/* A reset is passed on as one: what the client has got may not be all. */
static void server_failed(void *user, int error)
{
    struct stream *stream = user;

    stream->server = NULL;
    if (stream->connected) {
        say(stream, LOG_INFO, "the server broke the connection", error);
        end(stream, WIRE_END_REFUSED);
        return;
    }
    say(stream, LOG_ERROR, "connect() failed while connecting to upstream", error);
    upstream_peer_failed(stream->peer);
    if (may_ask_another(stream))
        ask_server(stream);
    else
        end(stream, WIRE_END_REFUSED);
}

static const struct upstream_events server_events = {
    .opened = server_opened,
    .received = server_received,
    .piped = server_piped,
    .room = server_has_room,
    .failed = server_failed,
};

static void name_resolved(struct upstream_waiter *waiter)
{
    ask_server(container_of(waiter, struct stream, waiter));
}

/* Servers that cannot even be tried are passed over at once. Never an idle connection: something was said on it. */
static int connect_to(struct stream *stream)
{
    const struct upstream_tls plain = {0};
    int error;

    stream->tries++;
    error = upstream_connect(stream->peer, &plain, &server_events, stream, stream->conf->connect_timeout_ms,
                             true, &stream->server);
    if (error < 0) {
        stream->server = NULL;
        say(stream, LOG_ERROR, "connect() failed while connecting to upstream", error);
        upstream_peer_failed(stream->peer);
    }
    return error;
}

static void ask_server(struct stream *stream)
{
    int error;

    do {
        stream->peer = upstream_choose(stream->group, &stream->choice, &error);
        if (stream->peer && connect_to(stream) == 0)
            return;
    } while (stream->peer && may_ask_another(stream));
    if (!stream->peer && error == -EAGAIN) {
        stream->waiter.resolved = name_resolved;
        upstream_wait(stream->group, &stream->waiter);
        return;
    }
    if (stream->tries == 0)
        say(stream, LOG_ERROR, error == -ENOENT ? "host not found" : "no live upstreams", 0);
    end(stream, WIRE_END_REFUSED);
}

/* The client's side. */

/* Its name is known, or that it has none: that chooses the server of the configuration. */
static void choose(struct stream *stream, struct str name)
{
    stream->prereading = false;
    stream->conf = route_by_name(stream->endpoint, name)->stream->conf;
    stream->group = upstream_pool_group(stream->worker->upstreams, stream->conf->upstream);
    loop_timer_move(&stream->worker->loop, &stream->timer, now_ms(stream) + stream->conf->timeout_ms);
    wire_watch(&stream->client);
    ask_server(stream);
}

/* What is no TLS, or not to the letter, asks for no name. */
static size_t preread(struct stream *stream, struct str bytes)
{
    size_t room = (size_t)stream->conf->preread_size - stream->hello.length;
    struct str taken = str_slice(bytes, 0, room);
    struct client_hello hello = {.name_length = 0};
    int error;

    if (str_empty(bytes) || buffer_append(&stream->hello, taken) < 0) {
        end(stream, WIRE_END_REFUSED);
        return bytes.length;
    }
    error = client_hello_read(buffer_str(&stream->hello), &hello);
    if (error != -EAGAIN) {
        choose(stream, str_of(hello.name, hello.name_length));
    } else if (taken.length == room) {
        say(stream, LOG_INFO, "the preread buffer is full, and the name has not come", 0);
        end(stream, WIRE_END_REFUSED);
    } else {
        wire_receive(&stream->client);
    }
    return taken.length;
}

/* Its bytes may flow, after TLS where there is TLS. */
static void client_opened(struct wire *wire)
{
    struct stream *stream = stream_of(wire);
    struct str name = wire->tls ? tls_session_server_name(wire->tls) : STR("");

    if (wire_spoke_http(wire)) {
        wire_close(wire, WIRE_END_REFUSED);
        return;
    }
    moved(stream);
    if (stream->conf->ssl_preread && !wire->tls)
        wire_receive(wire);
    else
        choose(stream, name);
}

static size_t client_received(struct wire *wire, struct str bytes)
{
    struct stream *stream = stream_of(wire);
    size_t taken;

    moved(stream);
    if (stream->prereading)
        return preread(stream, bytes);
    if (!stream->up.to)
        return 0;
    taken = stream_flow_received(&stream->up, bytes);
    look_for_end(stream);
    return taken;
}

static void client_piped(struct wire *wire, size_t count)
{
    struct stream *stream = stream_of(wire);

    if (!stream->up.to)
        return;
    moved(stream);
    stream_flow_piped(&stream->up, count);
}

static void client_has_room(struct wire *wire)
{
    struct stream *stream = stream_of(wire);

    moved(stream);
    stream_flow_room(&stream->down);
    if (stream->server)
        look_for_end(stream);
}

static void client_closed(struct wire *wire, enum wire_end how)
{
    struct stream *stream = stream_of(wire);

    let_go(stream, false);
    stream->closed = true;
    loop_cancel(&stream->worker->loop, &stream->timer);
    bury(stream);
}

static const struct wire_events client_events = {
    .opened = client_opened,
    .received = client_received,
    .piped = client_piped,
    .room = client_has_room,
    .closed = client_closed,
};

/* How long nothing may happen: before a server is chosen, the default server's word holds. */
static uint64_t patience_ms(const struct stream *stream)
{
    if (wire_lingering(&stream->client))
        return stream->client.settings->lingering_ms;
    return stream->prereading ? stream->conf->preread_timeout_ms : stream->conf->timeout_ms;
}

/* Nobody tells when lingering begins: that is looked for. */
static uint64_t next_look(const struct stream *stream, uint64_t due_ms)
{
    uint64_t look_ms = now_ms(stream) + stream->client.settings->lingering_ms;

    return stream->ending && look_ms < due_ms ? look_ms : due_ms;
}

static void timer_due(struct op *op, int result)
{
    struct stream *stream = container_of(op, struct stream, timer);
    uint64_t due_ms = stream->moved_ms + patience_ms(stream);

    if (stream->closed) {
        bury(stream);
        return;
    }
    if (due_ms > now_ms(stream)) {
        loop_timer(&stream->worker->loop, op, next_look(stream, due_ms));
        return;
    }
    if (!stream->ending)
        say(stream, LOG_INFO, "the connection was quiet for too long", -ETIMEDOUT);
    end(stream, WIRE_END_TIMEOUT);
}

static struct stream *make(struct worker *worker, const struct endpoint *endpoint,
                           const union proxy_address *peer)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->worker = worker;
    stream->endpoint = endpoint;
    stream->conf = endpoint->servers[0]->stream->conf;
    stream->address = *peer;
    stream->number = __atomic_add_fetch(&worker->shared->connection_number, 1, __ATOMIC_RELAXED);
    stream->timer.done = timer_due;
    stream->prereading = true;
    list_init(&stream->waiter.link);
    list_push(&worker->streams, &stream->link);
    stream->began_ms = stream->moved_ms = now_ms(stream);
    return stream;
}

void stream_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct worker *worker = owner;
    const struct endpoint *endpoint = container_of(listener, struct worker_listener, listener)->endpoint;
    const union proxy_address *address = (const union proxy_address *)(const void *)peer;
    struct stream *stream;

    if (!journey_enter(worker, address)) {
        loop_close_fd(&worker->loop, fd);
        return;
    }
    stream = make(worker, endpoint, address);
    if (stream && wire_open(&stream->client, &worker->wires, &client_events, &endpoint->servers[0]->stream->wire,
                            fd, endpoint->tls) == 0) {
        loop_timer(&worker->loop, &stream->timer, stream->moved_ms + stream->conf->preread_timeout_ms);
        return;
    }
    if (!stream)
        loop_close_fd(&worker->loop, fd);
    else
        list_remove(&stream->link);
    free(stream);
    journey_leave(worker, address);
    journey_starved(worker, true);
}

void stream_abort_all(struct worker *worker)
{
    for (struct list *link = worker->streams.next; link != &worker->streams; link = link->next)
        wire_close(&container_of(link, struct stream, link)->client, WIRE_END_ABORT);
}
