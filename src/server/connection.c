/*
 * THE STORY: the path of a byte through the server, top to bottom. Each step says
 * what is done and leaves to others how; it ends by asking for one thing, and
 * its comment names the step that follows.
 *
 *      accept -> handshake -> receive -> route -> serve -> shape -> pump -> finish -> wait -> receive ...
 *
 * A connection's own steps are accept, handshake, receive, pump and wait. request_state is the server's
 * part of one exchange (a request and its answer): route, serve, shape and finish belong to it, and HTTP/2
 * has many at once. So nothing of an exchange is kept in the connection. Bytes that arrive are pushed into the
 * session (the connection's HTTP); bytes that leave are pulled from it, as long as the wire has room. Not
 * pulling is all the backpressure there is.
 */
#include "server/connection.h"

#include "log/access_log.h"
#include "server/connection_internal.h"
#include "server/error_response.h"
#include "server/internal_redirect.h"
#include "server/route.h"
#include "server/satisfy.h"
#include "server/subrequest.h"
#include "server/trace.h"

#include <errno.h>
#include <stdlib.h>

enum { STATUS_CUT = 444 }; /* `return: 444`: no answer, only an end */

static const struct wire_events wire_events, proxy_header_events;
static const struct exchange_events exchange_events;

/* What is spoken here; the first where the client says nothing (ALPN). */
static const struct protocol *const protocols[] = {&protocol_http1};

static const char plain_to_tls[] = "HTTP/1.1 400 Bad Request\r\n"
                                   "Content-Type: text/plain; charset=utf-8\r\n"
                                   "Content-Length: 46\r\n"
                                   "Connection: close\r\n"
                                   "\r\n"
                                   "The plain HTTP request was sent to HTTPS port\n";

static struct connection *connection_of(struct wire *wire)
{
    return container_of(wire, struct connection, wire);
}

/* A listener handed us a socket. The wire is opened over it: next is connection_handshake_done, or connection_closed.
 * */
void connection_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct worker *worker = owner;
    struct connection *connection = connection_create(worker, (const union proxy_address *)(const void *)peer);

    if (!connection) {
        loop_close_fd(&worker->loop, fd);
        return;
    }
    connection->endpoint = container_of(listener, struct worker_listener, listener)->endpoint;
    connection->location = connection->endpoint->servers[0]->root;
    if (wire_open(&connection->wire, &worker->wires,
                  connection->endpoint->proxy_protocol ? &proxy_header_events : &wire_events,
                  &connection->location->wire, fd, connection->endpoint->tls) < 0) {
        connection_destroy(connection);
        connection_memory_missing(worker, true);
        return;
    }
    connection_memory_missing(worker, false);
    connection_timeout_start(connection);
}

/* A proxy before us has said who its client is: told to whoever asks ($proxy_protocol_addr), and believed by realip. */
static void connection_proxy_header_received(struct wire *wire, const struct proxy_header *header)
{
    struct connection *connection = connection_of(wire);

    connection->proxy_header = malloc(sizeof(*header));
    if (connection->proxy_header)
        *connection->proxy_header = *header;
    else
        wire_close(wire, WIRE_CLOSE_ABORT);
}

/* The client spoke plain HTTP to an HTTPS port: it is told so in the only words that it understands. */
static void send_plain_http_error(struct connection *connection)
{
    struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = {plain_to_tls, sizeof plain_to_tls - 1}};

    log_write(connection->worker->log, LOG_INFO, "*%llu client sent plain HTTP request to HTTPS port",
              (unsigned long long)connection->number);
    if (wire_send(&connection->wire, &chunk) < 0)
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
    else
        wire_close(&connection->wire, WIRE_CLOSE_ORDERLY);
}

static const struct protocol *protocol_by_name(struct str alpn)
{
    for (size_t i = 1; i < sizeof protocols / sizeof protocols[0]; i++) {
        if (str_equal(alpn, str_from(protocols[i]->alpn)))
            return protocols[i];
    }
    return protocols[0];
}

/* Application bytes can flow (after TLS, where there is TLS): ALPN picks the protocol. Next: connection_receive.
 */
static void connection_handshake_done(struct wire *wire)
{
    struct connection *connection = connection_of(wire);
    struct worker *worker = connection->worker;
    const struct protocol *protocol;

    if (wire_got_plain_http(wire)) {
        send_plain_http_error(connection);
        return;
    }
    protocol = protocol_by_name(wire->tls ? tls_session_alpn(wire->tls) : STR(""));
    connection->session = protocol->open(&connection->location->session, &exchange_events, connection, &worker->arenas,
                                         &worker->loop.clock);
    if (!connection->session) {
        wire_close(wire, WIRE_CLOSE_ABORT);
        return;
    }
    if (worker->draining)
        connection->session->protocol->signal(connection->session, SESSION_DRAIN);
    wire_receive(wire);
    connection_pump(connection);
}

/* Bytes arrived: the session gets them, and calls request_begun for each head that is whole. Next:
 * connection_pump. */
static size_t connection_receive(struct wire *wire, struct str bytes)
{
    struct connection *connection = connection_of(wire);
    size_t taken = 0;

    if (str_empty(bytes))
        connection->session->protocol->signal(connection->session, SESSION_PEER_CLOSED);
    else
        taken = connection->session->protocol->consume(connection->session, bytes);
    if (taken < bytes.length || str_empty(bytes))
        wire_watch(wire); /* it has enough: bytes are asked for again when it wakes (connection_wake) */
    else
        wire_receive(wire);
    if (taken == bytes.length)
        list_remove(&connection->awake); /* who woke it meanwhile wants no more than what follows */
    connection_pump(connection);
    return taken;
}

static void request_locate(struct request_state *request);

/* The server's part of an exchange begins; its host names the server. NULL: out of memory, and the connection
 * ends. */
static struct request_state *begin_request(struct connection *connection, struct exchange *x)
{
    struct request_state *request = request_state_create(x, connection, connection->worker);

    connection->requests++;
    connection->worker->counters->requests++;
    if (request)
        route_server(request, connection->endpoint);
    else
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
    return request;
}

static void request_refuse(struct request_state *request, int status);

/*
 * A request head is whole, and becomes a request. Next: request_locate, unless its client may not have what
 * this server has.
 */
static void request_begun(void *owner, struct exchange *x)
{
    struct request_state *request = begin_request(owner, x);
    int status = request ? connection_authorize(request) : 0;

    if (status)
        request_refuse(request, status);
    else if (request)
        request_locate(request);
}

static void request_serve(struct request_state *request);
static void request_filter(struct request_state *request);

/* What a location says of sizes and times holds from here on, until another request is located. */
void request_apply_settings(struct request_state *request)
{
    struct connection *connection = request->connection;

    request->x->settings = &request->location->session;
    if (request->parent) /* the connection is its parent's */
        return;
    connection->location = request->location;
    wire_apply_settings(&connection->wire, &request->location->wire);
}

/*
 * The server's own rules are asked where it has some, then the path names the location, also after an internal
 * redirect. Next:
 * request_serve, unless the location itself refuses.
 */
static void request_locate(struct request_state *request)
{
    route_next(request);
    request_apply_settings(request);
    satisfy_reset(request);
    request->next_module = 0;
    request_continue(request, route_guard(request));
}

/* A head that could not be accepted is refused like any other request, by the server it may have named. Next:
 * request_filter. */
static void request_refused(void *owner, struct exchange *x, int status)
{
    struct request_state *request = begin_request(owner, x);

    if (request)
        request_refuse(request, status);
}

/* Before it has a location, the server's own scope answers. */
static void request_refuse(struct request_state *request, int status)
{
    request->location = request->server->root;
    request_apply_settings(request);
    request_continue(request, exchange_error_response(request->x, status));
}

/* What a step or a module has decided. */
void request_continue(struct request_state *request, enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_PASS:
    case OUTCOME_ALLOWED:
        request_serve(request);
        break;
    case OUTCOME_ANSWERED:
        if (request->parent)
            exchange_answer(request->x); /* as it is: what comes of it is its owner's */
        else
            request_filter(request);
        break;
    case OUTCOME_INTERNAL_REDIRECT: /* at most LIMIT_INTERNAL_REDIRECTS times: exchange_internal_redirect counts */
        request_locate(request);
        break;
    case OUTCOME_PENDING: /* exchange_resume brings it back to request_continue */
        request->pending = true;
        break;
    }
}

/* Modules are asked in order until one answers. Next: request_filter; request_locate behind the rules of the server; or
 * nothing, while a module keeps the exchange. */
static void request_serve(struct request_state *request)
{
    enum outcome outcome = OUTCOME_PASS;
    uint64_t left;

    while ((outcome == OUTCOME_PASS || outcome == OUTCOME_ALLOWED) &&
           (left = route_modules(request) >> request->next_module) != 0) {
        unsigned index = request->next_module + (unsigned)__builtin_ctzll(left);

        request->next_module = index + 1;
        outcome = satisfy_run_module(request, index);
    }
    if (outcome == OUTCOME_PASS || outcome == OUTCOME_ALLOWED)
        outcome = request->in_server ? OUTCOME_INTERNAL_REDIRECT : satisfy_result(request);
    request_continue(request, outcome);
}

/* From the last module to the first, each may edit the head and wrap the body. */
static int filter_all(struct request_state *request)
{
    uint64_t left = request->location->filtering | request->filtering;
    int rc = 0;

    while (left != 0 && rc == 0) {
        unsigned index = 63 - (unsigned)__builtin_clzll(left);

        left -= UINT64_C(1) << index;
        rc = module_table[index]->filter(request->x, request->location->module_conf[index]);
    }
    return rc;
}

/* There is an answer. A refusal gets its page, modules shape it, the session frames it. Next: connection_pump
 * pulls it out. */
static void request_filter(struct request_state *request)
{
    struct exchange *x = request->x;

    if (x->response.status == STATUS_CUT) {
        wire_close(&request->connection->wire, WIRE_CLOSE_REFUSED);
        return;
    }
    if (x->response.status >= 300 && !x->response.body && error_response_page(request) == OUTCOME_INTERNAL_REDIRECT) {
        request_locate(request);
        return;
    }
    if (error_response_finish(request) < 0 || internal_redirect_set_headers(request) < 0 || filter_all(request) < 0)
        (void)exchange_error_response(x, 500);
    exchange_answer(x);
}

/* The client ended its stream: work that was asked for with it alone in mind ends, too. Next: connection_closed. */
static void request_client_closed(void *owner, struct exchange *x)
{
    struct connection *connection = owner;
    const struct request_state *request = request_state_of(x);

    if (request && subrequest_ends_with_client(request))
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
}

static void connection_wait(struct connection *connection);

/* One chunk from the session to the wire: 1, or what produce said. */
static int move_chunk(struct connection *connection, unsigned accept, size_t room)
{
    struct chunk chunk;
    int rc = connection->session->protocol->produce(connection->session, accept, room, &chunk);

    if (rc > 0 && wire_send(&connection->wire, &chunk) < 0)
        return -EIO;
    return rc;
}

/* While the wire has room, the session is asked for the next chunk, and the wire sends it as it sees fit.
 * Next: connection_wait. */
void connection_pump(struct connection *connection)
{
    struct wire *wire = &connection->wire;
    unsigned accept = wire_accepts(wire);
    int rc = 1;
    size_t room;

    while (rc > 0 && (room = wire_room(wire)) > 0)
        rc = move_chunk(connection, accept, room);
    if (rc == 0)
        wire_close(wire, WIRE_CLOSE_ORDERLY); /* nothing more will ever come; what is queued leaves first */
    else if (rc < 0 && rc != -EAGAIN) /* an answer broke off: the client must see that it is not whole */
        wire_close(wire, rc == -ECONNRESET ? WIRE_CLOSE_BROKEN : WIRE_CLOSE_ABORT);
    else
        wire_flush(wire);
    connection_wait(connection);
}

/* The session counts what the wire took; of an answer that was cut, some had not left. */
static void take_back_unsent(struct response *response, uint64_t unsent)
{
    response->bytes_sent -= unsent < response->bytes_sent ? unsent : response->bytes_sent;
    response->body_bytes_sent -= unsent < response->body_bytes_sent ? unsent : response->body_bytes_sent;
}

/* The response has been taken to its last byte, or was cut off: modules let go, the log gets its line. The
 * session frees the arena next. */
static void request_finish(void *owner, struct exchange *x)
{
    struct connection *connection = owner;
    struct request_state *request = request_state_of(x);
    struct wire_transfer transfer;

    if (request && connection_upgraded(request)) /* another protocol goes on: its end is that of the request */
        return;
    transfer = wire_transfer_end(&connection->wire);
    if (!request)
        return;
    if (x->response.fault.length)
        log_write(connection->worker->log, LOG_ERROR,
                  "*%llu the answer to \"" STR_FMT "\" could not be sent as it was: " STR_FMT,
                  (unsigned long long)connection->number, STR_ARG(x->request.line), STR_ARG(x->response.fault));
    if (x->cancelled)
        take_back_unsent(&x->response, wire_unsent(&connection->wire));
    request->tls_path = transfer.path;
    request->tls_reason = transfer.reason;
    request->zero_copy = transfer.zero_copy;
    if (request->worker->trace)
        request->worker->trace->finished(request->worker->trace, request);
    request_release(request);
    request_count(request->worker, request_status(request), x->started_us);
    if (request->location)
        access_log_lines(request->worker->access_log, &request->location->site->access_logs, x, &x->arena);
}

/*
 * Nothing can be done now but to wait, for whatever comes first: more bytes (connection_receive), room
 * (connection_pump), a module (request_continue), or the clock. At rest a connection holds no buffer and no
 * arena.
 */
static void connection_wait(struct connection *connection)
{
    connection_timeout_update(connection);
}

/* What had left makes room for more. Next: connection_pump. */
static void connection_output_room(struct wire *wire)
{
    connection_pump(connection_of(wire));
}

/* All that there was has left: whatever is waited for now begins now. */
static void connection_output_drained(struct wire *wire)
{
    connection_wait(connection_of(wire));
}

/* The connection may not last (its key is worn out): answers under way are finished, then the session has
 * nothing more to say. */
static void connection_drain(struct wire *wire)
{
    struct connection *connection = connection_of(wire);

    connection->session->protocol->signal(connection->session, SESSION_DRAIN);
    connection_wake(connection);
}

/* The wire is closed, in order or not. What was still open in the session is cut (request_finish for each),
 * and the connection ends. */
static void connection_closed(struct wire *wire, enum wire_close_reason end)
{
    struct connection *connection = connection_of(wire);

    log_write(connection->worker->log, LOG_DEBUG, "*%llu closed (%d)", (unsigned long long)connection->number,
              (int)end);
    if (connection->session)
        connection->session->protocol->close(connection->session);
    connection->session = NULL;
    connection_timeout_stop(connection);
}

#define EVENTS                                                                                               \
    .opened = connection_handshake_done, .received = connection_receive, .room = connection_output_room,     \
    .drained = connection_output_drained, .ending = connection_drain, .closed = connection_closed

static const struct wire_events wire_events = {EVENTS};
static const struct wire_events proxy_header_events = {EVENTS, .proxy_header = connection_proxy_header_received};

static const struct exchange_events exchange_events = {
    .begun = request_begun,
    .refused = request_refused,
    .finished = request_finish,
    .left = request_client_closed,
    .wake = connection_wake,
};
