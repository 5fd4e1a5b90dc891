/*
 * Pipes for splice(2) from one socket to another without copying. A worker keeps LIMIT_FREE_PIPES empty ones; a pipe
 * with bytes left in it is closed and never reused (rule 18).
 */
#ifndef WIRE_PIPE_POOL_H
#define WIRE_PIPE_POOL_H

#include "base/list.h"

struct loop;

struct pipe {
    struct pipe_pool *pool;
    struct list link;               /* in pool->idle */
    int from, to;                   /* read end, write end; non-blocking */
    unsigned users;
};

struct pipe_pool {
    struct loop *loop;
    struct list idle;               /* empty pipes, most recently used first */
    unsigned open, free_count;      /* existing pipes, and idle ones among them */
};

/* Initialises an empty pool; `loop` outlives it. */
void pipe_pool_init(struct pipe_pool *pool, struct loop *loop);
/* All pipes must have been released. Accepts a zeroed struct. */
void pipe_pool_finish(struct pipe_pool *pool);

/*
 * Takes an empty pipe with one reference. NULL: LIMIT_PIPES are in use, or the kernel grants no sufficiently large one;
 * the caller then copies the bytes.
 */
struct pipe *pipe_pool_get(struct pipe_pool *pool);
/* Adds a reference. */
struct pipe *pipe_hold(struct pipe *pipe);
/* Drops a reference; the last one returns an empty pipe to the pool and closes any other. Accepts NULL. */
void pipe_discard(struct pipe *pipe);

#endif
