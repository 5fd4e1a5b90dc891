/*
 * The TLS handshake of a wire, and the end of a wire whose TLS failed.
 */
#include "wire/wire_queue.h"

#include <errno.h>

static void log_tls_failure(const struct wire *wire)
{
    struct wire_shared *shared = wire->shared;

    if (!tls_session_out_of_memory(wire->tls))
        log_write(shared->log, LOG_INFO, "TLS: %s, fd %d", tls_session_error(wire->tls), wire->fd);
    else if (log_limit_allows(&shared->memory_failures, shared->loop->clock.monotonic_ms))
        log_write(shared->log, LOG_CRIT, "out of memory: a TLS connection is closed");
}

void wire_tls_failed(struct wire *wire)
{
    if (wire->state == WIRE_HANDSHAKE)
        wire->shared->counters->handshakes_failed++;
    log_tls_failure(wire);
    if (chunk_length(&wire->span) > 0) { /* nothing may follow the alert */
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
        return;
    }
    wire->state = WIRE_DRAINING;
    wire->end = WIRE_CLOSE_PROTOCOL;
    wire_flush(wire);
    if (wire->events->tls_failed && wire->state != WIRE_CLOSING)
        wire->events->tls_failed(wire);
}

/* Plain HTTP on a TLS port: the owner may answer in plain text. */
static void fall_back_to_plain(struct wire *wire)
{
    tls_session_destroy(wire->tls);
    wire->tls = NULL;
    output_block_release_all(wire->shared, wire->first);
    wire->first = wire->last = NULL;
    wire->shared->counters->handshakes_failed++;
    wire->sealing = SEALING_NONE;
    wire->state = WIRE_OPEN;
    wire->got_plain_http = true;
    wire->receiving = false;
    wire->events->opened(wire);
}

/* The handshake is complete; or early data has arrived, and the handshake continues with further input. */
static void handshake_finished(struct wire *wire)
{
    struct wire_counters *counters = wire->shared->counters;

    if (tls_session_reused(wire->tls))
        counters->handshakes_resumed++;
    else
        counters->handshakes_full++;
    if (wire->sealing == SEALING_HANDSHAKE)
        wire->sealing = SEALING_OPENSSL;
    wire->state = WIRE_OPEN;
    wire->receiving = false;
    wire->events->opened(wire);
}

/* The challenge acme-tls/1 has no application data (RFC 8737 4): the owner is not called, and the wire closes. */
static void challenge_answered(struct wire *wire)
{
    wire->shared->counters->handshakes_full++;
    log_write(wire->shared->log, LOG_INFO, "TLS: the challenge tls-alpn-01 for \"" STR_FMT "\" was answered, fd %d",
              STR_ARG(tls_session_server_name(wire->tls)), wire->fd);
    wire->receiving = false;
    wire->state = WIRE_DRAINING;
    wire->end = WIRE_CLOSE_ORDERLY;
    wire_flush(wire);
}

bool wire_handshake_step(struct wire *wire)
{
    int rc = tls_session_handshake(wire->tls);

    if (wire->state != WIRE_HANDSHAKE)
        return false;
    if (rc == 0 || rc == TLS_SESSION_EARLY) {
        handshake_finished(wire);
        return wire->state == WIRE_OPEN;
    }
    if (rc == TLS_SESSION_CHALLENGE)
        challenge_answered(wire);
    if (rc == -EAGAIN || rc == TLS_SESSION_CHALLENGE)
        return false;
    if (tls_session_got_plain_http(wire->tls) && op_idle(&wire->send))
        fall_back_to_plain(wire);
    else
        wire_tls_failed(wire);
    return false;
}
