/*
 * Reads a response: its head becomes that of the exchange, and its body is passed on part by part.
 */
#include "response.h"

#include "attempt.h"
#include "base/limits.h"
#include "base/saturate.h"
#include "connection.h"
#include "fields.h"
#include "rate_limit.h"
#include "request_body.h"
#include "response_body.h"
#include "splice.h"

#include <errno.h>

/* The steps of reading. Each returns true if reading continues. */

static bool bad_reply(struct gateway_request *p)
{
    exchange_log_error(p->x, LOG_ERROR,
                       "upstream sent invalid response: %s, upstream: \"%s://" STR_FMT STR_FMT "\"",
                       p->reply.fault, gateway_scheme(p), STR_ARG(p->attempt->server), STR_ARG(p->sent.uri));
    upstream_peer_failed(p->upstream.peer);
    if (p->stage == GATEWAY_RESPONDING)
        gateway_body_fail(p, -EPROTO);
    else
        gateway_try_next(p, NEXT_INVALID_HEADER, 502);
    return false;
}

static bool no_memory(struct gateway_request *p)
{
    if (p->stage == GATEWAY_RESPONDING)
        gateway_body_fail(p, -ENOMEM);
    else
        gateway_fail(p, 500);
    return false;
}

/* Permits LIMIT_INTERIMS responses 1xx at once, then one per LIMIT_INTERIM_MS. Surplus ones are dropped. */
static bool may_forward_interim(struct gateway_request *p)
{
    uint64_t now_ms = exchange_clock(p->x)->monotonic_ms;

    if (p->interims_ms < now_ms)
        p->interims_ms = now_ms;
    if (p->interims_ms - now_ms >= (uint64_t)LIMIT_INTERIMS * LIMIT_INTERIM_MS)
        return false;
    p->interims_ms += LIMIT_INTERIM_MS;
    return true;
}

/* 100 is not forwarded: the session sends it when the client's body is pulled. */
static bool forward_interim(struct gateway_request *p)
{
    struct headers fields = {0};

    if (p->reply.status == 100 || !may_forward_interim(p))
        return true;
    if (gateway_pass_fields(p, &p->reply.headers, &p->reply.interim, &fields) == -ENOMEM ||
        exchange_inform(p->x, p->reply.status, &fields) == -ENOMEM)
        return no_memory(p);
    return true;
}

static unsigned reason_of(int status)
{
    static const struct {
        int status;
        unsigned reason;
    } reasons[] = {{403, NEXT_HTTP_403}, {404, NEXT_HTTP_404}, {429, NEXT_HTTP_429}, {500, NEXT_HTTP_500},
                   {502, NEXT_HTTP_502}, {503, NEXT_HTTP_503}, {504, NEXT_HTTP_504}};

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return 0;
}

/* True if the status permits another attempt and there is another server. The last server's response is passed on. */
static bool retries_next_upstream(struct gateway_request *p)
{
    unsigned reason = reason_of(p->reply.status);

    if (!reason || !gateway_may_try_next(p, reason))
        return false;
    if (p->reply.status >= 500 || p->reply.status == 429)
        upstream_peer_failed(p->upstream.peer);
    gateway_try_next(p, reason, 502);
    return true;
}

/* Sets the kind of responses that may be idle for long: upgraded connections and event streams. 0 or -ENOMEM. */
static int detect_event_stream(struct gateway_request *p)
{
    struct headers *fields = &p->x->response.headers;
    struct str type = headers_value(fields, STR("Content-Type"));

    if (p->reply.status == 101)
        p->kind = p->x->request.tunnel ? RESPONSE_TUNNEL : RESPONSE_UPGRADED;
    else if (str_equal_nocase(str_trim(str_cut(&type, ';')), STR("text/event-stream")))
        p->kind = RESPONSE_EVENTS;
    if (p->kind != RESPONSE_UPGRADED)
        return 0;
    return headers_set(fields, &p->x->arena, STR("Upgrade"), p->upgrade);
}

/* x->response is already set (stale response or error page): discards the response of the upstream server. */
static void discard_upstream_response(struct gateway_request *p)
{
    if (p->cached)
        p->cache->release_lock(p);
    gateway_discard(p);
    buffer_finish(&p->incoming.input);
    p->stage = GATEWAY_DONE;
    exchange_resume(p->x, OUTCOME_RESPONDED);
}

/* Sends the cookie of the selected server, unless the client has it. */
static int set_sticky_cookie(struct gateway_request *p)
{
    const struct upstream_sticky *sticky = &upstream_group_upstream(p->upstream.group)->sticky;
    struct exchange *x = p->x;
    struct str value;

    if (!sticky->route || str_equal(p->upstream.choice.route, str_from(p->upstream.peer->route)))
        return 0;
    value = arena_printf(&x->arena, STR_FMT "=%s" STR_FMT, STR_ARG(sticky->cookie), p->upstream.peer->route,
                         STR_ARG(sticky->attributes));
    return value.data ? headers_add(&x->response.headers, &x->arena, STR("Set-Cookie"), value) : -ENOMEM;
}

/* The body is not sent: the response was filled from the cache (304), or this is a background update. */
static bool without_body(struct gateway_request *p)
{
    p->stage = GATEWAY_RESPONDING;
    if (p->cached->background)
        return true; /* ended by gateway_response_end or gateway_body_fail */
    if (!p->cache->fill->delays_head(p))
        exchange_resume(p->x, OUTCOME_RESPONDED);
    return true;
}

/* Cuts the body to the requested range, or combines it with a stored span. 0 or -ENOMEM. */
static int apply_range(struct gateway_request *p, bool combined)
{
    if (combined)
        return p->cache->combine(p);
    return p->conf->force_ranges || p->cached ? gateway_apply_range(p) : 0;
}

/* Sets the fields of x->response. 0 or -ENOMEM. */
static int set_response_fields(struct gateway_request *p, const struct headers *from)
{
    struct headers *fields = &p->x->response.headers;

    fields->count = 0;
    if (gateway_pass_fields(p, from, &p->x->arena, fields) < 0 || detect_event_stream(p) < 0 ||
        gateway_set_charset(p, &p->reply.headers, fields) < 0 || gateway_rewrite_head(p) < 0 ||
        set_sticky_cookie(p) < 0)
        return -ENOMEM;
    return 0;
}

static void set_response_body(struct gateway_request *p, int status)
{
    struct response *response = &p->x->response;

    if (gateway_uses_spool(p))
        p->incoming.transfer = TRANSFER_SPOOLED;
    response->status = status;
    response->reason.status = p->reply.status;
    response->reason.text = p->reply.reason;
    response->body = &p->incoming.body;
    p->incoming.body.length = p->reply.content_length;
    if (p->sent.method == METHOD_HEAD &&
        p->x->request.method != METHOD_HEAD) /* proxy_method: HEAD has no body, regardless of Content-Length */
        p->incoming.body.length = 0;
}

static int begin_rate_limit(struct gateway_request *p)
{
    return p->conf->limit_rate ? gateway_rate_limit_begin(p, gateway_read) : 0;
}

/* Passes the response on. */
static bool pass_response(struct gateway_request *p)
{
    const struct headers *combined = NULL;
    int status = p->reply.status;

    if (p->cached && p->cached->combined)
        combined = p->cache->combined_fields(p, &status);
    if (set_response_fields(p, combined ? combined : &p->reply.headers) < 0)
        return no_memory(p);
    if (p->cached && p->cache->fill->is_not_modified(p) && gateway_respond_not_modified(p))
        return begin_rate_limit(p) == 0 || no_memory(p);
    set_response_body(p, status);
    if (begin_rate_limit(p) < 0 || apply_range(p, combined) < 0)
        return no_memory(p);
    if (p->stage != GATEWAY_DONE) /* GATEWAY_DONE: the requested range is not satisfiable */
        p->stage = GATEWAY_RESPONDING;
    if (p->kind == RESPONSE_TUNNEL)
        gateway_send_tunnel(p);
    if (p->stage == GATEWAY_DONE || !p->cached || !p->cache->fill->delays_head(p))
        exchange_resume(p->x, OUTCOME_RESPONDED);
    return p->stage == GATEWAY_RESPONDING && p->kind != RESPONSE_UPGRADED;
}

static bool head_received(struct gateway_request *p)
{
    int result;

    p->attempt->status = p->reply.status;
    p->attempt->header_us = u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us);
    if (retries_next_upstream(p))
        return false;
    upstream_peer_succeeded(p->upstream.peer);
    upstream_peer_count_time(p->upstream.peer, p->attempt->header_us, UINT64_MAX);
    if ((p->cache && p->cache->serve_stale(p, GATEWAY_FAILED_STATUS)) ||
        (p->conf->intercept_errors && gateway_intercept(p, p->reply.status, &p->reply.headers))) {
        discard_upstream_response(p);
        return false;
    }
    gateway_accel_rate(p, &p->reply.headers);
    if (gateway_accel_redirect(p))
        return false;
    result = p->cache ? p->cache->response_head(p) : 0;
    if (result == -EAGAIN) {
        gateway_retry(p);
        return false;
    }
    if (result < 0)
        return no_memory(p);
    if (result > 0 || (p->cached && p->cached->background))
        return without_body(p);
    return pass_response(p);
}

/* If the body is not stored, at most LIMIT_SUBREQUEST_REST bytes are read, so that the connection can be reused. */
static bool may_continue_update(struct gateway_request *p)
{
    if (p->cached->fill || p->attempt->bytes_received < LIMIT_SUBREQUEST_REST)
        return true;
    gateway_body_fail(p, -EFBIG);
    return false;
}

static bool part_received(struct gateway_request *p, struct str part)
{
    if (p->cached)
        p->cache->fill->put(p, part);
    if (p->cached && p->cached->background)
        return may_continue_update(p);
    if ((p->for_head == FOR_HEAD_FETCHES || p->not_modified) && p->cached && p->cached->fill) /* no client reads it */
        return true;
    if (p->incoming.transfer == TRANSFER_SPOOLED) {
        if (gateway_spool_append(p, part) < 0)
            return no_memory(p);
    } else {
        memcpy(p->incoming.input.data + p->incoming.input.length, part.data, part.length);
        p->incoming.input.length += part.length;
    }
    gateway_wake_body(p);
    return true;
}

bool gateway_response_step(struct gateway_request *p, enum h1_reply_step step, struct str part, bool surplus)
{
    switch (step) {
    case REPLY_MORE:
        break;
    case REPLY_INTERIM:
        return forward_interim(p);
    case REPLY_HEAD:
        return head_received(p);
    case REPLY_PART:
        return part_received(p, part);
    case REPLY_WHOLE:
        gateway_response_end(p, surplus);
        break;
    case REPLY_BAD:
        return bad_reply(p);
    case REPLY_NO_MEMORY:
        return no_memory(p);
    }
    return false;
}

/* One step. False: the connection was released, or the response is read completely. */
static bool read_response_step(struct gateway_request *p, struct str *in, struct str rest)
{
    struct str part;
    enum h1_reply_step step = p->conf->gateway->read(p, in, &part);

    return gateway_response_step(p, step, part, in->length + rest.length > 0);
}

static void upstream_stream_ended(struct gateway_request *p)
{
    if (!gateway_has_response(p)) {
        gateway_connection_failed(p, -ECONNRESET);
        return;
    }
    if (p->conf->gateway->ended(p, wire_truncated(&p->upstream.connection->wire)) == REPLY_WHOLE)
        gateway_response_end(p, false);
    else
        (void)bad_reply(p);
}

/* The input holds two small receives or one large one, which arrives over TLS as several records. */
static size_t input_capacity(const struct gateway_request *p, struct str received)
{
    bool large = received.length > LIMIT_PROXY_INPUT || (p->upstream.connection->tls && gateway_receives_large(p));

    return large ? LIMIT_RECEIVE_LARGE : LIMIT_PROXY_INPUT;
}

size_t gateway_received(void *user, struct str bytes)
{
    struct gateway_request *p = user;
    struct upstream_connection *connection = p->upstream.connection;
    struct str in;
    size_t room;

    if (str_empty(bytes)) {
        upstream_stream_ended(p);
        return 0;
    }
    if (p->incoming.transfer != TRANSFER_SPOOLED && p->incoming.input.length == 0 &&
        buffer_reserve(&p->incoming.input, input_capacity(p, bytes)) < 0) {
        (void)no_memory(p);
        return bytes.length;
    }
    room = p->incoming.transfer == TRANSFER_SPOOLED
               ? bytes.length
               : size_sub_sat(p->incoming.input.capacity, p->incoming.input.length);
    in = str_slice(bytes, 0, room);
    p->incoming.was_full = bytes.length >= LIMIT_RECEIVE_BYTES;
    p->attempt->bytes_received += in.length;
    while (read_response_step(p, &in, str_skip(bytes, room)))
        ;
    if (p->upstream.connection != connection) /* released, or used by another exchange by now */
        return bytes.length;
    if (p->kind == RESPONSE_UPGRADED) { /* the following bytes belong to the tunnel */
        p->attempt->bytes_received -= in.length;
        return (size_t)(in.data - bytes.data);
    }
    if (gateway_splices(p))
        gateway_set_timeout(p);
    else
        gateway_read(p);
    return room < bytes.length ? room : bytes.length;
}

void gateway_piped(void *user, size_t count)
{
    struct gateway_request *p = user;

    if (gateway_splice_filled(p, count))
        gateway_response_end(p, !wire_has_no_input(&p->upstream.connection->wire));
    else
        gateway_set_timeout(p);
    gateway_wake_body(p);
}
