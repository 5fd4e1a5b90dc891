/* Pipes for splice(2): see pipe_pool.h. */
#include "wire/pipe_pool.h"

#include "base/limits.h"
#include "io/loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void pipe_pool_init(struct pipe_pool *pool, struct loop *loop)
{
    *pool = (struct pipe_pool){.loop = loop};
    list_init(&pool->idle);
}

static void pipe_destroy(struct pipe *pipe)
{
    struct pipe_pool *pool = pipe->pool;

    loop_close_fd(pool->loop, pipe->from);
    loop_close_fd(pool->loop, pipe->to);
    pool->open--;
    free(pipe);
}

static struct pipe *pop_idle_pipe(struct pipe_pool *pool)
{
    struct list *link = list_pop(&pool->idle);

    if (!link)
        return NULL;
    pool->free_count--;
    return container_of(link, struct pipe, link);
}

void pipe_pool_finish(struct pipe_pool *pool)
{
    struct pipe *pipe;

    while (pool->loop && (pipe = pop_idle_pipe(pool)) != NULL)
        pipe_destroy(pipe);
}

/* Beyond pipe-user-pages-soft the kernel creates small pipes; splicing through them costs more than copying. */
static bool is_worth_pooling(int fd)
{
    return fcntl(fd, F_SETPIPE_SZ, LIMIT_PIPE_BYTES) >= LIMIT_PIPE_MIN ||
           fcntl(fd, F_GETPIPE_SZ) >= LIMIT_PIPE_MIN;
}

static struct pipe *pipe_create(struct pipe_pool *pool)
{
    struct pipe *made = pool->open < LIMIT_PIPES ? calloc(1, sizeof(*made)) : NULL;
    int ends[2];

    if (!made || pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0) {
        free(made);
        return NULL;
    }
    *made = (struct pipe){.pool = pool, .from = ends[0], .to = ends[1]};
    list_init(&made->link);
    pool->open++;
    if (is_worth_pooling(made->to))
        return made;
    pipe_destroy(made);
    return NULL;
}

struct pipe *pipe_pool_get(struct pipe_pool *pool)
{
    struct pipe *pipe = pop_idle_pipe(pool);

    if (!pipe)
        pipe = pipe_create(pool);
    return pipe ? pipe_hold(pipe) : NULL;
}

struct pipe *pipe_hold(struct pipe *pipe)
{
    pipe->users++;
    return pipe;
}

static bool is_empty(const struct pipe *pipe)
{
    int bytes = 0;

    return ioctl(pipe->from, FIONREAD, &bytes) == 0 && bytes == 0;
}

void pipe_discard(struct pipe *pipe)
{
    struct pipe_pool *pool;

    if (!pipe || --pipe->users > 0)
        return;
    pool = pipe->pool;
    if (pool->free_count >= LIMIT_FREE_PIPES || !is_empty(pipe)) {
        pipe_destroy(pipe);
        return;
    }
    pool->free_count++;
    list_insert_before(pool->idle.next, &pipe->link);
}
