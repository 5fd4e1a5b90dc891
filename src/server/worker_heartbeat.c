/*
 * The heartbeat of a worker: see worker_heartbeat.h.
 */
#include "server/worker_heartbeat.h"

#include <errno.h>

static void heartbeat_due(struct op *op, int result)
{
    struct worker *worker = container_of(op, struct worker, heartbeat);

    if (result == -ECANCELED)
        return;
    __atomic_fetch_add(&worker->shared->workers[worker->shared_index].heartbeat, 1, __ATOMIC_RELAXED);
    loop_timer(&worker->loop, op, worker->loop.clock.monotonic_ms +
                                      worker_heartbeat_interval_ms(worker->configuration->main));
}

void worker_heartbeat_start(struct worker *worker)
{
    worker->heartbeat.done = heartbeat_due;
    if (worker->channel_fd >= 0 && worker_heartbeat_interval_ms(worker->configuration->main) > 0)
        loop_timer(&worker->loop, &worker->heartbeat, worker->loop.clock.monotonic_ms);
}

void worker_heartbeat_stop(struct worker *worker)
{
    loop_cancel(&worker->loop, &worker->heartbeat);
}
