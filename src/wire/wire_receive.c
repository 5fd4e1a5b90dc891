/*
 * Receiving: the wire decrypts the bytes from the loop and passes them to the owner. The wire copies unconsumed bytes,
 * at most those of one receive, and requests no further input until the owner has consumed them (backpressure).
 */
#include "wire/wire_queue.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Received and not consumed: decrypted bytes, then the ciphertext after them. */
struct wire_unread {
    size_t plain;
    size_t cipher;
    char bytes[];
};

static bool store_unread(struct wire *wire, struct str plain, struct str cipher)
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

/* Passes bytes to the owner; true while it consumes all. */
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
    if (!store_unread(wire, str_skip(plain, taken), cipher))
        wire_fail(wire, WIRE_CLOSE_ABORT);
    return false;
}

/* Decrypts and delivers until the session needs more ciphertext or the owner stops consuming. */
static void read_records(struct wire *wire, struct str cipher)
{
    while (wire->state == WIRE_OPEN) {
        ssize_t count = tls_session_read(wire->tls, wire->shared->plaintext, RECORD_INNER_MAX);
        size_t left = tls_session_input_left(wire->tls);

        if (wire->state != WIRE_OPEN || count == -EAGAIN)
            return;
        if (count == 0) {
            peer_ended(wire);
            return;
        }
        if (count < 0) {
            wire_tls_failed(wire);
            return;
        }
        if (!deliver_plaintext(wire, str_of(wire->shared->plaintext, (size_t)count),
                               str_skip(cipher, size_sub_sat(cipher.length, left))))
            return;
    }
}

static void deliver_bytes(struct wire *wire, struct str plain, struct str cipher)
{
    wire->delivering = true;
    if (deliver_plaintext(wire, plain, cipher) && wire->tls) {
        tls_session_set_input(wire->tls, cipher);
        if (wire->state == WIRE_OPEN || wire_handshake_step(wire))
            read_records(wire, cipher);
        if (wire->tls)
            (void)tls_session_return_input(wire->tls); /* kept, or dropped with the connection */
    }
    wire->delivering = false;
    if (wire->state == WIRE_CLOSING)
        return;
    wire_push(wire); /* alerts, tickets and handshake messages */
    wire_receive_start(wire);
}

static void unread_due(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);
    struct wire_unread *unread = wire->unread;

    if (wire->state == WIRE_CLOSING) {
        wire_finish_close(wire);
        return;
    }
    wire->unread = NULL;
    if (wire->state == WIRE_OPEN)
        deliver_bytes(wire, str_of(unread->bytes, unread->plain),
                      str_of(unread->bytes + unread->plain, unread->cipher));
    else if (wire->state == WIRE_LINGERING)
        wire_receive_start(wire);
    free(unread);
}

/* The header is complete: TLS begins, or the wire is open. */
static void proxy_header_received(struct wire *wire, const struct proxy_header *header, struct str rest)
{
    wire->events->proxy_header(wire, header);
    if (wire->state != WIRE_HANDSHAKE)
        return;
    if (wire->tls) {
        deliver_bytes(wire, STR(""), rest);
        return;
    }
    wire->state = WIRE_OPEN;
    wire->receiving = false;
    wire->delivering = true;
    wire->events->opened(wire);
    wire->delivering = false;
    wire_push(wire);
    if (wire->state != WIRE_OPEN)
        return;
    if (wire->receiving)
        deliver_bytes(wire, rest, STR(""));
    else if (!str_empty(rest) && !store_unread(wire, rest, STR("")))
        wire_fail(wire, WIRE_CLOSE_ABORT);
}

static void receive_proxy_header(struct wire *wire, struct str bytes)
{
    struct proxy_header header;
    ssize_t taken = wire_proxy_header_collect(wire, bytes, &header);

    if (taken == -EAGAIN) {
        wire_receive_start(wire);
    } else if (taken < 0) {
        wire_log(wire, LOG_INFO, "invalid or missing PROXY protocol header", 0);
        wire_fail(wire, WIRE_CLOSE_PROTOCOL);
    } else {
        proxy_header_received(wire, &header, str_skip(bytes, (size_t)taken));
    }
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
        wire->truncated = wire->tls != NULL;
        peer_ended(wire);
    } else if (wire->state == WIRE_DRAINING) { /* the wire is closing: the bytes are discarded */
        wire->received += (uint64_t)result;
        wire->receiving = false;
    } else {
        wire->received += (uint64_t)result;
        if (wire->proxy_header)
            receive_proxy_header(wire, op->received);
        else
            deliver_bytes(wire, wire->tls ? STR("") : op->received, wire->tls ? op->received : STR(""));
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
    if (wire->state == WIRE_LINGERING) {
        wire_linger_receive(wire);
    } else if (!op_idle(&wire->receive)) {
        if (wire->receive.verb == OP_POLL && wire->receiving)
            loop_cancel(loop, &wire->receive);
    } else if (wire->receiving && wire->unread) {
        wire->receive.done = unread_due;
        loop_timer(loop, &wire->receive, loop->clock.monotonic_ms);
    } else if (wire->receiving && wire->pipe) {
        wire->receive.done = piped_done;
        loop_splice(loop, &wire->receive, wire->fd, wire->pipe->to, wire->pipe_max, false);
    } else if (wire->receiving && !wire->peer_ended) {
        wire->receive.done = receive_done;
        if (wire->receives_large)
            loop_recv_large(loop, &wire->receive, wire->fd);
        else
            loop_recv(loop, &wire->receive, wire->fd);
    } else if (wire->watching && wire->state == WIRE_OPEN) {
        wire->receive.done = watch_done;
        loop_poll(loop, &wire->receive, wire->fd, 0);
    }
}

static void request_input(struct wire *wire, bool large)
{
    if (wire->receiving || wire->state != WIRE_OPEN || (wire->peer_ended && !wire->unread))
        return;
    wire->receiving = true;
    wire->receives_large = large;
    wire->watching = false;
    if (!wire->delivering)
        wire_receive_start(wire);
}

void wire_receive(struct wire *wire)
{
    request_input(wire, false);
}

void wire_receive_large(struct wire *wire)
{
    request_input(wire, true);
}

bool wire_can_receive_pipe(const struct wire *wire)
{
    return wire->state == WIRE_OPEN && wire->sealing == SEALING_NONE && !wire->tls && !wire->unread &&
           !wire->receiving && !wire->peer_ended;
}

void wire_receive_pipe(struct wire *wire, struct pipe *pipe, size_t max)
{
    wire->pipe = pipe_hold(pipe);
    wire->pipe_max = max < LIMIT_PIPE_BYTES ? (uint32_t)max : LIMIT_PIPE_BYTES;
    wire_receive(wire);
}

bool wire_has_no_input(const struct wire *wire)
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
