/*
 * The helper threads: a queue of ops to them, protected by a mutex; a lock-free list of returned ops; and an eventfd
 * that wakes the loop. While a thread has an op, the loop accesses only the op's `state`, and the thread all other
 * fields.
 *
 * The loop never waits for a lock that a helper thread holds while waking it: the helper has the lower priority, and
 * on a shared CPU it would run last.
 */
#include "io/helpers.h"

#include "base/limits.h"
#include "io/backend.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_SIZE  (512 * 1024)
#define HELPER_NICE 10

struct helpers {
    struct loop *loop;
    struct op wake;                 /* polls the eventfd; not counted in the loop's in_flight */
    int eventfd;
    unsigned thread_count;          /* used by the loop's thread */
    pthread_t threads[LIMIT_HELPER_THREADS];

    _Atomic(struct list *) returned; /* newest first, linked by `next`; NULL: none */

    pthread_mutex_t mutex;          /* protects the fields below */
    pthread_cond_t work_available;
    struct list waiting;
    unsigned waiting_count;
    unsigned idle_count;
    bool stopping;
};

int helpers_offload(struct op *op)
{
    return op->offload.work(op->offload.argument);
}

/* Writes the eventfd only if the list was empty: the loop then collects all ops of the list. */
static void return_op(struct helpers *helpers, struct op *op)
{
    const uint64_t one = 1;
    struct list *before = atomic_load_explicit(&helpers->returned, memory_order_relaxed);

    do
        op->link.next = before;
    while (!atomic_compare_exchange_weak_explicit(&helpers->returned, &before, &op->link, memory_order_release,
                                                  memory_order_relaxed));
    if (!before && write(helpers->eventfd, &one, sizeof(one)) < 0)
        abort(); /* the counter of the eventfd cannot overflow here */
}

/* Removes the returned ops, in the order of their return. */
static void collect_returned(struct helpers *helpers, struct list *out)
{
    struct list *link = atomic_exchange_explicit(&helpers->returned, NULL, memory_order_acquire);

    list_init(out);
    while (link) {
        struct list *before = link->next;

        list_insert_before(out->next, link);
        link = before;
    }
}

/*
 * Lowers the thread's priority (Linux: nice is per thread): filling the page cache takes more CPU time than sending a
 * response.
 */
static void lower_priority(void)
{
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + HELPER_NICE);
}

static void *thread_main(void *argument)
{
    struct helpers *helpers = argument;

    lower_priority();
    pthread_mutex_lock(&helpers->mutex);
    while (!helpers->stopping) {
        struct list *link = list_pop(&helpers->waiting);
        struct op *op;

        if (!link) {
            helpers->idle_count++;
            pthread_cond_wait(&helpers->work_available, &helpers->mutex);
            helpers->idle_count--;
            continue;
        }
        helpers->waiting_count--;
        op = container_of(link, struct op, link);
        pthread_mutex_unlock(&helpers->mutex);
        op->result = op->work(op);
        return_op(helpers, op);
        pthread_mutex_lock(&helpers->mutex);
    }
    pthread_mutex_unlock(&helpers->mutex);
    return NULL;
}

/*
 * Only the loop's thread handles signals: helper threads block them. SIGSYS is not blocked, for the handler of the
 * sandbox.
 */
static void start_thread(struct helpers *helpers)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;

    if (helpers->thread_count == LIMIT_HELPER_THREADS || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&all);
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&helpers->threads[helpers->thread_count], &attributes, thread_main, helpers) == 0)
        helpers->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Finishes or defers an op whose work is done, on a helper thread or on the loop's. */
static void op_returned(struct loop *loop, struct op *op)
{
    if (op->state == OP_STATE_CANCELLING) {
        loop_finish(loop, op, -ECANCELED);
    } else if (op->verb == OP_SENDFILE) {
        loop_defer(loop, op);
    } else if (op->verb == OP_READ) {
        loop_finish_large(loop, op, op->result);
    } else {
        loop_finish(loop, op, op->result);
    }
}

static void watch_returned(struct helpers *helpers)
{
    loop_poll(helpers->loop, &helpers->wake, helpers->eventfd, POLLIN);
    helpers->loop->in_flight--;
}

static void returned_ready(struct op *wake, int result)
{
    struct helpers *helpers = container_of(wake, struct helpers, wake);
    struct list all;
    struct list *link;
    uint64_t count;

    helpers->loop->in_flight++;
    if (result == -ECANCELED || helpers->stopping)
        return;
    if (read(helpers->eventfd, &count, sizeof(count)) < 0)
        count = 0; /* read first: an op returned later writes the eventfd again */
    collect_returned(helpers, &all);
    while ((link = list_pop(&all)) != NULL)
        op_returned(helpers->loop, container_of(link, struct op, link));
    watch_returned(helpers);
}

static struct helpers *helpers_create(struct loop *loop)
{
    struct helpers *helpers = calloc(1, sizeof(*helpers));

    if (!helpers)
        return NULL;
    helpers->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (helpers->eventfd < 0) {
        free(helpers);
        return NULL;
    }
    helpers->loop = loop;
    helpers->wake.done = returned_ready;
    pthread_mutex_init(&helpers->mutex, NULL);
    pthread_cond_init(&helpers->work_available, NULL);
    list_init(&helpers->waiting);
    watch_returned(helpers);
    return helpers;
}

/* True if a thread will run op; op->result is -EBUSY if it may not be queued. */
static bool enqueue_op(struct helpers *helpers, struct op *op)
{
    bool taken;

    pthread_mutex_lock(&helpers->mutex);
    if (helpers->idle_count <= helpers->waiting_count)
        start_thread(helpers);
    taken = helpers->thread_count > 0;
    if (taken && op->verb == OP_OFFLOAD && helpers->waiting_count >= LIMIT_HELPER_QUEUE) {
        taken = false;
        op->result = -EBUSY;
    }
    if (taken) {
        list_push(&helpers->waiting, &op->link);
        helpers->waiting_count++;
        pthread_cond_signal(&helpers->work_available);
    }
    pthread_mutex_unlock(&helpers->mutex);
    return taken;
}

void helpers_submit(struct loop *loop, struct op *op, int (*work)(struct op *op))
{
    op->work = work;
    op->result = 0;
    if (!loop->helpers)
        loop->helpers = helpers_create(loop);
    op->state = OP_STATE_OFFLOADED;
    if (loop->helpers && enqueue_op(loop->helpers, op))
        return;
    if (op->result == 0)
        op->result = work(op);
    op_returned(loop, op);
}

void helpers_cancel(struct loop *loop, struct op *op)
{
    struct helpers *helpers = loop->helpers;
    bool removed = false;

    pthread_mutex_lock(&helpers->mutex);
    for (struct list *link = helpers->waiting.next; link != &helpers->waiting && !removed; link = link->next)
        removed = link == &op->link;
    if (removed) {
        list_remove(&op->link);
        helpers->waiting_count--;
    }
    pthread_mutex_unlock(&helpers->mutex);
    if (removed)
        loop_finish(loop, op, -ECANCELED);
    else
        op->state = OP_STATE_CANCELLING;
}

void helpers_stop(struct loop *loop)
{
    struct helpers *helpers = loop->helpers;

    if (!helpers)
        return;
    pthread_mutex_lock(&helpers->mutex);
    helpers->stopping = true;
    pthread_cond_broadcast(&helpers->work_available);
    pthread_mutex_unlock(&helpers->mutex);
    for (unsigned i = 0; i < helpers->thread_count; i++)
        pthread_join(helpers->threads[i], NULL);
    loop_cancel_without_helper(loop, &helpers->wake);
}

bool helpers_stopped(const struct loop *loop)
{
    return !loop->helpers || op_idle(&loop->helpers->wake);
}

void helpers_destroy(struct loop *loop)
{
    struct helpers *helpers = loop->helpers;

    if (!helpers)
        return;
    loop->helpers = NULL;
    loop_close_fd(loop, helpers->eventfd);
    pthread_cond_destroy(&helpers->work_available);
    pthread_mutex_destroy(&helpers->mutex);
    free(helpers);
}
