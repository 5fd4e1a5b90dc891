/*
 * The end of a wire: the abort, which cancels ops in flight, and the last completion, which releases the wire. The
 * orderly close is in wire_push.c until everything is sent.
 */
#include "wire/wire_queue.h"

#include "wire/file_view.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

void wire_log(struct wire *wire, enum log_level level, const char *what, int error)
{
    if (error)
        log_write(wire->shared->log, level, "%s (%d: %s), fd %d", what, -error, strerror(-error), wire->fd);
    else
        log_write(wire->shared->log, level, "%s, fd %d", what, wire->fd);
}

enum wire_close_reason wire_close_reason_of(int error)
{
    return error == -ETIMEDOUT ? WIRE_CLOSE_TIMEOUT : WIRE_CLOSE_PEER_RESET;
}

void wire_release_span_pipe(struct wire *wire)
{
    if (wire->span.kind != CHUNK_PIPE)
        return;
    pipe_discard(wire->span.pipe.source);
    wire->span.pipe.source = NULL;
}

static void cancel_all(struct wire *wire)
{
    loop_cancel(wire->shared->loop, &wire->receive);
    loop_cancel(wire->shared->loop, &wire->send);
    if (wire->reading)
        loop_cancel(wire->shared->loop, &wire->reading->read);
}

static bool in_flight(const struct wire *wire)
{
    return !op_idle(&wire->receive) || !op_idle(&wire->send) ||
           (wire->reading && !op_idle(&wire->reading->read));
}

static void last_step(struct op *op, int result)
{
    wire_finish_close(container_of(op, struct wire, receive));
}

void wire_fail(struct wire *wire, enum wire_close_reason end)
{
    if (wire->state == WIRE_CLOSING)
        return;
    wire->state = WIRE_CLOSING;
    wire->end = (uint8_t)end;
    if (in_flight(wire)) {
        cancel_all(wire);
        return;
    }
    wire->receive.done = last_step; /* not inside the owner's call */
    loop_timer(wire->shared->loop, &wire->receive, wire->shared->loop->clock.monotonic_ms);
}

/* Discards output queued in the kernel and closes by RST. */
static void set_reset_on_close(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static bool ends_with_reset(const struct wire *wire)
{
    if (wire->end == WIRE_CLOSE_BROKEN)
        return true;
    return wire->settings->reset_timed_out &&
           (wire->end == WIRE_CLOSE_TIMEOUT || wire->end == WIRE_CLOSE_REFUSED);
}

/* The owner may still inspect session and socket (for its log); after `closed` the wire itself may be freed. */
void wire_finish_close(struct wire *wire)
{
    struct wire_shared *shared = wire->shared;
    struct tls_session *tls = wire->tls;
    int fd = wire->fd;

    if (in_flight(wire))
        return;
    output_block_release_all(shared, wire->first);
    output_block_release(shared, wire->reading);
    file_view_release(shared, &wire->transfer.view);
    wire->first = wire->last = wire->reading = NULL;
    free(wire->unread);
    free(wire->proxy_header);
    wire->unread = NULL;
    pipe_discard(wire->pipe);
    wire->pipe = NULL;
    wire_release_span_pipe(wire);
    wire->proxy_header = NULL;
    record_release(shared->cipher_contexts, &wire->cipher_context);
    record_key_wipe(&wire->key);
    if (ends_with_reset(wire))
        set_reset_on_close(fd);
    wire->events->closed(wire, wire->end);
    tls_session_destroy(tls);
    loop_close_fd(shared->loop, fd);
}
