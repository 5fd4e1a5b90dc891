/*
 * The path of a request through the server, from top to bottom. Each step performs one action and ends by requesting
 * one event; its comment names the next step. Other files contain the details.
 *
 *      accept -> handshake -> receive -> locate -> serve -> filter -> pump -> finish -> wait -> receive ...
 *
 * The connection's own steps are accept, handshake, receive, pump and wait. request_state is the server's part of
 * one exchange (a request and its response): locate, serve, filter and finish belong to it. HTTP/2 has many
 * exchanges at once, so a connection stores no exchange state. Received bytes are pushed into the session (the HTTP
 * protocol of the connection); bytes to send are pulled from it while the wire has room. Backpressure means that
 * the wire does not pull.
 */
#include "server/connection.h"

#include "log/access_log.h"
#include "server/connection_debug.h"
#include "server/connection_internal.h"
#include "server/error_response.h"
#include "server/internal_redirect.h"
#include "server/route.h"
#include "server/satisfy.h"
#include "server/subrequest.h"
#include "server/trace.h"

#include <errno.h>
#include <stdlib.h>

static const struct wire_events wire_events, proxy_header_events;
static const struct exchange_events exchange_events, traced_exchange_events;

static void connection_timer_done(struct op *op, int result);

/* The supported protocols; the first is used when ALPN selects none. */
static const struct protocol *const protocols[] = {&protocol_http1, &protocol_http2};

static struct connection *connection_of(struct wire *wire)
{
    return container_of(wire, struct connection, wire);
}

/* Opens the wire on an accepted socket. Next: connection_handshake_done or connection_closed. */
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
        connection_log_memory(worker);
        return;
    }
    connection->timer.done = connection_timer_done;
    connection_timeout_start(connection);
    connection_debug_accepted(connection);
}

/* Keeps the PROXY protocol header for $proxy_protocol_addr and realip. */
static void connection_proxy_header_received(struct wire *wire, const struct proxy_header *header)
{
    struct connection *connection = connection_of(wire);

    connection->proxy_header = malloc(sizeof(*header));
    if (connection->proxy_header)
        *connection->proxy_header = *header;
    else
        wire_close(wire, WIRE_CLOSE_ABORT);
}

static const struct protocol *protocol_by_name(struct str alpn)
{
    for (size_t i = 1; i < sizeof protocols / sizeof protocols[0]; i++) {
        if (str_equal(alpn, str_from(protocols[i]->alpn)))
            return protocols[i];
    }
    return protocols[0];
}

/* Opens the session of the connection. Returns false when out of memory: the connection is closed. */
static bool open_session(struct connection *connection, const struct protocol *protocol)
{
    const struct exchange_events *events = connection->debug ? &traced_exchange_events : &exchange_events;
    struct worker *worker = connection->worker;

    connection->session = protocol->open(&connection->location->session, events, connection, &worker->sessions);
    if (!connection->session) {
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
        return false;
    }
    if (protocol == &protocol_http2)
        wire_limit_unsent(&connection->wire, LIMIT_HTTP2_UNSENT);
    connection_debug_opened(connection);
    if (worker->draining)
        connection->session->protocol->signal(connection->session, SESSION_DRAIN);
    return true;
}

/*
 * Called when application bytes can be exchanged (after the TLS handshake, if any): ALPN selects the protocol. Next:
 * connection_receive.
 */
static void connection_handshake_done(struct wire *wire)
{
    struct connection *connection = connection_of(wire);

    if (wire_got_plain_http(wire)) {
        connection_reject_plain_http(connection);
        return;
    }
    if (!open_session(connection, protocol_by_name(wire->tls ? tls_session_alpn(wire->tls) : STR(""))))
        return;
    wire_receive(wire);
    connection_pump(connection);
}

/* The client of a plain connection uses HTTP/2 (exchange_events.preface). Next: switch_to_http2. */
static void connection_preface_received(void *owner)
{
    struct connection *connection = owner;

    connection->http2_preface = true;
}

/* Replaces the HTTP/1 session, which has consumed the start of the preface. Returns the bytes consumed of `rest`. */
static size_t switch_to_http2(struct connection *connection, struct str rest)
{
    struct session *http1 = connection->session;

    connection->http2_preface = false;
    if (!open_session(connection, &protocol_http2)) {
        connection->session = http1;
        return rest.length;
    }
    http1->protocol->close(http1);
    (void)protocol_http2.consume(connection->session, PREFACE_HEAD);
    return str_empty(rest) ? 0 : protocol_http2.consume(connection->session, rest);
}

/* Passes received bytes to the session, which calls request_begun for each complete head. Next: connection_pump. */
static size_t connection_receive(struct wire *wire, struct str bytes)
{
    struct connection *connection = connection_of(wire);
    size_t consumed = 0;

    if (str_empty(bytes))
        connection->session->protocol->signal(connection->session, SESSION_PEER_CLOSED);
    else
        consumed = connection->session->protocol->consume(connection->session, bytes);
    if (connection->http2_preface)
        consumed += switch_to_http2(connection, str_skip(bytes, consumed));
    if (consumed < bytes.length || str_empty(bytes))
        wire_watch(wire); /* the session accepts no more for now: connection_wake resumes reading */
    else
        wire_receive(wire);
    if (consumed == bytes.length)
        list_remove(&connection->woken); /* connection_pump below replaces a wake queued meanwhile */
    connection_pump(connection);
    return consumed;
}

static void request_locate(struct request_state *request);

/*
 * Creates the server's part of an exchange and selects the virtual server by host; its own scope is the location until
 * request_locate. NULL: out of memory; the connection closes.
 */
static struct request_state *begin_request(struct connection *connection, struct exchange *x)
{
    struct request_state *request = request_state_create(x, connection, connection->worker);

    connection->requests++;
    counters_add_request(connection->worker->counters, x->request.version);
    if (!request) {
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
        return NULL;
    }
    route_server(request, connection->endpoint);
    request->location = request->server->root;
    return request;
}

static void request_reject(struct request_state *request, int status);

/* Called for a complete head. Next: request_locate, or request_filter if connection_authorize rejects the client. */
static void request_begun(void *owner, struct exchange *x)
{
    struct request_state *request = begin_request(owner, x);
    int status = request ? connection_authorize(request) : 0;

    if (request)
        request_debug(request, "request received, stream: %u", (unsigned)x->request.stream_id);
    if (status)
        request_reject(request, status);
    else if (request)
        request_locate(request);
}

static void request_serve(struct request_state *request);
static void request_filter(struct request_state *request);

/*
 * Enters the server-level rules, if any, then finds the location by path; also after an internal redirect.
 * Next: request_serve, or request_filter if route_check_location responds.
 */
static void request_locate(struct request_state *request)
{
    route_next(request);
    request_apply_settings(request);
    request_debug(request, "%s \"" STR_FMT "\"", request->in_server_rules ? "rules of the server" : "location",
                  STR_ARG(request->location->pattern));
    satisfy_reset(request);
    request->next_module = 0;
    request_continue(request, route_check_location(request));
}

/*
 * Rejects an invalid head through the virtual server that it names, if any, like any other request. Next:
 * request_filter.
 */
static void request_rejected(void *owner, struct exchange *x, int status)
{
    struct request_state *request = begin_request(owner, x);

    if (request) {
        request_debug(request, "request rejected: status %d, stream: %u", status, (unsigned)x->request.stream_id);
        request_reject(request, status);
    }
}

/* Responds before a location is known, with the settings of the server. */
static void request_reject(struct request_state *request, int status)
{
    request_apply_settings(request);
    request_continue(request, exchange_error_response(request->x, status));
}

/* Continues after the outcome of a step or of a module. */
void request_continue(struct request_state *request, enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_DECLINED:
    case OUTCOME_ALLOWED:
        request_serve(request);
        break;
    case OUTCOME_RESPONDED:
        if (request->parent)
            exchange_respond(request->x); /* unfiltered: the owner handles it */
        else
            request_filter(request);
        break;
    case OUTCOME_INTERNAL_REDIRECT: /* bounded: exchange_internal_redirect counts LIMIT_INTERNAL_REDIRECTS */
        request_locate(request);
        break;
    case OUTCOME_PENDING: /* exchange_resume leads back to request_continue */
        request->pending = true;
        break;
    }
}

/*
 * Calls the modules in order until one responds. Next: request_filter; request_locate after the server-level rules;
 * or none while a module keeps the exchange pending.
 */
static void request_serve(struct request_state *request)
{
    enum outcome outcome = OUTCOME_DECLINED;
    uint64_t left;

    while ((outcome == OUTCOME_DECLINED || outcome == OUTCOME_ALLOWED) &&
           (left = route_modules(request) >> request->next_module) != 0) {
        unsigned index = request->next_module + (unsigned)__builtin_ctzll(left);

        request->next_module = index + 1;
        outcome = satisfy_run_module(request, index);
        request_debug(request, "module %s: %s", module_table[index]->name, connection_debug_outcome(outcome));
    }
    if (outcome == OUTCOME_DECLINED || outcome == OUTCOME_ALLOWED)
        outcome = request->in_server_rules ? OUTCOME_INTERNAL_REDIRECT : satisfy_result(request);
    request_continue(request, outcome);
}

/* Calls the filters from the last module to the first; each may change the head and wrap the body. */
static int call_filters(struct request_state *request)
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

/*
 * Called when a response exists: adds the error page, calls the filters, and passes the response to the session.
 * Next: connection_pump pulls it.
 */
static void request_filter(struct request_state *request)
{
    struct exchange *x = request->x;

    if (x->response.status == STATUS_CLOSE) {
        if (!exchange_abort(x))
            wire_close(&request->connection->wire, WIRE_CLOSE_REFUSED);
        return;
    }
    if (x->response.status >= 300 && !x->response.body && error_response_page(request) == OUTCOME_INTERNAL_REDIRECT) {
        request_locate(request);
        return;
    }
    if (error_response_finish(request) < 0 || internal_redirect_override_headers(request) < 0 ||
        call_filters(request) < 0)
        (void)exchange_error_response(x, 500);
    exchange_respond(x);
}

/*
 * Called when the client half-closed the connection: aborts if the request or a subrequest that it waits for ends
 * with the client. Next: connection_closed.
 */
static void request_client_closed(void *owner, struct exchange *x)
{
    struct connection *connection = owner;
    const struct request_state *request = request_state_of(x);

    if (request && subrequest_ends_with_client(request))
        wire_close(&connection->wire, WIRE_CLOSE_ABORT);
}

static void connection_wait(struct connection *connection);

/* Moves one chunk from the session to the wire. Returns 1, or the result of `produce`. */
static int move_chunk(struct connection *connection, unsigned accept, size_t room)
{
    struct chunk chunk;
    int rc = connection->session->protocol->produce(connection->session, accept, room, &chunk);

    if (rc > 0 && wire_send(&connection->wire, &chunk) < 0)
        return -EIO;
    return rc;
}

/* Moves chunks from the session to the wire while the wire has room. Next: connection_wait. */
void connection_pump(struct connection *connection)
{
    struct wire *wire = &connection->wire;
    unsigned accept = wire_accepts(wire);
    int rc = 1;
    size_t room;

    while (rc > 0 && (room = wire_room(wire)) > 0)
        rc = move_chunk(connection, accept, room);
    if (rc == -ENOMEM)
        connection_log_memory(connection->worker);
    if (rc == 0)
        wire_close(wire, WIRE_CLOSE_ORDERLY); /* the session has ended; queued output is sent first */
    else if (rc < 0 && rc != -EAGAIN) /* a response broke off: the abort shows the client that it is incomplete */
        wire_close(wire, rc == -ECONNRESET ? WIRE_CLOSE_BROKEN : WIRE_CLOSE_ABORT);
    else
        wire_flush(wire);
    connection_wait(connection);
}

/* The session counts bytes that the wire accepted; subtracts those of an aborted response that the wire never sent. */
static void subtract_unsent(struct response *response, uint64_t unsent)
{
    response->bytes_sent -= unsent < response->bytes_sent ? unsent : response->bytes_sent;
    response->body_bytes_sent -= unsent < response->body_bytes_sent ? unsent : response->body_bytes_sent;
}

/*
 * Called when the wire has accepted the whole response, or when it was aborted: modules release their state, and the
 * access log line is written. Afterwards the session frees the arena.
 */
static void request_finish(void *owner, struct exchange *x)
{
    struct connection *connection = owner;
    struct request_state *request = request_state_of(x);
    struct transfer transfer;

    if (request && connection_upgraded(request)) /* the upgraded session logs the request when it ends */
        return;
    transfer = wire_transfer_end(&connection->wire, &x->transfer);
    if (!request)
        return;
    if (x->response.fault.length)
        log_write_fields(connection_log(connection), LOG_ERROR, &(struct log_fields){.connection = connection->number},
                         "the response to \"" STR_FMT "\" was not valid: " STR_FMT, STR_ARG(x->request.line),
                         STR_ARG(x->response.fault));
    if (x->cancelled)
        subtract_unsent(&x->response, wire_unsent(&connection->wire, &x->transfer));
    request->tls_path = transfer.path;
    request->tls_reason = transfer.reason;
    request->zero_copy = transfer.zero_copy;
    connection_debug_finished(request);
    if (request->worker->trace)
        request->worker->trace->finished(request->worker->trace, request);
    request_release(request);
    request_count(request);
    access_log_lines(request->worker->access_log, &request->location->site->access_logs, x, &x->arena);
}

/*
 * Waits for the next event: received bytes (connection_receive), room (connection_pump), a module (request_continue)
 * or the timer. An idle connection holds no buffer and no arena.
 */
static void connection_wait(struct connection *connection)
{
    connection_timeout_update(connection);
}

/* Called when a timeout passes: the session sends 408 or ends. Next: connection_pump, or connection_closed. */
static void connection_timer_done(struct op *op, int result)
{
    struct connection *connection = container_of(op, struct connection, timer);

    if (connection_timeout_passed(connection))
        connection_pump(connection);
}

/* Called when the wire has sent output and has room again. Next: connection_pump. */
static void connection_writable(struct wire *wire)
{
    connection_pump(connection_of(wire));
}

/* Called when the output queue is empty: the next timeout starts now. */
static void connection_output_drained(struct wire *wire)
{
    connection_wait(connection_of(wire));
}

/*
 * Called when a TLS key of the connection reaches its usage limit: the session completes the responses in progress,
 * then ends.
 */
static void connection_drain(struct wire *wire)
{
    struct connection *connection = connection_of(wire);

    if (!connection->session) /* TLS failed */
        return;
    connection->session->protocol->signal(connection->session, SESSION_DRAIN);
    connection_wake(connection);
}

/* Cancels the exchanges still open in the session: request_finish for each. */
static void close_session(struct connection *connection)
{
    if (connection->session)
        connection->session->protocol->close(connection->session);
    connection->session = NULL;
}

/* Called when TLS failed: only the alert is sent, and no response after it. Next: connection_closed. */
static void connection_tls_failed(struct wire *wire)
{
    struct connection *connection = connection_of(wire);

    close_session(connection);
    connection_wait(connection);
}

/* Called when the wire is closed, orderly or by an abort. Releases the connection. */
static void connection_closed(struct wire *wire, enum wire_close_reason end)
{
    struct connection *connection = connection_of(wire);

    connection_debug(connection, "closed (%d)", (int)end);
    close_session(connection);
    connection_timeout_stop(connection);
}

#define EVENTS                                                                                               \
    .opened = connection_handshake_done, .received = connection_receive, .writable = connection_writable,    \
    .drained = connection_output_drained, .ending = connection_drain, .tls_failed = connection_tls_failed,   \
    .closed = connection_closed

static const struct wire_events wire_events = {EVENTS};
static const struct wire_events proxy_header_events = {EVENTS, .proxy_header = connection_proxy_header_received};

#define EXCHANGE_EVENTS                                                                                      \
    .begun = request_begun, .rejected = request_rejected, .finished = request_finish,                         \
    .client_closed = request_client_closed, .wake = connection_wake, .preface = connection_preface_received

static const struct exchange_events exchange_events = {EXCHANGE_EVENTS};
static const struct exchange_events traced_exchange_events = {EXCHANGE_EVENTS, .trace = connection_debug_trace};
