/*
 * Pipes through which bytes pass from one socket to another without being copied: splice(2) wants one in
 * between. A worker keeps a few; one with bytes left in it is closed, never used again (rule 18).
 */
#ifndef WIRE_PIPE_POOL_H
#define WIRE_PIPE_POOL_H

#include "base/list.h"

struct loop;

struct pipe {
    struct pipe_pool *pool;
    struct list link;               /* in pool->idle */
    int from, to;                   /* its read end, its write end; not blocking */
    unsigned users;
};

struct pipe_pool {
    struct loop *loop;
    struct list idle;               /* empty pipes, the one used last in front */
    unsigned open, kept;            /* pipes there are, and those of them that are idle */
};

void pipe_pool_init(struct pipe_pool *pool, struct loop *loop);
/* All pipes have been dropped. Accepts a zeroed struct. */
void pipe_pool_finish(struct pipe_pool *pool);

/* An empty pipe with one user. NULL: LIMIT_PIPES are in use, or the system has none that is worth it; then bytes are copied. */
struct pipe *pipe_take(struct pipe_pool *pool);
/* One more user. */
struct pipe *pipe_hold(struct pipe *pipe);
/* One user less; after the last one it is kept where it is empty, else closed. Accepts NULL. */
void pipe_drop(struct pipe *pipe);

#endif
