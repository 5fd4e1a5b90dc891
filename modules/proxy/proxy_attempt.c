/*
 * Asking: a server is chosen, connected to, and the request is sent to it as fast as it takes it and
 * the client gives it. Where that fails before an answer came, another server may be asked.
 */
#include "proxy.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>

static const struct upstream_events proxy_events;

static uint64_t now_us(const struct proxying *p)
{
    return exchange_clock(p->x)->monotonic_us;
}

void proxy_say(const struct proxying *p, enum log_level level, const char *what, int error)
{
    static const char *const doing[] = {
        [PROXY_STORING] = "reading client request body",
        [PROXY_CONNECTING] = "connecting to upstream",
        [PROXY_ASKING] = "reading response header from upstream",
        [PROXY_ANSWERING] = "reading upstream",
        [PROXY_OVER] = "ending",
    };
    const char *now = p->stage == PROXY_ASKING && !p->asked ? "sending request to upstream" : doing[p->stage];
    struct str server = p->attempt ? p->attempt->server : p->target.authority;

    if (error)
        exchange_say(p->x, level, "%s (%d: %s) while %s, upstream: \"%s://" STR_FMT STR_FMT "\"", what,
                     -error, strerror(-error), now, proxy_scheme(p), STR_ARG(server),
                     STR_ARG(p->uri));
    else
        exchange_say(p->x, level, "%s while %s, upstream: \"%s://" STR_FMT STR_FMT "\"", what, now,
                     proxy_scheme(p), STR_ARG(server), STR_ARG(p->uri));
}

void proxy_let_go(struct proxying *p, bool keep)
{
    struct upstream_connection *connection = p->connection;

    p->connection = NULL;
    proxy_pace_end(p);
    proxy_expect_end(p);
    upstream_wait_end(&p->waiter);
    p->conf->speech->finish(p);
    if (!connection)
        return;
    if (p->attempt->whole_us == UINT64_MAX)
        p->attempt->whole_us = u64_sub_sat(now_us(p), p->attempt->begun_us);
    upstream_release(connection, keep);
}

/* An answer may come; or TLS broke, and the wire waits for the server to take our alert and leave. */
static bool awaits_server(const struct proxying *p)
{
    const struct wire *wire = &p->connection->wire;

    return wire->state != WIRE_OPEN || (wire->receiving && (p->asked || p->heard));
}

/* A slow client stops the clock of the server, and a slow server that of the client. */
void proxy_look_at_clock(struct proxying *p)
{
    uint64_t patience_ms = 0;

    if (!p->connection || p->stage == PROXY_CONNECTING)
        return;
    if (p->blocked)
        patience_ms = p->conf->send_timeout_ms;
    else if (awaits_server(p))
        patience_ms = p->conf->read_timeout_ms;
    if (p->patient && patience_ms > 0 && patience_ms < LIMIT_PROXY_QUIET_MS && !p->blocked)
        patience_ms = LIMIT_PROXY_QUIET_MS;
    upstream_patience(p->connection, patience_ms);
}

/* No server could be asked, or none has answered: what is stored may do. */
static bool is_rescued(struct proxying *p, int status)
{
    unsigned reason = status == 504 ? STALE_TIMEOUT : p->reply.fault ? STALE_INVALID_HEADER : STALE_ERROR;

    return (status == 502 || status == 504) && proxy_cache_rescue(p, reason);
}

void proxy_give_up(struct proxying *p, int status)
{
    proxy_let_go(p, false);
    buffer_finish(&p->input);
    p->stage = PROXY_OVER;
    if (!is_rescued(p, status))
        (void)exchange_refuse(p->x, status);
    if (!p->starting)
        exchange_resume(p->x, OUTCOME_ANSWERED);
}

static bool is_idempotent(enum method method)
{
    return method != METHOD_POST && method != METHOD_PATCH && method != METHOD_OTHER;
}

/* What was pulled of the client's body is gone, and what may have been done once is not asked for twice. */
static bool may_ask_again(const struct proxying *p)
{
    if (proxy_body_is_spent(p))
        return false;
    return p->stage == PROXY_CONNECTING || is_idempotent(p->method) || (p->conf->next & NEXT_NON_IDEMPOTENT);
}

static bool has_tries_left(const struct proxying *p)
{
    uint64_t spent_ms = u64_sub_sat(exchange_clock(p->x)->monotonic_ms, p->begun_ms);

    return (p->conf->next_tries == 0 || p->tries < p->conf->next_tries) &&
           (p->conf->next_timeout_ms == 0 || spent_ms < p->conf->next_timeout_ms);
}

/* Asks again, and gives up where that is not to be. */
static void ask_again(struct proxying *p)
{
    int status = proxy_ask(p);

    if (status)
        proxy_give_up(p, status);
}

bool proxy_may_try_next(const struct proxying *p, unsigned reason)
{
    return (p->conf->next & reason) && !(p->conf->next & NEXT_OFF) && may_ask_again(p) && has_tries_left(p) &&
           upstream_has_another(p->group, &p->choice);
}

void proxy_try_next(struct proxying *p, unsigned reason, int status)
{
    bool another = proxy_may_try_next(p, reason);

    proxy_let_go(p, false);
    if (another)
        ask_again(p);
    else
        proxy_give_up(p, status);
}

/* An idle connection whose end crossed with our request: the server has not seen it, and is no worse for it.
 */
static bool was_stale(const struct proxying *p)
{
    return p->reused && !p->heard && p->stage == PROXY_ASKING && !proxy_body_is_spent(p) &&
           is_idempotent(p->method);
}

static void retry_fresh(struct proxying *p)
{
    proxy_let_go(p, false);
    p->choice.tries = 0;
    p->fresh = true;
    p->tries--;
    ask_again(p);
}

void proxy_ask_anew(struct proxying *p)
{
    int status;

    proxy_let_go(p, false);
    p->choice.tries = 0;
    status = proxy_begin(p);
    if (status)
        proxy_give_up(p, status);
}

void proxy_lost(struct proxying *p, int error)
{
    bool late = error == -ETIMEDOUT;

    if (!late && was_stale(p)) {
        retry_fresh(p);
        return;
    }
    proxy_say(p, LOG_ERROR,
              late                           ? "upstream timed out"
              : p->stage == PROXY_CONNECTING ? "connect() failed"
                                             : "upstream prematurely closed connection",
              error);
    if (p->stage == PROXY_ANSWERING) { /* its head was given: it can only break now */
        proxy_body_fail(p, error);
        return;
    }
    upstream_peer_failed(p->peer);
    proxy_try_next(p, late ? NEXT_TIMEOUT : NEXT_ERROR, late ? 504 : 502);
}

static void failed(void *user, int error)
{
    struct proxying *p = user;

    p->attempt->whole_us = u64_sub_sat(now_us(p), p->attempt->begun_us);
    p->connection = NULL;
    proxy_lost(p, error);
}

void proxy_request_broke(struct proxying *p, int error)
{
    if (error == -ECONNRESET && !p->conf->ignore_client_abort) /* it has left: the exchange is about to be cancelled */
        return;
    if (p->stage == PROXY_ANSWERING) {
        proxy_body_fail(p, error);
        return;
    }
    proxy_say(p, LOG_INFO, "the client's request body broke off", error);
    exchange_drop_body(p->x);
    proxy_give_up(p, exchange_body_status(error));
}

/* As much of the request as the wire has room for, and the client has given. */
static void send_request(struct proxying *p)
{
    struct wire *wire = &p->connection->wire;
    struct chunk chunk;
    int result = 1;
    size_t room;

    while (result == 1 && (room = wire_room(wire)) > 0) {
        result = p->conf->speech->next(p, room, &chunk);
        if (result == 1 && wire_send(wire, &chunk) < 0) {
            proxy_lost(p, -ENOMEM);
            return;
        }
        if (result == 1)
            p->attempt->bytes_sent += chunk.bytes.length;
    }
    if (result < 0 && result != -EAGAIN) {
        proxy_request_broke(p, result);
        return;
    }
    p->asked = result == 0;
    p->blocked = result == 1;
    wire_flush(wire);
    proxy_look_at_clock(p);
}

static void has_room(void *user)
{
    struct proxying *p = user;

    if (!p->asked)
        send_request(p);
    else
        proxy_look_at_clock(p);
}

/* More of the client's body has come. Only queued: this is called inside the session. */
void proxy_request_woken(void *owner)
{
    struct proxying *p = owner;

    if (p->connection)
        upstream_wake(p->connection);
}

static void begin(struct proxying *p)
{
    p->stage = PROXY_ASKING;
    p->request = (struct h1_request){.pending = p->head,
                                     .arena = &p->x->arena,
                                     .trailers = &p->x->request.trailers,
                                     .chunked = p->content_length == BODY_LENGTH_UNKNOWN};
    if (p->content_length > 0)
        p->request.body = proxy_request_body(p);
    if (p->conf->speech->begin(p) < 0 || (p->expects && proxy_expect_begin(p) < 0)) {
        proxy_lost(p, -ENOMEM);
        return;
    }
    wire_receive(&p->connection->wire);
    send_request(p);
}

static void opened(void *user)
{
    struct proxying *p = user;

    p->attempt->connect_us = u64_sub_sat(now_us(p), p->attempt->begun_us);
    begin(p);
}

static const struct upstream_events proxy_events = {
    .opened = opened,
    .received = proxy_received,
    .piped = proxy_piped,
    .room = has_room,
    .failed = failed,
};

static struct proxy_attempt *note_attempt(struct proxying *p, struct str server)
{
    struct proxy_attempt *attempt = arena_zalloc(&p->x->arena, 1, sizeof(*attempt));
    struct proxy_attempt **last = &p->attempts;

    if (!attempt)
        return NULL;
    attempt->begun_us = now_us(p);
    attempt->connect_us = attempt->header_us = attempt->whole_us = UINT64_MAX;
    attempt->server = arena_copy(&p->x->arena, server);
    while (*last)
        last = &(*last)->next;
    *last = p->attempt = attempt;
    return attempt->server.data ? attempt : NULL;
}

/* 0, a status, or -EAGAIN: this server cannot be connected to, and another is to be asked. */
static int connect_to(struct proxying *p)
{
    int error;

    p->stage = PROXY_CONNECTING;
    p->asked = p->blocked = p->heard = false;
    p->tries++;
    if (!note_attempt(p, str_from(p->peer->name)))
        return 500;
    error = upstream_connect(p->peer, &p->tls, &proxy_events, p, p->conf->connect_timeout_ms, p->fresh,
                             &p->connection);
    if (error < 0) {
        p->connection = NULL;
        p->attempt->whole_us = 0;
        if (error == -EBUSY) /* another worker was faster: it is no worse for it */
            return -EAGAIN;
        if (error == -EMFILE || error == -ENFILE) /* no fault of the server */
            return exchange_out_of_descriptors(p->x);
        proxy_say(p, LOG_ERROR, "connect() failed", error);
        upstream_peer_failed(p->peer);
        return has_tries_left(p) && !(p->conf->next & NEXT_OFF) ? -EAGAIN : 502;
    }
    p->reused = upstream_reused(p->connection);
    if (p->connection->state == UPSTREAM_OPEN) {
        p->attempt->connect_us = 0;
        begin(p);
    }
    return 0;
}

static void name_resolved(struct upstream_waiter *waiter)
{
    struct proxying *p = container_of(waiter, struct proxying, waiter);

    ask_again(p);
}

static int nobody_left(struct proxying *p, int error)
{
    if (error == -EAGAIN) {
        p->stage = PROXY_CONNECTING;
        p->waiter.resolved = name_resolved;
        upstream_wait(p->group, &p->waiter);
        return 0;
    }
    if (p->tries == 0 && error != -ENOENT) {
        if (!note_attempt(p, p->target.authority)) /* $upstream_addr then names the group */
            return 500;
        p->attempt->whole_us = 0;
    }
    if (p->tries == 0 || error == -ENOENT)
        proxy_say(p, LOG_ERROR, error == -ENOENT ? "host not found" : "no live upstreams", 0);
    return 502;
}

int proxy_ask(struct proxying *p)
{
    int error;

    p->stage = PROXY_CONNECTING;
    do {
        p->peer = upstream_choose(p->group, &p->choice, &error);
        if (!p->peer)
            return nobody_left(p, error);
        error = connect_to(p);
    } while (error == -EAGAIN);
    return error;
}
