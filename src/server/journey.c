/*
 * THE STORY: the path of a byte through the server, top to bottom. Each step says
 * what is done and leaves to others how; it ends by asking for one thing, and
 * its comment names the step that follows.
 *
 *      accept -> handshake -> receive -> route -> serve -> shape -> pump -> finish -> rest -> receive ...
 *
 * A journey is one connection: accept, handshake, receive, pump and rest are its own. A visit is the server's
 * part of one exchange (a request and its answer): route, serve, shape and finish belong to it, and HTTP/2
 * has many at once. So nothing of an exchange is kept in the journey. Bytes that arrive are pushed into the
 * session (the connection's HTTP); bytes that leave are pulled from it, as long as the wire has room. Not
 * pulling is all the backpressure there is.
 */
#include "server/journey.h"

#include "log/access_log.h"
#include "server/journey_steps.h"
#include "server/refuse.h"
#include "server/reroute.h"
#include "server/route.h"
#include "server/satisfy.h"
#include "server/subrequest.h"
#include "server/trace.h"

#include <errno.h>
#include <stdlib.h>

enum { STATUS_CUT = 444 }; /* `return: 444`: no answer, only an end */

static const struct wire_events wire_events, greeted_events;
static const struct exchange_events exchange_events;

/* What is spoken here; the first where the client says nothing (ALPN). */
static const struct protocol *const protocols[] = {&protocol_http1};

static const char plain_to_tls[] = "HTTP/1.1 400 Bad Request\r\n"
                                   "Content-Type: text/plain; charset=utf-8\r\n"
                                   "Content-Length: 46\r\n"
                                   "Connection: close\r\n"
                                   "\r\n"
                                   "The plain HTTP request was sent to HTTPS port\n";

static struct journey *journey_of(struct wire *wire)
{
    return container_of(wire, struct journey, wire);
}

/* A listener handed us a socket. The wire is opened over it: next is journey_handshake, or journey_closed. */
void journey_accept(void *owner, struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct worker *worker = owner;
    struct journey *journey = journey_take(worker, (const union proxy_address *)(const void *)peer);

    if (!journey) {
        loop_close_fd(&worker->loop, fd);
        return;
    }
    journey->endpoint = container_of(listener, struct worker_listener, listener)->endpoint;
    journey->location = journey->endpoint->servers[0]->root;
    if (wire_open(&journey->wire, &worker->wires,
                  journey->endpoint->proxy_protocol ? &greeted_events : &wire_events,
                  &journey->location->wire, fd, journey->endpoint->tls) < 0) {
        journey_give(journey);
        journey_starved(worker, true);
        return;
    }
    journey_starved(worker, false);
    journey_clock_start(journey);
}

/* A proxy before us has said who its client is: told to whoever asks ($proxy_protocol_addr), and believed by realip. */
static void journey_greeted(struct wire *wire, const struct proxy_header *header)
{
    struct journey *journey = journey_of(wire);

    journey->greeting = malloc(sizeof(*header));
    if (journey->greeting)
        *journey->greeting = *header;
    else
        wire_close(wire, WIRE_END_ABORT);
}

/* The client spoke plain HTTP to an HTTPS port: it is told so in the only words that it understands. */
static void answer_in_plain(struct journey *journey)
{
    struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = {plain_to_tls, sizeof plain_to_tls - 1}};

    log_write(journey->worker->log, LOG_INFO, "*%llu client sent plain HTTP request to HTTPS port",
              (unsigned long long)journey->number);
    if (wire_send(&journey->wire, &chunk) < 0)
        wire_close(&journey->wire, WIRE_END_ABORT);
    else
        wire_close(&journey->wire, WIRE_END_ORDERLY);
}

static const struct protocol *protocol_by_name(struct str alpn)
{
    for (size_t i = 1; i < sizeof protocols / sizeof protocols[0]; i++) {
        if (str_equal(alpn, str_from(protocols[i]->alpn)))
            return protocols[i];
    }
    return protocols[0];
}

/* Application bytes can flow (after TLS, where there is TLS): ALPN picks the protocol. Next: journey_receive.
 */
static void journey_handshake(struct wire *wire)
{
    struct journey *journey = journey_of(wire);
    struct worker *worker = journey->worker;
    const struct protocol *protocol;

    if (wire_spoke_http(wire)) {
        answer_in_plain(journey);
        return;
    }
    protocol = protocol_by_name(wire->tls ? tls_session_alpn(wire->tls) : STR(""));
    journey->session = protocol->open(&journey->location->session, &exchange_events, journey, &worker->arenas,
                                      &worker->loop.clock);
    if (!journey->session) {
        wire_close(wire, WIRE_END_ABORT);
        return;
    }
    if (worker->draining)
        journey->session->protocol->signal(journey->session, SESSION_DRAIN);
    wire_receive(wire);
    journey_pump(journey);
}

/* Bytes arrived: the session gets them, and calls journey_route for each head that is whole. Next:
 * journey_pump. */
static size_t journey_receive(struct wire *wire, struct str bytes)
{
    struct journey *journey = journey_of(wire);
    size_t taken = 0;

    if (str_empty(bytes))
        journey->session->protocol->signal(journey->session, SESSION_PEER_CLOSED);
    else
        taken = journey->session->protocol->consume(journey->session, bytes);
    if (taken < bytes.length || str_empty(bytes))
        wire_watch(wire); /* it has enough: bytes are asked for again when it wakes (journey_wake) */
    else
        wire_receive(wire);
    if (taken == bytes.length)
        list_remove(&journey->awake); /* who woke it meanwhile wants no more than what follows */
    journey_pump(journey);
    return taken;
}

static void journey_locate(struct visit *visit);

/* The server's part of an exchange begins; its host names the server. NULL: out of memory, and the connection
 * ends. */
static struct visit *begin_visit(struct journey *journey, struct exchange *x)
{
    struct visit *visit = visit_open(x, journey, journey->worker);

    journey->requests++;
    journey->worker->counters->requests++;
    if (visit)
        route_server(visit, journey->endpoint);
    else
        wire_close(&journey->wire, WIRE_END_ABORT);
    return visit;
}

static void refuse_visit(struct visit *visit, int status);

/*
 * A request head is whole, and becomes a visit. Next: journey_locate, unless its client may not have what
 * this server has.
 */
static void journey_route(void *owner, struct exchange *x)
{
    struct visit *visit = begin_visit(owner, x);
    int status = visit ? journey_trust(visit) : 0;

    if (status)
        refuse_visit(visit, status);
    else if (visit)
        journey_locate(visit);
}

static void journey_serve(struct visit *visit);
static void journey_shape(struct visit *visit);

/* What a location says of sizes and times holds from here on, until another request is located. */
void journey_settle(struct visit *visit)
{
    struct journey *journey = visit->journey;

    visit->x->settings = &visit->location->session;
    if (visit->parent) /* the connection is its parent's */
        return;
    journey->location = visit->location;
    wire_settle(&journey->wire, &visit->location->wire);
}

/*
 * The server's own rules are asked where it has some, then the path names the location, also after a reroute. Next:
 * journey_serve, unless the location itself refuses.
 */
static void journey_locate(struct visit *visit)
{
    route_next(visit);
    journey_settle(visit);
    satisfy_begin(visit);
    visit->next_module = 0;
    journey_continue(visit, route_guard(visit));
}

/* A head that could not be accepted is refused like any other request, by the server it may have named. Next:
 * journey_shape. */
static void journey_refuse(void *owner, struct exchange *x, int status)
{
    struct visit *visit = begin_visit(owner, x);

    if (visit)
        refuse_visit(visit, status);
}

/* Before it has a location, the server's own scope answers. */
static void refuse_visit(struct visit *visit, int status)
{
    visit->location = visit->server->root;
    journey_settle(visit);
    journey_continue(visit, exchange_refuse(visit->x, status));
}

/* What a step or a module has decided. */
void journey_continue(struct visit *visit, enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_PASS:
    case OUTCOME_ALLOW:
        journey_serve(visit);
        break;
    case OUTCOME_ANSWERED:
        if (visit->parent)
            exchange_answer(visit->x); /* as it is: what comes of it is its asker's */
        else
            journey_shape(visit);
        break;
    case OUTCOME_REROUTE: /* at most LIMIT_REROUTES times: exchange_reroute counts */
        journey_locate(visit);
        break;
    case OUTCOME_PENDING: /* exchange_resume brings it back to journey_continue */
        visit->pending = true;
        break;
    }
}

/* Modules are asked in order until one answers. Next: journey_shape; journey_locate behind the rules of the server; or
 * nothing, while a module keeps the exchange. */
static void journey_serve(struct visit *visit)
{
    enum outcome outcome = OUTCOME_PASS;
    uint64_t left;

    while ((outcome == OUTCOME_PASS || outcome == OUTCOME_ALLOW) &&
           (left = route_modules(visit) >> visit->next_module) != 0) {
        unsigned index = visit->next_module + (unsigned)__builtin_ctzll(left);

        visit->next_module = index + 1;
        outcome = satisfy_ask(visit, index);
    }
    if (outcome == OUTCOME_PASS || outcome == OUTCOME_ALLOW)
        outcome = visit->in_server ? OUTCOME_REROUTE : satisfy_end(visit);
    journey_continue(visit, outcome);
}

/* From the last module to the first, each may edit the head and wrap the body. */
static int shape_all(struct visit *visit)
{
    uint64_t left = visit->location->shaping | visit->shaping;
    int rc = 0;

    while (left != 0 && rc == 0) {
        unsigned index = 63 - (unsigned)__builtin_clzll(left);

        left -= UINT64_C(1) << index;
        rc = module_table[index]->shape(visit->x, visit->location->module_conf[index]);
    }
    return rc;
}

/* There is an answer. A refusal gets its page, modules shape it, the session frames it. Next: journey_pump
 * pulls it out. */
static void journey_shape(struct visit *visit)
{
    struct exchange *x = visit->x;

    if (x->response.status == STATUS_CUT) {
        wire_close(&visit->journey->wire, WIRE_END_REFUSED);
        return;
    }
    if (x->response.status >= 300 && !x->response.body && refuse_page(visit) == OUTCOME_REROUTE) {
        journey_locate(visit);
        return;
    }
    if (refuse_settle(visit) < 0 || reroute_insist(visit) < 0 || shape_all(visit) < 0)
        (void)exchange_refuse(x, 500);
    exchange_answer(x);
}

/* The client ended its stream: work that was asked for with it alone in mind ends, too. Next: journey_closed. */
static void journey_left(void *owner, struct exchange *x)
{
    struct journey *journey = owner;
    const struct visit *visit = visit_of(x);

    if (visit && subrequest_ends_with_client(visit))
        wire_close(&journey->wire, WIRE_END_ABORT);
}

static void journey_rest(struct journey *journey);

/* One chunk from the session to the wire: 1, or what produce said. */
static int move_chunk(struct journey *journey, unsigned accept, size_t room)
{
    struct chunk chunk;
    int rc = journey->session->protocol->produce(journey->session, accept, room, &chunk);

    if (rc > 0 && wire_send(&journey->wire, &chunk) < 0)
        return -EIO;
    return rc;
}

/* While the wire has room, the session is asked for the next chunk, and the wire sends it as it sees fit.
 * Next: journey_rest. */
void journey_pump(struct journey *journey)
{
    struct wire *wire = &journey->wire;
    unsigned accept = wire_accepts(wire);
    int rc = 1;
    size_t room;

    while (rc > 0 && (room = wire_room(wire)) > 0)
        rc = move_chunk(journey, accept, room);
    if (rc == 0)
        wire_close(wire, WIRE_END_ORDERLY); /* nothing more will ever come; what is queued leaves first */
    else if (rc < 0 && rc != -EAGAIN) /* an answer broke off: the client must see that it is not whole */
        wire_close(wire, rc == -ECONNRESET ? WIRE_END_BROKEN : WIRE_END_ABORT);
    else
        wire_flush(wire);
    journey_rest(journey);
}

/* The session counts what the wire took; of an answer that was cut, some had not left. */
static void take_back_unsent(struct response *response, uint64_t unsent)
{
    response->bytes_sent -= unsent < response->bytes_sent ? unsent : response->bytes_sent;
    response->body_bytes_sent -= unsent < response->body_bytes_sent ? unsent : response->body_bytes_sent;
}

/* The response has been taken to its last byte, or was cut off: modules let go, the log gets its line. The
 * session frees the arena next. */
static void journey_finish(void *owner, struct exchange *x)
{
    struct journey *journey = owner;
    struct visit *visit = visit_of(x);
    struct wire_transfer transfer;

    if (visit && journey_succeeded(visit)) /* another protocol goes on: its end is that of the visit */
        return;
    transfer = wire_transfer_end(&journey->wire);
    if (!visit)
        return;
    if (x->response.fault.length)
        log_write(journey->worker->log, LOG_ERROR,
                  "*%llu the answer to \"" STR_FMT "\" could not be sent as it was: " STR_FMT,
                  (unsigned long long)journey->number, STR_ARG(x->request.line), STR_ARG(x->response.fault));
    if (x->cancelled)
        take_back_unsent(&x->response, wire_unsent(&journey->wire));
    visit->tls_path = transfer.path;
    visit->tls_reason = transfer.reason;
    visit->zero_copy = transfer.zero_copy;
    if (visit->worker->trace)
        visit->worker->trace->finished(visit->worker->trace, visit);
    journey_let_go(visit);
    journey_count(visit->worker, visit_status(visit), x->started_us);
    if (visit->location)
        access_log_lines(visit->worker->access_log, &visit->location->site->access_logs, x, &x->arena);
}

/*
 * Nothing can be done now but to wait, for whatever comes first: more bytes (journey_receive), room
 * (journey_pump), a module (journey_continue), or the clock. At rest a connection holds no buffer and no
 * arena.
 */
static void journey_rest(struct journey *journey)
{
    journey_clock_look(journey);
}

/* What had left makes room for more. Next: journey_pump. */
static void journey_room(struct wire *wire)
{
    journey_pump(journey_of(wire));
}

/* All that there was has left: whatever is waited for now begins now. */
static void journey_drained(struct wire *wire)
{
    journey_rest(journey_of(wire));
}

/* The connection may not last (its key is worn out): answers under way are finished, then the session has
 * nothing more to say. */
static void journey_ending(struct wire *wire)
{
    struct journey *journey = journey_of(wire);

    journey->session->protocol->signal(journey->session, SESSION_DRAIN);
    journey_wake(journey);
}

/* The wire is closed, in order or not. What was still open in the session is cut (journey_finish for each),
 * and the journey ends. */
static void journey_closed(struct wire *wire, enum wire_end end)
{
    struct journey *journey = journey_of(wire);

    log_write(journey->worker->log, LOG_DEBUG, "*%llu closed (%d)", (unsigned long long)journey->number,
              (int)end);
    if (journey->session)
        journey->session->protocol->close(journey->session);
    journey->session = NULL;
    journey_clock_stop(journey);
}

#define EVENTS                                                                                               \
    .opened = journey_handshake, .received = journey_receive, .room = journey_room,                          \
    .drained = journey_drained, .ending = journey_ending, .closed = journey_closed

static const struct wire_events wire_events = {EVENTS};
static const struct wire_events greeted_events = {EVENTS, .greeted = journey_greeted};

static const struct exchange_events exchange_events = {
    .begun = journey_route,
    .refused = journey_refuse,
    .finished = journey_finish,
    .left = journey_left,
    .wake = journey_wake,
};
