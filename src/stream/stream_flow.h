/*
 * One direction of a connection that is passed on: bytes from one wire to another, copied while they are few, by
 * splice once they are many and both wires allow it. Its end is passed on, too. With a rate no more is asked for than the time so far
 * allows, so that the sender is slowed down, and nothing piles up here.
 */
#ifndef STREAM_STREAM_FLOW_H
#define STREAM_STREAM_FLOW_H

#include "wire/wire.h"

struct stream_flow {
    struct wire *from, *to;
    struct pipe *pipe;              /* held; NULL: bytes are copied */
    size_t piped;                   /* bytes in the pipe that are not given to `to` yet */
    uint64_t bytes;                 /* that were given to `to` */
    uint64_t rate;                  /* bytes a second; 0: as fast as may be */
    uint64_t began_ms;              /* when the first of them were asked for */
    struct op pause;                /* until more may be asked for */
    void (*idle)(struct stream_flow *flow); /* after stream_flow_stop: the pause is over, if there was one */
    bool ended;                     /* `from` has said all */
    bool over;                      /* and `to` was told */
};

/* Both wires are open: asks for the first bytes. `rate` and `idle` are set, or 0 and NULL. */
void stream_flow_start(struct stream_flow *flow, struct wire *from, struct wire *to);
/* `from` received: returns what was taken. */
size_t stream_flow_received(struct stream_flow *flow, struct str bytes);
void stream_flow_piped(struct stream_flow *flow, size_t count);
/* `to` has room again. */
void stream_flow_room(struct stream_flow *flow);
/* One wire is gone: lets go of the pipe. Accepts one that was never started. The flow's memory is its own until stream_flow_idle. */
void stream_flow_stop(struct stream_flow *flow);
/* True where nothing of it is in flight: else `idle` follows. */
static inline bool stream_flow_idle(const struct stream_flow *flow)
{
    return op_idle(&flow->pause);
}

#endif
