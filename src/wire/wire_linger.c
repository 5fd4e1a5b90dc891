/*
 * The lingering close: the sending side is shut down, and input is discarded until the peer closes.
 */
#include "wire/wire_queue.h"

#include "base/limits.h"

/* After the peer's FIN: checks at intervals whether TCP has unacknowledged bytes, since no event reports it. */
static void unacknowledged_timer_expired(struct op *op, int result)
{
    struct wire *wire = container_of(op, struct wire, receive);
    struct loop *loop = wire->shared->loop;

    if (wire->state == WIRE_CLOSING)
        wire_finish_close(wire);
    else if (wire_unacknowledged(wire))
        loop_timer(loop, &wire->receive, loop->clock.monotonic_ms + LIMIT_UNACKNOWLEDGED_CHECK_MS);
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
        wire->receive.done = unacknowledged_timer_expired;
        unacknowledged_timer_expired(op, 0);
    } else if (result <= 0 || wire->received > LIMIT_LINGERING_BYTES) {
        wire_fail(wire, wire->end);
    } else {
        loop_recv(wire->shared->loop, &wire->receive, wire->fd);
    }
}

void wire_linger_receive(struct wire *wire)
{
    struct loop *loop = wire->shared->loop;

    if (op_idle(&wire->receive)) {
        wire->receive.done = lingering_done;
        loop_recv(loop, &wire->receive, wire->fd);
    } else if (wire->receive.verb == OP_POLL || wire->receive.verb == OP_SPLICE) {
        loop_cancel(loop, &wire->receive); /* its completion starts the receive */
    }
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
        wire_linger_receive(wire);
}
