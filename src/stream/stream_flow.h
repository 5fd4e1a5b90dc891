/*
 * One direction of a proxied connection: transfers bytes from one wire to another, by copying at first, by splice after
 * LIMIT_SPLICE_BYTES if both wires support it; then forwards the end. With a rate, reading pauses while more bytes were
 * sent than the elapsed time allows: TCP flow control then slows the sender, and no bytes accumulate in the server.
 */
#ifndef STREAM_STREAM_FLOW_H
#define STREAM_STREAM_FLOW_H

#include "wire/wire.h"

struct stream_flow {
    struct wire *from, *to;
    struct pipe *pipe;                      /* held; NULL: bytes are copied */
    size_t pipe_bytes;                      /* bytes in the pipe not yet passed to `to` */
    uint64_t bytes;                         /* number of bytes passed to `to` */
    uint64_t rate;                          /* bytes per second; 0: unlimited */
    uint64_t began_ms;                      /* time of stream_flow_start */
    struct op pause;                        /* timer until the next read */
    void (*idle)(struct stream_flow *flow); /* called after stream_flow_stop when a pending pause has ended */
    bool ended;                             /* `from` has ended */
    bool end_forwarded;                     /* the end was forwarded to `to` */
};

/* Starts reading; both wires are open. The caller has set `rate`, and with a rate `idle`. */
void stream_flow_start(struct stream_flow *flow, struct wire *from, struct wire *to);
/* Sends bytes that `from` has received; returns the number taken. No bytes: the end, which is forwarded. */
size_t stream_flow_received(struct stream_flow *flow, struct str bytes);
/* Sends `count` bytes that `from` has received into the pipe. */
void stream_flow_piped(struct stream_flow *flow, size_t count);
/* Called when `to` has room again. */
void stream_flow_writable(struct stream_flow *flow);
/*
 * Stops the flow before one of its wires is closed: releases the pipe; `to` still sends the bytes that it has queued.
 * Accepts a flow that was never started. The flow's memory must stay valid until stream_flow_idle.
 */
void stream_flow_stop(struct stream_flow *flow);
/* Returns true if no operation is in flight; else `idle` follows. */
static inline bool stream_flow_idle(const struct stream_flow *flow)
{
    return op_idle(&flow->pause);
}

#endif
