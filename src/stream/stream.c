/*
 * The path of a `stream` connection, from top to bottom:
 *
 *      accept -> handshake -> preread -> select -> connect -> relay -> end
 *
 * The client's bytes are read once an upstream server is connected (stream_server.c). Each direction (stream_flow.c)
 * ends separately; the connection ends when both have.
 */
#include "base/saturate.h"
#include "log/access_log.h"
#include "server/route.h"
#include "stream/stream_private.h"

#include <errno.h>
#include <stdlib.h>

static struct stream *stream_of(struct wire *client)
{
    return container_of(client, struct stream, client);
}

/* Frees the stream when the client's wire is closed and the timer and both flows have no operation in flight. */
static void stream_free_when_closed(struct stream *stream)
{
    struct worker *worker = stream->worker;

    if (!stream->closed || !op_idle(&stream->timer) || !stream_flow_idle(&stream->up) ||
        !stream_flow_idle(&stream->down))
        return;
    list_remove(&stream->link);
    connection_unreserve(worker, &stream->address);
    buffer_finish(&stream->preread.input);
    arena_reset(&stream->arena);
    free(stream);
}

static void up_idle(struct stream_flow *flow)
{
    stream_free_when_closed(container_of(flow, struct stream, up));
}

static void down_idle(struct stream_flow *flow)
{
    stream_free_when_closed(container_of(flow, struct stream, down));
}

/* `return`: sends as much of the text as there is room for, then closes. */
static void send_text(struct stream *stream)
{
    struct wire *wire = &stream->client;
    size_t room;

    while (stream->return_text.length > 0 && (room = wire_room(wire)) > 0) {
        const struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = str_slice(stream->return_text, 0, room)};

        if (wire_send(wire, &chunk) < 0) {
            stream_end(stream, WIRE_CLOSE_ABORT);
            return;
        }
        stream->return_text = str_skip(stream->return_text, chunk.bytes.length);
        stream->own_bytes += chunk.bytes.length;
    }
    wire_flush(wire);
    if (stream->return_text.length == 0)
        stream_end(stream, WIRE_CLOSE_ORDERLY);
}

/* Called when the virtual server is selected: sends the text of `return`, or proxies the connection. */
static void serve_stream(struct stream *stream)
{
    int status = stream_check_access(stream);

    if (status == 0 && stream->conf->text) {
        stream->return_text = stream_eval(stream, stream->conf->text);
        status = stream->return_text.data ? 0 : 500;
    } else if (status == 0) {
        status = stream_find_group(stream);
    }
    if (status) {
        stream_reject(stream, status);
        return;
    }
    loop_timer_move(&stream->worker->loop, &stream->timer, stream_now_ms(stream) + stream->conf->timeout_ms);
    wire_watch(&stream->client);
    if (stream->conf->text)
        send_text(stream);
    else
        stream_try_server(stream);
}

/* Counts the connection in the zone of the default server, or from then on in that of the selected one. */
static void set_virtual_server(struct stream *stream, const struct virtual_server *virtual)
{
    unsigned slot = stream->worker->shared_index;

    if (stream->server_conf)
        status_zone_leave(stream->server_conf->zone, slot);
    stream->virtual = virtual;
    stream->server_conf = virtual->stream;
    stream->conf = stream->server_conf->conf;
    status_zone_enter(stream->server_conf->zone, slot);
}

/* Selects the virtual server by the client's server name, or without one; then serves the connection. */
static void select_virtual_server(struct stream *stream, const struct virtual_server *virtual)
{
    stream->prereading = false;
    stream->preread.bytes = stream->preread.input.length;
    set_virtual_server(stream, virtual);
    stream_debug(stream, "server \"" STR_FMT "\"", STR_ARG(virtual->name));
    serve_stream(stream);
}

/* Without a valid TLS ClientHello the default server is selected. */
static size_t preread_bytes(struct stream *stream, struct str bytes)
{
    struct client_hello hello = {.name_length = 0};
    size_t taken = 0;
    int result;

    if (str_empty(bytes)) { /* the client closed */
        stream_end(stream, WIRE_CLOSE_ORDERLY);
        return 0;
    }
    result = stream_preread(stream, bytes, &taken, &hello);
    if (result == 0)
        select_virtual_server(stream, route_by_name(stream->endpoint, str_of(hello.name, hello.name_length)));
    else if (result == -EAGAIN)
        wire_receive(&stream->client);
    else
        stream_reject(stream, result);
    return taken;
}

static void proxy_header_received(struct wire *wire, const struct proxy_header *header)
{
    struct stream *stream = stream_of(wire);
    struct proxy_header *copy = arena_alloc(&stream->arena, sizeof(*copy));

    if (!copy) {
        wire_close(wire, WIRE_CLOSE_ABORT);
        return;
    }
    *copy = *header;
    stream->header = copy;
    stream_record_activity(stream);
}

/* Returns false for a missing or invalid client certificate: the caller closes the connection, without a message. */
static bool is_authenticated(const struct stream *stream)
{
    const struct tls_session *tls = stream->client.tls;
    enum tls_client_state state = tls ? tls_session_client_state(tls) : TLS_CLIENT_ACCEPTED;

    if (state == TLS_CLIENT_REFUSED)
        log_write(stream_log(stream), LOG_INFO, "client SSL certificate verify error: %s",
                  tls_session_client_fault(tls));
    if (state == TLS_CLIENT_ABSENT)
        log_write(stream_log(stream), LOG_INFO, "client sent no required SSL certificate");
    return state == TLS_CLIENT_ACCEPTED;
}

/* Returns the virtual server whose certificate requirements the handshake met; the name is not looked up again. */
static const struct virtual_server *virtual_server_of(const struct stream *stream)
{
    const struct tls_session *tls = stream->client.tls;

    return tls ? tls_session_settings(tls)->owner : stream->endpoint->servers[0];
}

/* Called when application bytes can be exchanged (after the TLS handshake, if any). */
static void client_opened(struct wire *wire)
{
    struct stream *stream = stream_of(wire);

    stream_debug_opened(stream);
    if (wire_got_plain_http(wire) || !is_authenticated(stream)) {
        stream_reject(stream, 400);
        return;
    }
    stream_record_activity(stream);
    if (stream->conf->ssl_preread && !wire->tls)
        wire_receive(wire);
    else
        select_virtual_server(stream, virtual_server_of(stream));
}

static size_t client_received(struct wire *wire, struct str bytes)
{
    struct stream *stream = stream_of(wire);
    size_t taken;

    stream_record_activity(stream);
    if (stream->prereading)
        return preread_bytes(stream, bytes);
    if (!stream->up.to)
        return 0;
    taken = stream_flow_received(&stream->up, bytes);
    stream_end_if_complete(stream);
    return taken;
}

static void client_piped(struct wire *wire, size_t count)
{
    struct stream *stream = stream_of(wire);

    if (!stream->up.to)
        return;
    stream_record_activity(stream);
    stream_flow_piped(&stream->up, count);
}

static void client_writable(struct wire *wire)
{
    struct stream *stream = stream_of(wire);

    stream_record_activity(stream);
    if (stream->return_text.length > 0)
        send_text(stream);
    stream_flow_writable(&stream->down);
    if (stream->server)
        stream_end_if_complete(stream);
}

/* The wire still sends an alert: it stays open for lingering_timeout. */
static void client_tls_failed(struct wire *wire)
{
    struct stream *stream = stream_of(wire);

    if (stream->prereading)
        stream->status = 500;
    stream_release_server(stream, false);
    stream_await_close(stream);
}

static void count_in_zone(const struct stream *stream)
{
    const struct status_zone_request ended = {
        .status = stream->status,
        .took_us = u64_sub_sat(stream->worker->loop.clock.monotonic_us, stream->began_us),
        .sent = stream->down.bytes + stream->own_bytes,
        .received = stream->up.bytes + stream->preread.bytes,
    };

    status_zone_count(stream->server_conf->zone, stream->worker->shared_index, &ended);
    status_zone_leave(stream->server_conf->zone, stream->worker->shared_index);
}

static void client_closed(struct wire *wire, enum wire_close_reason how)
{
    struct stream *stream = stream_of(wire);

    stream_release_server(stream, false);
    stream->closed = true;
    if (stream->prereading && how == WIRE_CLOSE_PROTOCOL)
        stream->status = stream->endpoint->proxy_protocol && !stream->header ? 400 : 500;
    stream->transfer = wire_transfer_end(wire, NULL);
    stream_debug_closed(stream);
    stream_modules_ended(stream);
    count_in_zone(stream);
    access_log_lines(stream->worker->access_log, &stream->conf->access_logs, stream, &stream->arena);
    loop_cancel(&stream->worker->loop, &stream->timer);
    stream_free_when_closed(stream);
}

#define EVENTS                                                                                               \
    .opened = client_opened, .received = client_received, .piped = client_piped, .writable = client_writable, \
    .tls_failed = client_tls_failed, .closed = client_closed

static const struct wire_events client_events = {EVENTS};
static const struct wire_events proxy_header_events = {EVENTS, .proxy_header = proxy_header_received};

static void stream_timer_done(struct op *op, int result)
{
    struct stream *stream = container_of(op, struct stream, timer);

    if (stream->closed)
        stream_free_when_closed(stream);
    else
        stream_check_timeout(stream);
}

static struct stream *stream_create(struct worker *worker, const struct endpoint *endpoint,
                                    const union proxy_address *peer)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->worker = worker;
    stream->endpoint = endpoint;
    set_virtual_server(stream, endpoint->servers[0]);
    stream->address = *peer;
    stream->number = __atomic_add_fetch(&worker->shared->connection_number, 1, __ATOMIC_RELAXED);
    stream->timer.done = stream_timer_done;
    stream->up.idle = up_idle;
    stream->down.idle = down_idle;
    stream->prereading = true;
    list_init(&stream->waiter.link);
    list_push(&worker->streams, &stream->link);
    stream->began_ms = stream->last_activity_ms = stream_now_ms(stream);
    stream->began_us = worker->loop.clock.monotonic_us;
    stream->status = 200;
    arena_init(&stream->arena, &worker->arenas, LIMIT_STREAM_MEMORY);
    stream->user_variable_values.arena = &stream->arena;
    stream_debug_accepted(stream);
    return stream;
}

static void stream_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct worker *worker = owner;
    const struct endpoint *endpoint = container_of(listener, struct worker_listener, listener)->endpoint;
    const union proxy_address *address = (const union proxy_address *)(const void *)peer;
    struct stream *stream;

    if (!connection_reserve(worker, address)) {
        loop_close_fd(&worker->loop, fd);
        return;
    }
    stream = stream_create(worker, endpoint, address);
    if (stream &&
        wire_open(&stream->client, &worker->wires, endpoint->proxy_protocol ? &proxy_header_events : &client_events,
                  &stream->server_conf->wire, fd, endpoint->tls) == 0) {
        loop_timer(&worker->loop, &stream->timer, stream->last_activity_ms + stream->conf->preread_timeout_ms);
        return;
    }
    if (!stream) {
        loop_close_fd(&worker->loop, fd);
    } else {
        status_zone_leave(stream->server_conf->zone, worker->shared_index);
        list_remove(&stream->link);
    }
    free(stream);
    connection_unreserve(worker, address);
    connection_log_memory(worker);
}

const struct stream_listening stream_listening = {stream_accept, stream_abort_all, stream_debug_update,
                                                  stream_find_wire, stream_describe};
