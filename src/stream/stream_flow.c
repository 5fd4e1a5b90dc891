/*
 * One direction: see stream_flow.h. Bytes that `to` does not accept stay in `from`, which stops reading until `to` has
 * room.
 */
#include "stream/stream_flow.h"

#include "base/limits.h"

#include <errno.h>

/* A pipe is used after LIMIT_SPLICE_BYTES: for fewer bytes copying costs less. */
static bool may_splice(struct stream_flow *flow)
{
    if (flow->bytes < LIMIT_SPLICE_BYTES || !wire_can_receive_pipe(flow->from) ||
        !(wire_accepts(flow->to) & CHUNK_PIPE))
        return false;
    if (!flow->pipe)
        flow->pipe = pipe_pool_get(&flow->from->shared->pipes);
    return flow->pipe;
}

static void receive_more(struct stream_flow *flow);

static void pause_done(struct op *op, int result)
{
    struct stream_flow *flow = container_of(op, struct stream_flow, pause);

    if (!flow->to)
        flow->idle(flow);
    else if (result != -ECANCELED && wire_room(flow->to) > 0)
        receive_more(flow);
}

/* Returns true if more bytes were sent than the rate allows by now; then starts the timer for the next read. */
static bool rate_exceeded(struct stream_flow *flow)
{
    struct loop *loop = flow->from->shared->loop;
    uint64_t due_ms;

    if (flow->rate == 0)
        return false;
    due_ms = flow->began_ms + (uint64_t)((double)flow->bytes * 1000 / (double)flow->rate);
    if (due_ms <= loop->clock.monotonic_ms)
        return false;
    if (op_idle(&flow->pause))
        loop_timer(loop, &flow->pause, due_ms);
    return true;
}

/* Limits a read to the bytes of 0.1 s at the rate, which bounds the pause before the next read. */
static size_t pipe_read_limit(const struct stream_flow *flow)
{
    uint64_t tenth = flow->rate / 10 + 1;

    return flow->rate && tenth < LIMIT_PIPE_BYTES ? (size_t)tenth : LIMIT_PIPE_BYTES;
}

static void receive_more(struct stream_flow *flow)
{
    if (flow->ended || flow->from->receiving || rate_exceeded(flow))
        return;
    if (may_splice(flow))
        wire_receive_pipe(flow->from, flow->pipe, pipe_read_limit(flow));
    else
        wire_receive(flow->from);
}

static void flow_abort(struct stream_flow *flow)
{
    wire_close(flow->to, WIRE_CLOSE_ABORT);
}

/* Forwards the end after all bytes before it. */
static void forward_end(struct stream_flow *flow)
{
    if (!flow->ended || flow->end_forwarded || flow->pipe_bytes > 0)
        return;
    flow->end_forwarded = true;
    wire_finish(flow->to);
}

static void send_piped(struct stream_flow *flow)
{
    struct chunk chunk = {.kind = CHUNK_PIPE};

    chunk.pipe.source = flow->pipe;
    chunk.pipe.length = flow->pipe_bytes;
    chunk.pipe.whole = UINT64_MAX;
    flow->bytes += flow->pipe_bytes;
    flow->pipe_bytes = 0;
    if (wire_send(flow->to, &chunk) < 0)
        flow_abort(flow);
    else
        wire_flush(flow->to);
}

void stream_flow_start(struct stream_flow *flow, struct wire *from, struct wire *to)
{
    flow->from = from;
    flow->to = to;
    flow->pause.done = pause_done;
    flow->began_ms = from->shared->loop->clock.monotonic_ms;
    receive_more(flow);
}

size_t stream_flow_received(struct stream_flow *flow, struct str bytes)
{
    size_t room = wire_room(flow->to);
    struct chunk chunk = {.kind = CHUNK_BYTES, .bytes = str_slice(bytes, 0, room)};

    if (str_empty(bytes)) {
        flow->ended = true;
        forward_end(flow);
        return 0;
    }
    if (room == 0)
        return 0;
    if (wire_send(flow->to, &chunk) < 0) {
        flow_abort(flow);
        return bytes.length;
    }
    flow->bytes += chunk.bytes.length;
    wire_flush(flow->to);
    if (wire_room(flow->to) > 0)
        receive_more(flow);
    return chunk.bytes.length;
}

void stream_flow_piped(struct stream_flow *flow, size_t count)
{
    flow->pipe_bytes = count;
    stream_flow_writable(flow);
}

void stream_flow_writable(struct stream_flow *flow)
{
    if (!flow->to || wire_room(flow->to) == 0)
        return;
    if (flow->pipe_bytes > 0)
        send_piped(flow);
    forward_end(flow);
    if (wire_room(flow->to) > 0)
        receive_more(flow);
}

void stream_flow_stop(struct stream_flow *flow)
{
    if (flow->from)
        loop_cancel(flow->from->shared->loop, &flow->pause);
    pipe_discard(flow->pipe);
    flow->pipe = NULL;
    flow->from = flow->to = NULL;
}
