/*
 * HTTP/1 on one connection: requests are processed one after the other. Parsing, framing and writing are in other
 * files; this file contains only the sequence.
 */
#include "http/h1_session.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>

static struct h1_session *h1_of(struct session *session)
{
    return container_of(session, struct h1_session, session);
}

static struct session *session_open(const struct session_settings *settings,
                                    const struct exchange_events *events, void *owner,
                                    const struct session_shared *shared)
{
    struct h1_session *h1 = malloc(sizeof(*h1));

    if (!h1)
        return NULL;
    *h1 = (struct h1_session){
        .session = {&protocol_http1},
        .settings = settings,
        .events = events,
        .owner = owner,
        .pool = shared->arenas,
        .clock = shared->clock,
        .keepalive = true,
        .wake_pending = true,
    };
    return &h1->session;
}

/* No further request or response. */
static void session_end(struct h1_session *h1)
{
    h1->over = true;
    h1->input_closed = true;
    buffer_finish(&h1->head);
    h1_session_wake(h1);
}

static struct h1_exchange *exchange_open(struct h1_session *h1)
{
    struct h1_exchange *h = container_of(exchange_create(h1->pool, sizeof(*h)), struct h1_exchange, x);

    if (!h)
        return NULL;
    h->session = h1;
    h->x.session = h1;
    h->x.ops = &h1_exchange_ops;
    h->x.settings = h1->settings;
    h->x.started_us = h1->begun_us;
    h->x.request.version = HTTP_1_1;
    h1->current = h;
    h1->requests++;
    return h;
}

/* The start of the next request after a malformed head is unknown: the connection closes after this response. */
static void reject_head(struct h1_exchange *h, int status)
{
    struct h1_session *h1 = h->session;

    h->body_whole = true;
    h->x.response.close_after = true;
    h1->keepalive = false;
    h1->input_closed = true;
    h1->events->rejected(h1->owner, &h->x, status);
}

static void reject_partial_head(struct h1_session *h1, struct str bytes, int status)
{
    struct h1_exchange *h = exchange_open(h1);
    size_t kept = h1_longest_line(h1->settings);
    struct str remains;

    if (!h) {
        h1_session_break(h1, -ENOMEM);
        return;
    }
    h->x.request.bytes = bytes.length;
    remains =
        arena_copy(&h->x.arena, str_slice(bytes, 0, kept < LIMIT_REJECTED_HEAD ? kept : LIMIT_REJECTED_HEAD));
    if (remains.data)
        h1_parse_rejected_head(remains, &h->x.request);
    reject_head(h, status);
}

static void begin_exchange(struct h1_session *h1, struct str bytes)
{
    struct h1_exchange *h = exchange_open(h1);
    struct str head;
    int status;

    if (!h) {
        h1_session_break(h1, -ENOMEM);
        return;
    }
    head = arena_copy(&h->x.arena, bytes);
    status =
        head.data ? h1_parse_head(head, h1->settings, &h->x.arena, &h->x.request, &h->keepalive_requested) : 500;
    if (!status && h1_body_open(h) != 0)
        status = 500;
    if (status)
        reject_head(h, status);
    else
        h1->events->begun(h1->owner, &h->x);
}

/* HTTP/2 with prior knowledge (RFC 9113 3.3): the first bytes of the connection are the preface. */
static bool begins_http2(const struct h1_session *h1, struct str head)
{
    return h1->requests == 0 && h1->settings->http2.enabled && h1->events->preface && str_equal(head, PREFACE_HEAD);
}

/* A head that arrives complete is parsed in place; only a partial one is collected. */
static size_t consume_head(struct h1_session *h1, struct str bytes)
{
    struct buffer gathered = h1->head;
    size_t before = gathered.length;
    struct h1_scan scan;
    int end;

    if (before == 0) {
        h1->begun_us = h1->clock->monotonic_us;
    } else if (buffer_append(&h1->head, bytes) != 0) {
        h1_session_break(h1, -ENOMEM);
        return bytes.length;
    }
    gathered = h1->head;
    end = h1_head_end(&h1->scan, h1->settings, before ? buffer_str(&gathered) : bytes);
    if (end == 0) {
        if (before == 0 && buffer_append(&h1->head, bytes) != 0)
            h1_session_break(h1, -ENOMEM);
        return bytes.length;
    }
    /* The session is reset before the events are called: they may re-enter it. */
    scan = h1->scan;
    h1->scan = (struct h1_scan){0};
    h1->head = (struct buffer){0};
    if (before)
        bytes = buffer_str(&gathered);
    if (end < 0) {
        reject_partial_head(h1, str_skip(bytes, scan.start), -end);
    } else if (begins_http2(h1, str_slice(bytes, scan.start, (size_t)end))) {
        h1->http2_preface_received = h1->input_closed = true;
        h1->events->preface(h1->owner);
    } else {
        begin_exchange(h1, str_slice(bytes, scan.start, (size_t)end));
    }
    buffer_finish(&gathered);
    return size_sub_sat(end < 0 ? bytes.length : (size_t)end, before);
}

static void exchange_free(struct h1_exchange *h)
{
    h->session->current = NULL;
    h1_body_finish(h);
    buffer_finish(&h->interims);
    exchange_release(&h->x);
}

/* Discards the rest of an ended exchange's body, until its end or its limit. */
static size_t consume_drained(struct h1_exchange *h, struct str bytes)
{
    struct h1_session *h1 = h->session;
    size_t taken = h1_body_consume(h, bytes);

    if (h->body_whole) {
        exchange_free(h);
    } else if (h->body_error || h->drained > LIMIT_PIPELINE_DRAIN) {
        exchange_free(h);
        session_end(h1);
    }
    return taken;
}

static size_t session_consume(struct session *session, struct str bytes)
{
    struct h1_session *h1 = h1_of(session);
    size_t taken = 0;

    while (taken < bytes.length && !h1->input_closed) {
        struct str rest = str_skip(bytes, taken);
        struct h1_exchange *h = h1->current;
        size_t more;

        if (!h)
            more = consume_head(h1, rest);
        else if (h->stage == STAGE_DRAINING)
            more = consume_drained(h, rest);
        else
            more = h1_body_consume(h, rest);
        if (more == 0 && !h1->input_closed) {
            h1->input_blocked = true;
            return taken;
        }
        taken += more;
    }
    return h1->http2_preface_received ? taken : bytes.length;
}

/* The response is complete: continues with the next request, drains the request body, or ends the session. */
static void exchange_complete(struct h1_exchange *h)
{
    struct h1_session *h1 = h->session;

    body_close(&h->x.response.body);
    h1->events->finished(h1->owner, &h->x);
    h->x.session = NULL;
    if (h1->keepalive && !h->body_whole)
        h1_body_drain(h);
    else
        exchange_free(h);
    if (!h1->keepalive)
        session_end(h1);
    h1_session_resume_input(h1);
}

static int session_produce(struct session *session, unsigned accept, size_t room, struct chunk *out)
{
    struct h1_session *h1 = h1_of(session);
    int result = 0;

    while (result == 0) {
        if (h1->error)
            return h1->error;
        if (h1->over)
            return 0;
        result = h1->current ? h1_response_produce(h1->current, accept, room, out) : -EAGAIN;
        if (result == 0 && h1->current->stage == STAGE_COMPLETE)
            exchange_complete(h1->current);
    }
    if (result == -EAGAIN) {
        if (h1->current)
            h1->current->response_waits = h1->current->stage == STAGE_BODY;
        h1->wake_pending = true;
    } else if (result < 0) {
        h1->error = (int16_t)result;
    }
    return result;
}

static enum session_phase session_phase(const struct session *session)
{
    const struct h1_session *h1 = container_of(session, const struct h1_session, session);
    const struct h1_exchange *h = h1->current;

    if (h1->over || h1->error)
        return SESSION_OVER;
    if (!h)
        return h1->head.length > h1->scan.start ? SESSION_HEAD : SESSION_IDLE;
    if (h->stage == STAGE_DRAINING)
        return SESSION_BODY;
    if (h->interims.length || h->pending.length || (h->stage != STAGE_REQUEST && !h->response_waits))
        return SESSION_SENDING;
    return h->wake_pending ? SESSION_BODY : SESSION_WAITING;
}

static const struct exchange *session_current(const struct session *session, unsigned *out_count)
{
    const struct h1_exchange *h = container_of(session, const struct h1_session, session)->current;
    bool open = h && h->stage != STAGE_DRAINING;

    *out_count = open ? 1 : 0;
    return open ? &h->x : NULL;
}

static void signal_timeout(struct h1_session *h1)
{
    switch (session_phase(&h1->session)) {
    case SESSION_IDLE:
        session_end(h1);
        break;
    case SESSION_HEAD: {
        struct buffer head = h1->head;
        size_t start = h1->scan.start;

        h1->head = (struct buffer){0};
        h1->scan = (struct h1_scan){0};
        reject_partial_head(h1, str_skip(buffer_str(&head), start), 408);
        buffer_finish(&head);
        break;
    }
    case SESSION_BODY:
        if (h1->current->stage == STAGE_DRAINING)
            session_end(h1);
        else
            h1_body_fail(h1->current, -ETIMEDOUT);
        break;
    case SESSION_SENDING:
        h1_session_break(h1, -ETIMEDOUT);
        break;
    case SESSION_WAITING:
    case SESSION_OVER:
    case SESSION_BLOCKED: /* of HTTP/2 */
    case SESSION_CLOSING:
        break;
    }
}

static void signal_peer_closed(struct h1_session *h1)
{
    h1->keepalive = false;
    h1->input_closed = true;
    if (!h1->current || h1->current->stage == STAGE_DRAINING)
        session_end(h1);
    else
        h1_body_fail(h1->current, -ECONNRESET);
    if (h1->current && h1->current->stage != STAGE_DRAINING && h1->events->client_closed)
        h1->events->client_closed(h1->owner, &h1->current->x);
}

/* An idle connection that has had a response closes; a new one still gets the response to its first request. */
static void signal_drain(struct h1_session *h1)
{
    bool idle = session_phase(&h1->session) == SESSION_IDLE;

    h1->keepalive = false;
    if ((idle && h1->requests > 0) || (h1->current && h1->current->stage == STAGE_DRAINING))
        session_end(h1);
}

static void session_signal(struct session *session, enum session_signal signal)
{
    struct h1_session *h1 = h1_of(session);

    switch (signal) {
    case SESSION_TIMEOUT:
        signal_timeout(h1);
        break;
    case SESSION_DEADLINE: /* of HTTP/2 */
        break;
    case SESSION_PEER_CLOSED:
        signal_peer_closed(h1);
        break;
    case SESSION_DRAIN:
        signal_drain(h1);
        break;
    case SESSION_RETIRE:
        h1->retiring = true;
        break;
    }
}

static void session_close(struct session *session)
{
    struct h1_session *h1 = h1_of(session);
    struct h1_exchange *h = h1->current;

    if (h && h->stage != STAGE_DRAINING) {
        h->x.cancelled = true;
        body_close(&h->x.response.body);
        h1->events->finished(h1->owner, &h->x);
        h->x.session = NULL;
    }
    if (h)
        exchange_free(h);
    buffer_finish(&h1->head);
    free(h1);
}

const struct protocol protocol_http1 = {
    .alpn = "http/1.1",
    .open = session_open,
    .consume = session_consume,
    .produce = session_produce,
    .phase = session_phase,
    .current = session_current,
    .signal = session_signal,
    .close = session_close,
};
