/*
 * The answer: its head becomes the exchange's, its body is kept as it comes, a little at a time, and
 * pulled by whoever sends it to the client. A client that takes nothing stops the reading.
 */
#include "modules/proxy/proxy.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

void gateway_wake_body(struct gateway_request *p)
{
    if (!p->awaited)
        return;
    p->awaited = false;
    p->body.wake(p->body.owner);
}

static bool has_room(const struct gateway_request *p)
{
    if (p->buffers)
        return !p->spool || !spool_full(p->spool);
    return size_sub_sat(p->input.capacity, p->input.length) >= LIMIT_LENT_BYTES || p->input.length == 0;
}

void gateway_read(struct gateway_request *p)
{
    if (!p->connection)
        return;
    if ((p->stage == GATEWAY_SENDING || (has_room(p) && !gateway_is_rate_limited(p))) && !proxy_cache_behind(p))
        wire_receive(&p->connection->wire);
    gateway_set_timeout(p);
}

/* Body. */

static int next_input(struct gateway_request *p, unsigned accept, size_t room, struct chunk *out)
{
    struct str bytes;

    if (p->input_at == p->input.length) { /* all that was lent has been taken */
        p->input.length = p->input_at = 0;
        if (!gateway_splice(p, accept))
            gateway_read(p);
    }
    bytes = str_slice(str_skip(buffer_str(&p->input), p->input_at), 0, room);
    if (str_empty(bytes)) {
        buffer_finish(&p->input); /* whoever waits holds no buffer */
        return 0;
    }
    p->input_at += bytes.length;
    *out = (struct chunk){.kind = CHUNK_BYTES, .bytes = bytes};
    return 1;
}

static int next_spooled(struct gateway_request *p, unsigned accept, size_t room, struct chunk *out)
{
    int result = p->spool ? spool_next(p->spool, accept, room, out) : 0;

    gateway_read(p);
    return result;
}

static int body_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct gateway_request *p = container_of(body, struct gateway_request, body);
    int result;

    if (p->upgraded && p->connection && gateway_tunnel(p) < 0)
        return -ENOMEM;
    if (gateway_spliced(p, out))
        return 1;
    if (proxy_cache_holds(p)) {
        p->awaited = true;
        return -EAGAIN;
    }
    result = p->buffers ? next_spooled(p, accept, room, out) : next_input(p, accept, room, out);
    if (result == 0 && !p->body_whole)
        result = p->body_error ? p->body_error : -EAGAIN;
    p->awaited = result == -EAGAIN;
    return result;
}

static void body_closed(struct body *body)
{
    struct gateway_request *p = container_of(body, struct gateway_request, body);

    p->awaited = false;
    gateway_discard(p);
    buffer_finish(&p->input);
    pipe_drop(p->pipe);
    p->pipe = NULL;
    spool_close(p->spool);
    p->spool = NULL;
    p->stage = GATEWAY_DONE;
}

void gateway_body_init(struct gateway_request *p)
{
    static const struct body_ops ops = {.next = body_next, .close = body_closed};

    p->body = (struct body){.ops = &ops, .length = BODY_LENGTH_UNKNOWN};
    p->input_at = 0;
    p->body_whole = p->awaited = false;
    p->body_error = 0;
}

/* An update behind an answer has nobody who pulls: this is its end. */
static bool ends_update(struct gateway_request *p)
{
    if (!p->cached || !p->cached->background)
        return false;
    p->stage = GATEWAY_DONE;
    buffer_finish(&p->input);
    (void)exchange_refuse(p->x, 204);
    exchange_resume(p->x, OUTCOME_ANSWERED);
    return true;
}

void gateway_body_end(struct gateway_request *p)
{
    if (ends_update(p))
        return;
    p->body_whole = true;
    gateway_wake_body(p);
}

void gateway_body_fail(struct gateway_request *p, int error)
{
    gateway_discard(p);
    proxy_cache_broke(p);
    if (ends_update(p))
        return;
    p->body_error = error;
    gateway_wake_body(p);
}

/* Steps of the reply. Each false: nothing more of it is read now. */

static bool bad_reply(struct gateway_request *p)
{
    exchange_say(p->x, LOG_ERROR,
                 "upstream sent an invalid answer: %s, upstream: \"%s://" STR_FMT STR_FMT "\"",
                 p->reply.fault, gateway_scheme(p), STR_ARG(p->attempt->server), STR_ARG(p->uri));
    upstream_peer_failed(p->peer);
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

/* So many at once, and then one each LIMIT_INTERIM_MS: a flood of them costs the client nothing, and is no fault. */
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

/* A 100 is the session's to send, when the client's body is pulled. */
static bool interim(struct gateway_request *p)
{
    struct headers fields = {0};

    if (p->reply.status == 100)
        proxy_expect_met(p);
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

/* A server that says it cannot, where another may be able to. The last one's word is passed on. */
static bool asks_another(struct gateway_request *p)
{
    unsigned reason = reason_of(p->reply.status);

    if (!reason || !gateway_may_try_next(p, reason))
        return false;
    if (p->reply.status >= 500 || p->reply.status == 429)
        upstream_peer_failed(p->peer);
    gateway_try_next(p, reason, 502);
    return true;
}

/* What may be quiet for long: another protocol, or events as they happen. */
static int note_stream(struct gateway_request *p)
{
    struct headers *fields = &p->x->response.headers;
    struct str type = headers_value(fields, STR("Content-Type"));

    p->upgraded = p->reply.status == 101;
    p->patient = p->upgraded || str_equal_nocase(str_trim(str_cut(&type, ';')), STR("text/event-stream"));
    if (!p->upgraded)
        return 0;
    return headers_set(fields, &p->x->arena, STR("Upgrade"), p->upgrade);
}

/* The answer is another than the server's, which is not wanted any more. */
static void answered_otherwise(struct gateway_request *p)
{
    proxy_cache_yield(p);
    gateway_discard(p);
    buffer_finish(&p->input);
    p->stage = GATEWAY_DONE;
    exchange_resume(p->x, OUTCOME_ANSWERED);
}

/* The client is told which server it has, where it does not know it by now. */
static int stick(struct gateway_request *p)
{
    const struct upstream_sticky *sticky = &upstream_group_upstream(p->group)->sticky;
    struct exchange *x = p->x;
    struct str value;

    if (!sticky->route || str_equal(p->choice.route, str_from(p->peer->route)))
        return 0;
    value = arena_printf(&x->arena, STR_FMT "=%s" STR_FMT, STR_ARG(sticky->cookie), p->peer->route,
                         STR_ARG(sticky->attributes));
    return value.data ? headers_add(&x->response.headers, &x->arena, STR("Set-Cookie"), value) : -ENOMEM;
}

/* Of what the server says now nothing is for the client: it has its answer (304), or had it before (an update). */
static bool without_body(struct gateway_request *p)
{
    p->stage = GATEWAY_RESPONDING;
    if (p->cached->background)
        return true; /* gateway_response_end, or its failure, ends it */
    exchange_resume(p->x, OUTCOME_ANSWERED);
    return true;
}

static bool head_came(struct gateway_request *p)
{
    struct response *response = &p->x->response;
    int kept;

    p->attempt->status = p->reply.status;
    p->attempt->header_us = u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us);
    if (asks_another(p))
        return false;
    upstream_peer_worked(p->peer);
    upstream_peer_took(p->peer, p->attempt->header_us, UINT64_MAX);
    if (proxy_cache_rescue_status(p, p->reply.status) || gateway_intercept(p, p->reply.status, &p->reply.headers)) {
        answered_otherwise(p);
        return false;
    }
    gateway_accel_rate(p, &p->reply.headers);
    if (gateway_accel_redirect(p))
        return false;
    kept = proxy_cache_head(p);
    if (kept == -EAGAIN) {
        gateway_retry(p);
        return false;
    }
    if (kept < 0)
        return no_memory(p);
    if (kept > 0 || (p->cached && p->cached->background))
        return without_body(p);
    response->headers.count = 0;
    if (gateway_pass_fields(p, &p->reply.headers, &p->x->arena, &response->headers) < 0 || note_stream(p) < 0 ||
        gateway_accel_charset(p, &p->reply.headers, &response->headers) < 0 ||
        (p->conf->gateway->rewrites && (proxy_rewrite_location(p) < 0 || proxy_rewrite_cookies(p) < 0)) ||
        stick(p) < 0)
        return no_memory(p);
    p->buffers = gateway_wants_spool(p);
    response->status = p->reply.status;
    response->reason.status = p->reply.status;
    response->reason.text = p->reply.reason;
    response->body = &p->body;
    p->body.length = p->reply.content_length;
    if (p->method == METHOD_HEAD &&
        p->x->request.method != METHOD_HEAD) /* proxy_method: nothing comes, whatever the head says */
        p->body.length = 0;
    if (gateway_rate_limit_begin(p) < 0 || gateway_apply_range(p) < 0)
        return no_memory(p);
    if (p->stage != GATEWAY_DONE) /* the range that was asked for is none */
        p->stage = GATEWAY_RESPONDING;
    if (!proxy_cache_holds_head(p))
        exchange_resume(p->x, OUTCOME_ANSWERED);
    return p->stage == GATEWAY_RESPONDING && !p->upgraded;
}

void gateway_response_end(struct gateway_request *p, bool surplus)
{
    bool keep = p->reply.keepalive && p->asked && !surplus;

    upstream_peer_took(p->peer, UINT64_MAX, u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us));
    if (p->reply.keepalive && surplus)
        gateway_log(p, LOG_WARN, "upstream sent more than its answer", 0);
    gateway_release(p, keep);
    proxy_cache_whole(p);
    gateway_body_end(p);
}

/* A body that nobody keeps is nobody's: of a short one the rest is read, so that its connection may serve again. */
static bool update_goes_on(struct gateway_request *p)
{
    if (p->cached->fill || p->attempt->bytes_received < LIMIT_SUBREQUEST_REST)
        return true;
    gateway_body_fail(p, -EFBIG);
    return false;
}

static bool part_came(struct gateway_request *p, struct str part)
{
    proxy_cache_part(p, part);
    if (p->cached && p->cached->background)
        return update_goes_on(p);
    if (p->buffers) {
        if (gateway_spool_put(p, part) < 0)
            return no_memory(p);
    } else {
        memcpy(p->input.data + p->input.length, part.data, part.length);
        p->input.length += part.length;
    }
    gateway_wake_body(p);
    return true;
}

/* One step. False: the connection is no longer ours, or nothing more is to be read. */
static bool step(struct gateway_request *p, struct str *in, struct str rest)
{
    struct str part;

    switch (p->conf->gateway->read(p, in, &part)) {
    case REPLY_MORE:
        break;
    case REPLY_INTERIM:
        return interim(p);
    case REPLY_HEAD:
        return head_came(p);
    case REPLY_PART:
        return part_came(p, part);
    case REPLY_WHOLE:
        gateway_response_end(p, in->length + rest.length > 0);
        break;
    case REPLY_BAD:
        return bad_reply(p);
    case REPLY_NO_MEMORY:
        return no_memory(p);
    }
    return false;
}

static void ended(struct gateway_request *p)
{
    if (!p->heard) {
        gateway_connection_failed(p, -ECONNRESET);
        return;
    }
    if (p->conf->gateway->ended(p, wire_cut(&p->connection->wire)) == REPLY_WHOLE)
        gateway_response_end(p, false);
    else
        (void)bad_reply(p);
}

size_t gateway_received(void *user, struct str bytes)
{
    struct gateway_request *p = user;
    struct upstream_connection *connection = p->connection;
    struct str in;
    size_t room;

    if (str_empty(bytes)) {
        ended(p);
        return 0;
    }
    p->heard = true;
    if (!p->buffers && p->input.capacity == 0 && buffer_reserve(&p->input, LIMIT_PROXY_INPUT) < 0) {
        (void)no_memory(p);
        return bytes.length;
    }
    room = p->buffers ? bytes.length : size_sub_sat(p->input.capacity, p->input.length);
    in = str_slice(bytes, 0, room);
    p->attempt->bytes_received += in.length;
    while (step(p, &in, str_skip(bytes, room)))
        ;
    if (p->connection != connection) /* another exchange's, or nobody's, by now */
        return bytes.length;
    if (p->upgraded) { /* what follows is the tunnel's */
        p->attempt->bytes_received -= in.length;
        return (size_t)(in.data - bytes.data);
    }
    if (gateway_splices(p))
        gateway_set_timeout(p);
    else
        gateway_read(p);
    return room < bytes.length ? room : bytes.length;
}
