/*
 * The upstream connection of a request: its release, its timeouts, and log messages.
 */
#include "connection.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "rate_limit.h"

static uint64_t connection_now_us(const struct gateway_request *p)
{
    return exchange_clock(p->x)->monotonic_us;
}

void gateway_log(const struct gateway_request *p, enum log_level level, const char *what, int error)
{
    static const char *const doing[] = {
        [GATEWAY_READING_BODY] = "reading client request body",
        [GATEWAY_CONNECTING] = "connecting to upstream",
        [GATEWAY_SENDING] = "reading response header from upstream",
        [GATEWAY_RESPONDING] = "reading upstream",
        [GATEWAY_DONE] = "ending",
    };
    bool sends = p->stage == GATEWAY_SENDING && p->sent.state != SENDING_DONE;
    const char *now = sends ? "sending request to upstream" : doing[p->stage];
    struct str server = p->attempt ? p->attempt->server : p->target.authority;

    if (!exchange_may_log_error(p->x, error))
        return;
    if (error)
        exchange_log_error(p->x, level, "%s (%d: %s) while %s, upstream: \"%s://" STR_FMT STR_FMT "\"", what,
                           -error, strerror(-error), now, gateway_scheme(p), STR_ARG(server),
                           STR_ARG(p->sent.uri));
    else
        exchange_log_error(p->x, level, "%s while %s, upstream: \"%s://" STR_FMT STR_FMT "\"", what, now,
                           gateway_scheme(p), STR_ARG(server), STR_ARG(p->sent.uri));
}

void gateway_release(struct gateway_request *p, bool keep)
{
    struct upstream_connection *connection = p->upstream.connection;

    p->upstream.connection = NULL;
    if (p->incoming.rate_limit)
        gateway_rate_limit_end(p);
    upstream_wait_end(&p->upstream.waiter);
    if (p->conf->gateway->finish)
        p->conf->gateway->finish(p);
    if (!connection && !p->upstream.stream)
        return;
    if (p->attempt->total_us == UINT64_MAX)
        p->attempt->total_us = u64_sub_sat(connection_now_us(p), p->attempt->begun_us);
    if (p->upstream.stream)
        p->conf->gateway->streams->release(p);
    else if (keep)
        upstream_release(connection);
    else
        upstream_discard(connection);
}

void gateway_discard(struct gateway_request *p)
{
    gateway_release(p, false);
}

/* True while a response may arrive. */
static bool awaits_server(const struct gateway_request *p)
{
    if (p->upstream.stream)
        return p->conf->gateway->streams->awaits_response(p);
    return p->upstream.connection->wire.receiving && (p->sent.state == SENDING_DONE || gateway_has_response(p));
}

/* After the client's END_STREAM, a tunnel ends when the server closes it. */
static bool may_be_idle(const struct gateway_request *p)
{
    if (p->sent.state == SENDING_BLOCKED || (p->kind == RESPONSE_TUNNEL && p->sent.state == SENDING_DONE))
        return false;
    return p->kind != RESPONSE_PLAIN;
}

/* The server's timeout stops while the client is slow, and vice versa. */
void gateway_set_timeout(struct gateway_request *p)
{
    uint64_t timeout_ms = 0;

    if (!gateway_is_connected(p) || p->stage == GATEWAY_CONNECTING)
        return;
    if (p->sent.state == SENDING_BLOCKED)
        timeout_ms = p->conf->send_timeout_ms;
    else if (awaits_server(p))
        timeout_ms = p->conf->read_timeout_ms;
    if (may_be_idle(p) && timeout_ms > 0 && timeout_ms < LIMIT_PROXY_IDLE_MS)
        timeout_ms = LIMIT_PROXY_IDLE_MS;
    if (p->upstream.stream)
        p->conf->gateway->streams->set_timeout(p, timeout_ms);
    else
        upstream_set_timeout(p->upstream.connection, timeout_ms);
}

/* No server was available or gave a response: a stored response may be used. */
static bool is_served_stale(struct gateway_request *p, int status)
{
    if (!p->cache || (status != 502 && status != 504))
        return false;
    return p->cache->serve_stale(p, status == 504      ? GATEWAY_FAILED_TIMEOUT
                                    : p->reply.fault ? GATEWAY_FAILED_INVALID_HEADER
                                                     : GATEWAY_FAILED_ERROR);
}

void gateway_fail(struct gateway_request *p, int status)
{
    gateway_discard(p);
    buffer_finish(&p->incoming.input);
    p->stage = GATEWAY_DONE;
    if (!is_served_stale(p, status) && !(p->conf->gateway->respond_error && p->conf->gateway->respond_error(p, status)))
        (void)exchange_error_response(p->x, status);
    if (!p->starting)
        exchange_resume(p->x, OUTCOME_RESPONDED);
}
