/*
 * Receiving: the loop lends bytes, which are decrypted and lent to the owner. Unconsumed bytes are copied, at most
 * those of one receive, and no further input is requested until they are consumed: backpressure.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Received and not consumed: decrypted bytes, then the ciphertext behind them. */
struct wire_unread {
    size_t plain;
    size_t cipher;
    char bytes[];
};

bool wire_keep_unread(struct wire *wire, struct str plain, struct str cipher)
{
    struct wire_unread *unread = malloc(sizeof *unread + plain.length + cipher.length);

    if (!unread)
        return false;
    unread->plain = plain.length;
    unread->cipher = cipher.length;
    if (plain.length)
        memcpy(unread->bytes, plain.data, plain.length);
    if (cipher.length)
        memcpy(unread->bytes + plain.length, cipher.data, cipher.length);
    wire->unread = unread;
    return true;
}

static void held_due(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);
    struct wire_unread *unread = wire->unread;

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    wire->unread = NULL;
    if (wire->state == WIRE_OPEN)
        wire_deliver(wire, str_of(unread->bytes, unread->plain), str_of(unread->bytes + unread->plain, unread->cipher));
    else if (wire->state == WIRE_LINGERING)
        wire_receive_start(wire);
    free(unread);
}

/* TLS failed: the alert is sent, and nothing else. */
static void tls_failed(struct wire *wire)
{
    if (wire->state == WIRE_HANDSHAKE)
        wire->shared->counters->handshakes_failed++;
    log_write(wire->shared->log, LOG_INFO, "TLS: %s, fd %d", tls_session_error(wire->tls), wire->fd);
    if (chunk_length(&wire->span) > 0) { /* nothing may follow the alert */
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
        return;
    }
    wire->state = WIRE_DRAINING;
    wire->end = WIRE_CLOSE_PROTOCOL;
    wire_flush(wire);
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
    wire->spoke_http = true;
    wire->receiving = false;
    wire->events->opened(wire);
}

/* Complete, or early data arrived and the rest follows with further input. */
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

/* One step; true once the wire is open. */
static bool continue_handshake(struct wire *wire)
{
    int rc = tls_session_handshake(wire->tls);

    if (wire->state != WIRE_HANDSHAKE)
        return false;
    if (rc == 0 || rc == TLS_SESSION_EARLY) {
        handshake_finished(wire);
        return wire->state == WIRE_OPEN;
    }
    if (rc == -EAGAIN)
        return false;
    if (tls_session_got_plain_http(wire->tls) && op_idle(&wire->send))
        fall_back_to_plain(wire);
    else
        tls_failed(wire);
    return false;
}

static void peer_ended(struct wire *wire)
{
    if (wire->state == WIRE_HANDSHAKE) {
        wire_fail(wire, WIRE_CLOSE_PEER_RESET);
        return;
    }
    wire->peer_ended = true;
    wire->receiving = false;
    if (wire->state == WIRE_OPEN)
        (void)wire->events->received(wire, STR(""));
}

/* Lends bytes to the owner; true while it consumes all. */
static bool deliver_plaintext(struct wire *wire, struct str plain, struct str cipher)
{
    size_t taken;

    if (str_empty(plain))
        return true;
    wire->receiving = false;
    taken = wire->events->received(wire, plain);
    if (wire->state != WIRE_OPEN)
        return false;
    if (taken >= plain.length)
        return true;
    if (!wire_keep_unread(wire, str_skip(plain, taken), cipher))
        wire_fail(wire, WIRE_CLOSE_ABORT);
    return false;
}

/* Decrypts and offers until the session needs more ciphertext or the owner stops consuming. */
static void read_records(struct wire *wire, struct str cipher)
{
    while (wire->state == WIRE_OPEN) {
        ssize_t count = tls_session_read(wire->tls, wire->shared->plaintext, LIMIT_RECORD_PLAINTEXT);
        size_t lent = tls_session_lent(wire->tls);

        if (wire->state != WIRE_OPEN || count == -EAGAIN)
            return;
        if (count == 0) {
            peer_ended(wire);
            return;
        }
        if (count < 0) {
            tls_failed(wire);
            return;
        }
        if (!deliver_plaintext(wire, str_of(wire->shared->plaintext, (size_t)count),
                               str_skip(cipher, size_sub_sat(cipher.length, lent))))
            return;
    }
}

void wire_deliver(struct wire *wire, struct str plain, struct str cipher)
{
    wire->delivering = true;
    if (deliver_plaintext(wire, plain, cipher) && wire->tls) {
        tls_session_lend(wire->tls, cipher);
        if (wire->state == WIRE_OPEN || continue_handshake(wire))
            read_records(wire, cipher);
        if (wire->tls)
            (void)tls_session_unlend(wire->tls); /* kept, or dropped with the connection */
    }
    wire->delivering = false;
    if (wire->state == WIRE_CLOSING)
        return;
    wire_push(wire); /* alerts, tickets and handshake messages */
    wire_receive_start(wire);
}

static void receive_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
    } else if (result == -ECANCELED) {
        wire_receive_start(wire);
    } else if (result < 0) {
        wire_fail(wire, wire_close_reason_of(result));
    } else if (result == 0) {
        wire->cut = wire->tls != NULL;
        peer_ended(wire);
    } else if (wire->state == WIRE_DRAINING) { /* close was requested before the end was decided */
        wire->received += (uint64_t)result;
        wire->receiving = false;
    } else {
        wire->received += (uint64_t)result;
        if (wire->proxy_header)
            wire_receive_proxy_header(wire, op->lent);
        else
            wire_deliver(wire, wire->tls ? STR("") : op->lent, wire->tls ? op->lent : STR(""));
    }
}

static void piped_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);
    struct pipe *pipe = wire->pipe;

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    wire->pipe = NULL;
    wire->receiving = wire->receiving && result <= 0;
    wire->received += result > 0 ? (uint64_t)result : 0;
    wire->delivering = true;
    if (result < 0 && result != -ECANCELED)
        wire_fail(wire, wire_close_reason_of(result));
    else if (result == 0)
        peer_ended(wire);
    else if (result > 0 && wire->state == WIRE_OPEN)
        wire->events->piped(wire, (size_t)result);
    wire->delivering = false;
    wire_push(wire);
    wire_receive_start(wire);
    pipe_discard(pipe);
}

/* The peer closed, but may not have received all output: no event reports that, so it is polled. */
static void tail_due(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);
    struct loop *loop = wire->shared->loop;

    if (wire->state == WIRE_CLOSING)
        wire_finish_close(wire);
    else if (wire_unacknowledged(wire))
        loop_timer(loop, &wire->receive, loop->clock.monotonic_ms + LIMIT_TAIL_CHECK_MS);
    else
        wire_fail(wire, wire->end);
}

static void lingering_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    wire->received += result > 0 ? (uint64_t)result : 0;
    if (result == 0 && wire_unacknowledged(wire)) {
        wire->receive.done = tail_due;
        tail_due(op, 0);
    } else if (result <= 0 || wire->received > LIMIT_LINGERING_BYTES) {
        wire_fail(wire, wire->end);
    } else {
        loop_recv(wire->shared->loop, &wire->receive, wire->fd);
    }
}

static void watch_done(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);

    if (wire->state == WIRE_CLOSING)
        wire_finish_close(wire);
    else if (result > 0 && (result & (POLLERR | POLLHUP)))
        wire_fail(wire, WIRE_CLOSE_PEER_RESET);
    else
        wire_receive_start(wire);
}

void wire_receive_start(struct wire *wire)
{
    struct loop *loop = wire->shared->loop;

    if (wire->state == WIRE_CLOSING)
        return; /* an earlier push may have closed the wire: no new op, which the close would wait for */
    if (!op_idle(&wire->receive)) {
        bool lingering = wire->state == WIRE_LINGERING;

        if ((wire->receive.verb == OP_POLL && (wire->receiving || lingering)) ||
            (wire->receive.verb == OP_SPLICE && lingering))
            loop_cancel(loop, &wire->receive);
    } else if (wire->state == WIRE_LINGERING) {
        wire->receive.done = lingering_done;
        loop_recv(loop, &wire->receive, wire->fd);
    } else if (wire->receiving && wire->unread) {
        wire->receive.done = held_due;
        loop_timer(loop, &wire->receive, loop->clock.monotonic_ms);
    } else if (wire->receiving && wire->pipe) {
        wire->receive.done = piped_done;
        loop_splice(loop, &wire->receive, wire->fd, wire->pipe->to, wire->pipe_most, false);
    } else if (wire->receiving && !wire->peer_ended) {
        wire->receive.done = receive_done;
        loop_recv(loop, &wire->receive, wire->fd);
    } else if (wire->watching && wire->state == WIRE_OPEN) {
        wire->receive.done = watch_done;
        loop_poll(loop, &wire->receive, wire->fd, 0);
    }
}

void wire_receive(struct wire *wire)
{
    if (wire->receiving || wire->state != WIRE_OPEN || (wire->peer_ended && !wire->unread))
        return;
    wire->receiving = true;
    wire->watching = false;
    if (!wire->delivering)
        wire_receive_start(wire);
}

bool wire_pipes(const struct wire *wire)
{
    return wire->state == WIRE_OPEN && wire->sealing == SEALING_NONE && !wire->tls && !wire->unread &&
           !wire->receiving && !wire->peer_ended;
}

void wire_receive_pipe(struct wire *wire, struct pipe *pipe, size_t most)
{
    wire->pipe = pipe_hold(pipe);
    wire->pipe_most = most < LIMIT_PIPE_BYTES ? (uint32_t)most : LIMIT_PIPE_BYTES;
    wire_receive(wire);
}

bool wire_silent(const struct wire *wire)
{
    int bytes = 0;

    return !wire->unread && ioctl(wire->fd, FIONREAD, &bytes) == 0 && bytes == 0;
}

void wire_watch(struct wire *wire)
{
    if (wire->receiving || wire->state != WIRE_OPEN)
        return;
    wire->watching = true;
    if (!wire->delivering)
        wire_receive_start(wire);
}

void wire_linger(struct wire *wire)
{
    if (wire->peer_ended && !wire_unacknowledged(wire)) {
        wire_fail(wire, wire->end);
        return;
    }
    wire->state = WIRE_LINGERING;
    wire->receiving = false;
    wire->received = 0;
    if (!op_idle(&wire->receive) && wire->receive.verb == OP_RECV)
        wire->receive.done = lingering_done;
    else if (!wire->delivering)
        wire_receive_start(wire);
}
