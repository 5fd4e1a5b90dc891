/*
 * The end of a worker: at once, or after the open requests.
 */
#include "server/worker_end.h"

#include "server/connection.h"
#include "server/worker_listen.h"

#include <errno.h>

void worker_stop(struct worker *worker)
{
    if (worker->stopping)
        return;
    worker->stopping = true;
    worker_for_all_listeners(worker, listener_stop);
    connection_abort_all(worker);
    if (worker->stream)
        worker->stream->abort_all(worker);
}

static void drain_deadline_passed(struct op *op, int result)
{
    struct worker *worker = container_of(op, struct worker, drain_deadline);

    if (result == -ECANCELED)
        return;
    log_write(worker->log, LOG_NOTICE, "worker_shutdown_timeout: %u connections are closed before their end",
              worker->connections);
    worker_stop(worker);
}

void worker_drain(struct worker *worker, bool retiring)
{
    uint64_t timeout_ms = worker->configuration->main->worker_shutdown_timeout_ms;
    bool begun = worker->draining;

    if (worker->stopping || (begun && (retiring || !worker->retiring)))
        return;
    worker->draining = true;
    __atomic_store_n(&worker->shared->workers[worker->shared_index].facts.draining, 1, __ATOMIC_RELAXED);
    worker->retiring = retiring;
    connection_drain_all(worker);
    if (begun)
        return;
    worker_for_all_listeners(worker, listener_drain);
    upstream_pool_retire(worker->upstreams);
    worker->drain_deadline.done = drain_deadline_passed;
    if (timeout_ms > 0)
        loop_timer(&worker->loop, &worker->drain_deadline, worker->loop.clock.monotonic_ms + timeout_ms);
}
