/*
 * One attempt: selects a server, connects, and sends the request as the wire and the client permit. If that fails
 * before a response arrived, another server may be tried.
 */
#include "attempt.h"

#include "base/saturate.h"
#include "connection.h"
#include "modules/gateway/h2/shared_connection.h"
#include "request_body.h"
#include "response_body.h"

#include <errno.h>

static uint64_t attempt_now_us(const struct gateway_request *p)
{
    return exchange_clock(p->x)->monotonic_us;
}

static bool is_idempotent(enum method method)
{
    return method != METHOD_POST && method != METHOD_PATCH && method != METHOD_OTHER;
}

/* Consumed bytes of the client's body cannot be sent again. Non-idempotent requests are not sent twice. */
static bool may_retry(const struct gateway_request *p)
{
    if (gateway_body_is_consumed(p))
        return false;
    return p->stage == GATEWAY_CONNECTING || p->upstream.unprocessed ||
           is_idempotent(p->sent.method) || (p->conf->next & NEXT_NON_IDEMPOTENT);
}

static bool has_tries_left(const struct gateway_request *p)
{
    uint64_t spent_ms = u64_sub_sat(exchange_clock(p->x)->monotonic_ms, p->upstream.begun_ms);

    return (p->conf->next_tries == 0 || p->upstream.tries < p->conf->next_tries) &&
           (p->conf->next_timeout_ms == 0 || spent_ms < p->conf->next_timeout_ms);
}

static int connect_next(struct gateway_request *p);

/* Tries again, or fails if no server is left. */
static void retry_request(struct gateway_request *p)
{
    int status = connect_next(p);

    if (status)
        gateway_fail(p, status);
}

bool gateway_may_try_next(const struct gateway_request *p, unsigned reason)
{
    return (p->conf->next & reason) && !(p->conf->next & NEXT_OFF) && may_retry(p) && has_tries_left(p) &&
           upstream_has_another(p->upstream.group, &p->upstream.choice);
}

void gateway_try_next(struct gateway_request *p, unsigned reason, int status)
{
    bool another = gateway_may_try_next(p, reason);

    gateway_discard(p);
    if (another)
        retry_request(p);
    else
        gateway_fail(p, status);
}

/*
 * True if the server closed an idle connection while the request was being sent: the server did not process the
 * request, and this is not counted as a failure.
 */
static bool was_stale(const struct gateway_request *p)
{
    return p->upstream.reuse == REUSE_DONE && !gateway_has_response(p) && p->stage == GATEWAY_SENDING &&
           !gateway_body_is_consumed(p) && is_idempotent(p->sent.method);
}

/* Tries again without counting the attempt. */
static void retry_uncounted(struct gateway_request *p)
{
    gateway_discard(p);
    p->upstream.choice.tries = 0;
    p->upstream.tries--;
    retry_request(p);
}

/* The head was passed on: only an abort is possible. Otherwise another server may be tried. */
static void attempt_failed(struct gateway_request *p, int error)
{
    bool late = error == -ETIMEDOUT;

    if (p->stage == GATEWAY_RESPONDING) {
        gateway_body_fail(p, error);
        return;
    }
    if (!upstream_is_local_error(error))
        upstream_peer_failed(p->upstream.peer);
    gateway_try_next(p, late ? NEXT_TIMEOUT : NEXT_ERROR, late ? 504 : 502);
}

void gateway_unprocessed(struct gateway_request *p)
{
    if (!gateway_has_response(p) && !gateway_body_is_consumed(p) && p->upstream.refusals < LIMIT_H2_UPSTREAM_REFUSALS) {
        p->upstream.refusals++;
        retry_uncounted(p);
        return;
    }
    p->upstream.unprocessed = !gateway_has_response(p);
    gateway_reset(p, "upstream refused the stream");
}

void gateway_reset(struct gateway_request *p, const char *what)
{
    gateway_log(p, LOG_ERROR, what, 0);
    attempt_failed(p, -ECONNRESET);
}

void gateway_connection_failed(struct gateway_request *p, int error)
{
    bool late = error == -ETIMEDOUT;

    if (!late && was_stale(p)) {
        p->upstream.reuse = REUSE_REFUSED;
        retry_uncounted(p);
        return;
    }
    gateway_log(p, LOG_ERROR,
                late                             ? "upstream timed out"
                : error == -EPROTO               ? "TLS failed"
                : p->stage == GATEWAY_CONNECTING ? "connect() failed"
                                                 : "upstream prematurely closed connection",
                error);
    attempt_failed(p, error);
}

void gateway_lost(void *user, int error)
{
    struct gateway_request *p = user;

    p->attempt->total_us = u64_sub_sat(attempt_now_us(p), p->attempt->begun_us);
    p->upstream.connection = NULL;
    gateway_connection_failed(p, error);
}

void gateway_request_failed(struct gateway_request *p, int error)
{
    if (error == -ECONNRESET && !p->conf->ignore_client_abort) /* the client disconnected */
        return;
    if (p->stage == GATEWAY_RESPONDING) {
        gateway_body_fail(p, error);
        return;
    }
    gateway_log(p, LOG_INFO, "reading the client's request body failed", error);
    exchange_drop_body(p->x);
    gateway_fail(p, exchange_body_status(error));
}

/* Sends the bytes of the request that have arrived from the client, as far as the wire has room. */
static void send_request(struct gateway_request *p)
{
    struct wire *wire = &p->upstream.connection->wire;
    struct chunk chunk;
    int result = 1;
    size_t room;

    while (result == 1 && (room = wire_room(wire)) > 0) {
        result = p->conf->gateway->next(p, room, &chunk);
        if (result == 1 && wire_send(wire, &chunk) < 0) {
            gateway_connection_failed(p, -ENOMEM);
            return;
        }
        if (result == 1)
            p->attempt->bytes_sent += chunk.bytes.length;
    }
    if (result < 0 && result != -EAGAIN) {
        gateway_request_failed(p, result);
        return;
    }
    p->sent.state = result == 0 ? SENDING_DONE : result == 1 ? SENDING_BLOCKED : SENDING_WAITS;
    if (result == 0 && p->kind == RESPONSE_TUNNEL) /* the client has sent END_STREAM */
        wire_finish(wire);
    else
        wire_flush(wire);
    gateway_set_timeout(p);
}

void gateway_writable(void *user)
{
    struct gateway_request *p = user;

    if (p->sent.state != SENDING_DONE)
        send_request(p);
    else
        gateway_set_timeout(p);
}

static void start_request(struct gateway_request *p)
{
    p->stage = GATEWAY_SENDING;
    p->sent.request = (struct h1_request){.pending = p->sent.head,
                                     .arena = &p->x->arena,
                                     .trailers = &p->x->request.trailers,
                                     .chunked = p->sent.content_length == BODY_LENGTH_UNKNOWN &&
                                                !p->conf->gateway->streams};
    if (p->sent.content_length > 0)
        p->sent.request.body = gateway_request_body(p);
    if (p->upstream.stream) {
        p->conf->gateway->streams->begin(p);
        return;
    }
    if (p->conf->gateway->begin(p) < 0) {
        gateway_connection_failed(p, -ENOMEM);
        return;
    }
    wire_receive(&p->upstream.connection->wire);
    send_request(p);
}

void gateway_opened(void *user)
{
    struct gateway_request *p = user;

    p->attempt->connect_us = u64_sub_sat(attempt_now_us(p), p->attempt->begun_us);
    start_request(p);
}

static struct gateway_attempt *add_attempt(struct gateway_request *p, struct str server)
{
    struct gateway_attempt *attempt = arena_zalloc(&p->x->arena, 1, sizeof(*attempt));
    struct gateway_attempt **last = &p->attempts;

    if (!attempt)
        return NULL;
    attempt->begun_us = attempt_now_us(p);
    attempt->connect_us = attempt->header_us = attempt->total_us = UINT64_MAX;
    attempt->server = arena_copy(&p->x->arena, server);
    while (*last)
        last = &(*last)->next;
    *last = p->attempt = attempt;
    return attempt->server.data ? attempt : NULL;
}

/* A connection of its own, or a stream. 0 or -errno. */
static int open_connection(struct gateway_request *p)
{
    int error;

    p->upstream.unprocessed = false;
    if (p->conf->gateway->streams)
        return p->conf->gateway->streams->connect(p);
    error = upstream_connect(p->upstream.peer, &p->upstream.transport, p->events, p, p->conf->connect_timeout_ms,
                             p->upstream.reuse == REUSE_REFUSED, &p->upstream.connection);
    if (error < 0)
        p->upstream.connection = NULL;
    return error;
}

static bool is_reused(const struct gateway_request *p)
{
    return p->upstream.stream ? p->upstream.stream->reused : upstream_reused(p->upstream.connection);
}

static bool is_open(const struct gateway_request *p)
{
    return p->upstream.stream ? p->upstream.stream->ready : p->upstream.connection->state == UPSTREAM_OPEN;
}

/* 0, a status, or -EAGAIN: connecting failed, try another server. */
static int connect_to_peer(struct gateway_request *p)
{
    int error;

    p->stage = GATEWAY_CONNECTING;
    p->sent.state = SENDING_WAITS;
    p->upstream.tries++;
    if (!add_attempt(p, str_from(p->upstream.peer->name)))
        return 500;
    error = open_connection(p);
    if (error < 0) {
        p->attempt->total_us = 0;
        if (error == -EBUSY) { /* another worker took the last connection: no server was contacted */
            p->upstream.tries--;
            return -EAGAIN;
        }
        if (error == -EMFILE || error == -ENFILE) /* not a failure of the server */
            return exchange_out_of_descriptors(p->x);
        gateway_log(p, LOG_ERROR, "connect() failed", error);
        if (!upstream_is_local_error(error))
            upstream_peer_failed(p->upstream.peer);
        return has_tries_left(p) && !(p->conf->next & NEXT_OFF) ? -EAGAIN : 502;
    }
    if (p->upstream.reuse != REUSE_REFUSED)
        p->upstream.reuse = is_reused(p) ? REUSE_DONE : REUSE_POSSIBLE;
    if (is_open(p)) {
        p->attempt->connect_us = 0;
        start_request(p);
    }
    return 0;
}

static void name_resolved(struct upstream_waiter *waiter)
{
    struct gateway_request *p = container_of(waiter, struct gateway_request, upstream.waiter);

    retry_request(p);
}

static int fail_without_upstream(struct gateway_request *p, int error)
{
    if (error == -EAGAIN) {
        p->stage = GATEWAY_CONNECTING;
        p->upstream.waiter.resolved = name_resolved;
        upstream_wait(p->upstream.group, &p->upstream.waiter);
        return 0;
    }
    if (p->upstream.tries == 0) {
        if (!add_attempt(p, p->target.authority)) /* without a server, $upstream_addr is the group or the host */
            return 500;
        p->attempt->total_us = 0;
    }
    if (p->upstream.tries == 0 || error == -ENOENT)
        gateway_log(p, LOG_ERROR, error == -ENOENT ? "host not found" : "no live upstreams", 0);
    return 502;
}

static int connect_next(struct gateway_request *p)
{
    int error;

    p->stage = GATEWAY_CONNECTING;
    do {
        p->upstream.peer = upstream_choose(p->upstream.group, &p->upstream.choice, &error);
        if (!p->upstream.peer)
            return fail_without_upstream(p, error);
        error = connect_to_peer(p);
    } while (error == -EAGAIN);
    return error;
}

/* The length of a buffered body is known: it is chunked only if there are trailers. */
static uint64_t content_length(const struct gateway_request *p)
{
    const struct request *request = &p->x->request;

    bool chunks = request->trailers.count > 0 && !p->conf->gateway->needs_content_length;

    if (p->sent.replacement_body.data)
        return p->sent.replacement_body.length;
    return p->sent.buffered && p->sent.buffered->whole && !chunks ? spool_length(p->sent.buffered->spool)
                                                                  : request->content_length;
}

int gateway_begin(struct gateway_request *p)
{
    struct str fault = STR("");
    int error;

    p->sent.content_length = content_length(p);
    error = p->conf->gateway->write_head(p, &fault);
    if (error == 0 && fault.length)
        exchange_log_error(p->x, LOG_ERROR, "the upstream request was corrected: " STR_FMT, STR_ARG(fault));
    if (error == -EINVAL)
        exchange_log_error(p->x, LOG_ERROR, "the upstream request cannot be sent: " STR_FMT,
                           STR_ARG(fault));
    if (error < 0)
        return error == -ENOENT ? 404 : 500;
    return connect_next(p);
}

void gateway_retry(struct gateway_request *p)
{
    int status;

    gateway_discard(p);
    p->upstream.choice.tries = 0;
    status = gateway_begin(p);
    if (status)
        gateway_fail(p, status);
}
