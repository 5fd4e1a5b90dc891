/*
 * One direction of a connection that is passed on: bytes from one wire to another, copied while they are few, by
 * splice once they are many and both wires allow it. Its end is passed on, too.
 */
#ifndef SERVER_STREAM_FLOW_H
#define SERVER_STREAM_FLOW_H

#include "wire/wire.h"

struct stream_flow {
    struct wire *from, *to;
    struct pipe *pipe;              /* held; NULL: bytes are copied */
    size_t piped;                   /* bytes in the pipe that are not given to `to` yet */
    uint64_t bytes;                 /* that were given to `to` */
    bool ended;                     /* `from` has said all */
    bool over;                      /* and `to` was told */
};

/* Both wires are open: asks for the first bytes. */
void stream_flow_start(struct stream_flow *flow, struct wire *from, struct wire *to);
/* `from` received: returns what was taken. */
size_t stream_flow_received(struct stream_flow *flow, struct str bytes);
void stream_flow_piped(struct stream_flow *flow, size_t count);
/* `to` has room again. */
void stream_flow_room(struct stream_flow *flow);
/* One wire is gone: lets go of the pipe. Accepts one that was never started. */
void stream_flow_stop(struct stream_flow *flow);

#endif
