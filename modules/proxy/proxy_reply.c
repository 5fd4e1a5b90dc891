/*
 * The answer: its head becomes the exchange's, its body is kept as it comes, a little at a time, and
 * pulled by whoever sends it to the client. A client that takes nothing stops the reading.
 */
#include "proxy.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

void proxy_wake_puller(struct proxying *p)
{
    if (!p->awaited)
        return;
    p->awaited = false;
    p->body.wake(p->body.owner);
}

static bool has_room(const struct proxying *p)
{
    if (p->buffers)
        return !p->spool || !spool_full(p->spool);
    return size_sub_sat(p->input.capacity, p->input.length) >= LIMIT_LENT_BYTES || p->input.length == 0;
}

void proxy_read_on(struct proxying *p)
{
    if (!p->connection)
        return;
    if ((p->stage == PROXY_ASKING || (has_room(p) && !proxy_is_ahead(p))) && !proxy_cache_behind(p))
        wire_receive(&p->connection->wire);
    proxy_look_at_clock(p);
}

/* Body. */

static int next_input(struct proxying *p, unsigned accept, size_t room, struct chunk *out)
{
    struct str bytes;

    if (p->input_at == p->input.length) { /* all that was lent has been taken */
        p->input.length = p->input_at = 0;
        if (!proxy_splice(p, accept))
            proxy_read_on(p);
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

static int next_spooled(struct proxying *p, unsigned accept, size_t room, struct chunk *out)
{
    int result = p->spool ? spool_next(p->spool, accept, room, out) : 0;

    proxy_read_on(p);
    return result;
}

static int body_next(struct body *body, unsigned accept, size_t room, struct chunk *out)
{
    struct proxying *p = container_of(body, struct proxying, body);
    int result;

    if (p->upgraded && p->connection && proxy_tunnel(p) < 0)
        return -ENOMEM;
    if (proxy_spliced(p, out))
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
    struct proxying *p = container_of(body, struct proxying, body);

    p->awaited = false;
    proxy_let_go(p, false);
    buffer_finish(&p->input);
    pipe_drop(p->pipe);
    p->pipe = NULL;
    spool_close(p->spool);
    p->spool = NULL;
    p->stage = PROXY_OVER;
}

void proxy_body_init(struct proxying *p)
{
    static const struct body_ops ops = {.next = body_next, .close = body_closed};

    p->body = (struct body){.ops = &ops, .length = BODY_LENGTH_UNKNOWN};
    p->input_at = 0;
    p->body_whole = p->awaited = false;
    p->body_error = 0;
}

/* An update behind an answer has nobody who pulls: this is its end. */
static bool ends_update(struct proxying *p)
{
    if (!p->cached || !p->cached->background)
        return false;
    p->stage = PROXY_OVER;
    buffer_finish(&p->input);
    (void)exchange_refuse(p->x, 204);
    exchange_resume(p->x, OUTCOME_ANSWERED);
    return true;
}

void proxy_body_end(struct proxying *p)
{
    if (ends_update(p))
        return;
    p->body_whole = true;
    proxy_wake_puller(p);
}

void proxy_body_fail(struct proxying *p, int error)
{
    proxy_let_go(p, false);
    proxy_cache_broke(p);
    if (ends_update(p))
        return;
    p->body_error = error;
    proxy_wake_puller(p);
}

/* Steps of the reply. Each false: nothing more of it is read now. */

static bool bad_reply(struct proxying *p)
{
    exchange_say(p->x, LOG_ERROR,
                 "upstream sent an invalid answer: %s, upstream: \"%s://" STR_FMT STR_FMT "\"",
                 p->reply.fault, proxy_scheme(p), STR_ARG(p->attempt->server), STR_ARG(p->uri));
    upstream_peer_failed(p->peer);
    if (p->stage == PROXY_ANSWERING)
        proxy_body_fail(p, -EPROTO);
    else
        proxy_try_next(p, NEXT_INVALID_HEADER, 502);
    return false;
}

static bool no_memory(struct proxying *p)
{
    if (p->stage == PROXY_ANSWERING)
        proxy_body_fail(p, -ENOMEM);
    else
        proxy_give_up(p, 500);
    return false;
}

/* So many at once, and then one each LIMIT_INTERIM_MS: a flood of them costs the client nothing, and is no fault. */
static bool may_forward_interim(struct proxying *p)
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
static bool interim(struct proxying *p)
{
    struct headers fields = {0};

    if (p->reply.status == 100)
        proxy_expect_met(p);
    if (p->reply.status == 100 || !may_forward_interim(p))
        return true;
    if (proxy_pass_fields(p, &p->reply.headers, &p->reply.interim, &fields) == -ENOMEM ||
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
static bool asks_another(struct proxying *p)
{
    unsigned reason = reason_of(p->reply.status);

    if (!reason || !proxy_may_try_next(p, reason))
        return false;
    if (p->reply.status >= 500 || p->reply.status == 429)
        upstream_peer_failed(p->peer);
    proxy_try_next(p, reason, 502);
    return true;
}

/* What may be quiet for long: another protocol, or events as they happen. */
static int note_stream(struct proxying *p)
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
static void answered_otherwise(struct proxying *p)
{
    proxy_cache_yield(p);
    proxy_let_go(p, false);
    buffer_finish(&p->input);
    p->stage = PROXY_OVER;
    exchange_resume(p->x, OUTCOME_ANSWERED);
}

/* The client is told which server it has, where it does not know it by now. */
static int stick(struct proxying *p)
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
static bool without_body(struct proxying *p)
{
    p->stage = PROXY_ANSWERING;
    if (p->cached->background)
        return true; /* proxy_answer_whole, or its failure, ends it */
    exchange_resume(p->x, OUTCOME_ANSWERED);
    return true;
}

static bool head_came(struct proxying *p)
{
    struct response *response = &p->x->response;
    int kept;

    p->attempt->status = p->reply.status;
    p->attempt->header_us = u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us);
    if (asks_another(p))
        return false;
    upstream_peer_worked(p->peer);
    upstream_peer_took(p->peer, p->attempt->header_us, UINT64_MAX);
    if (proxy_cache_rescue_status(p, p->reply.status) || proxy_intercept(p, p->reply.status, &p->reply.headers)) {
        answered_otherwise(p);
        return false;
    }
    proxy_accel_rate(p, &p->reply.headers);
    if (proxy_sent_elsewhere(p))
        return false;
    kept = proxy_cache_head(p);
    if (kept == -EAGAIN) {
        proxy_ask_anew(p);
        return false;
    }
    if (kept < 0)
        return no_memory(p);
    if (kept > 0 || (p->cached && p->cached->background))
        return without_body(p);
    response->headers.count = 0;
    if (proxy_pass_fields(p, &p->reply.headers, &p->x->arena, &response->headers) < 0 || note_stream(p) < 0 ||
        proxy_accel_charset(p, &p->reply.headers, &response->headers) < 0 ||
        (p->conf->speech->rewrites && (proxy_rewrite_location(p) < 0 || proxy_rewrite_cookies(p) < 0)) ||
        stick(p) < 0)
        return no_memory(p);
    p->buffers = proxy_wants_spool(p);
    response->status = p->reply.status;
    response->reason.status = p->reply.status;
    response->reason.text = p->reply.reason;
    response->body = &p->body;
    p->body.length = p->reply.content_length;
    if (p->method == METHOD_HEAD &&
        p->x->request.method != METHOD_HEAD) /* proxy_method: nothing comes, whatever the head says */
        p->body.length = 0;
    if (proxy_pace_begin(p) < 0 || proxy_cut_range(p) < 0)
        return no_memory(p);
    if (p->stage != PROXY_OVER) /* the range that was asked for is none */
        p->stage = PROXY_ANSWERING;
    if (!proxy_cache_holds_head(p))
        exchange_resume(p->x, OUTCOME_ANSWERED);
    return p->stage == PROXY_ANSWERING && !p->upgraded;
}

void proxy_answer_whole(struct proxying *p, bool surplus)
{
    bool keep = p->reply.keepalive && p->asked && !surplus;

    upstream_peer_took(p->peer, UINT64_MAX, u64_sub_sat(exchange_clock(p->x)->monotonic_us, p->attempt->begun_us));
    if (p->reply.keepalive && surplus)
        proxy_say(p, LOG_WARN, "upstream sent more than its answer", 0);
    proxy_let_go(p, keep);
    proxy_cache_whole(p);
    proxy_body_end(p);
}

/* A body that nobody keeps is nobody's: of a short one the rest is read, so that its connection may serve again. */
static bool update_goes_on(struct proxying *p)
{
    if (p->cached->fill || p->attempt->bytes_received < LIMIT_SUBREQUEST_REST)
        return true;
    proxy_body_fail(p, -EFBIG);
    return false;
}

static bool part_came(struct proxying *p, struct str part)
{
    proxy_cache_part(p, part);
    if (p->cached && p->cached->background)
        return update_goes_on(p);
    if (p->buffers) {
        if (proxy_spool_put(p, part) < 0)
            return no_memory(p);
    } else {
        memcpy(p->input.data + p->input.length, part.data, part.length);
        p->input.length += part.length;
    }
    proxy_wake_puller(p);
    return true;
}

/* One step. False: the connection is no longer ours, or nothing more is to be read. */
static bool step(struct proxying *p, struct str *in, struct str rest)
{
    struct str part;

    switch (p->conf->speech->read(p, in, &part)) {
    case REPLY_MORE:
        break;
    case REPLY_INTERIM:
        return interim(p);
    case REPLY_HEAD:
        return head_came(p);
    case REPLY_PART:
        return part_came(p, part);
    case REPLY_WHOLE:
        proxy_answer_whole(p, in->length + rest.length > 0);
        break;
    case REPLY_BAD:
        return bad_reply(p);
    case REPLY_NO_MEMORY:
        return no_memory(p);
    }
    return false;
}

static void ended(struct proxying *p)
{
    if (!p->heard) {
        proxy_lost(p, -ECONNRESET);
        return;
    }
    if (p->conf->speech->ended(p, wire_cut(&p->connection->wire)) == REPLY_WHOLE)
        proxy_answer_whole(p, false);
    else
        (void)bad_reply(p);
}

size_t proxy_received(void *user, struct str bytes)
{
    struct proxying *p = user;
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
    if (proxy_splices(p))
        proxy_look_at_clock(p);
    else
        proxy_read_on(p);
    return room < bytes.length ? room : bytes.length;
}
