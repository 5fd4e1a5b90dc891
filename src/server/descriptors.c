/*
 * Handling of file descriptor exhaustion: see descriptors.h.
 */
#include "server/descriptors.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "server/connection_internal.h"

#include <errno.h>

bool descriptors_exhausted(int error)
{
    return error == -EMFILE || error == -ENFILE;
}

static bool is_idle(const struct connection *connection)
{
    return connection->session && wire_drained(&connection->wire) &&
           connection->session->protocol->phase(connection->session) == SESSION_IDLE;
}

/* Closes without lingering or close_notify, which would delay the release of the descriptors. */
static unsigned close_idle_clients(struct worker *worker)
{
    unsigned count = 0;

    for (struct list *link = worker->connection_list.next; link != &worker->connection_list && count < LIMIT_RECLAIMED;
         link = link->next) {
        struct connection *connection = container_of(link, struct connection, link);

        if (connection->wire.state == WIRE_OPEN && is_idle(connection)) {
            wire_close(&connection->wire, WIRE_CLOSE_ABORT);
            count++;
        }
    }
    return count;
}

static void log_exhaustion(struct worker *worker, unsigned clients, unsigned upstreams)
{
    if (!log_limit_allows(&worker->log_limits.reclaim, worker->loop.clock.monotonic_ms))
        return;
    log_write(worker->log, LOG_CRIT,
              "out of file descriptors: %u idle client and %u idle upstream connections are closed; raise the "
              "limit of open files (RLIMIT_NOFILE; of the system: fs.file-max), or lower worker_connections",
              clients, upstreams);
}

bool descriptors_reclaim(struct worker *worker)
{
    uint64_t now_ms = worker->loop.clock.monotonic_ms;
    unsigned clients;
    unsigned upstreams;

    if (worker->exhausted.reclaimed_ms && u64_sub_sat(now_ms, worker->exhausted.reclaimed_ms) < LIMIT_RECLAIM_MS)
        return worker->exhausted.reclaimed;
    worker->exhausted.reclaimed_ms = now_ms;
    clients = close_idle_clients(worker);
    upstreams = upstream_pool_close_idle(worker->upstreams);
    worker->exhausted.reclaimed = clients + upstreams > 0;
    log_exhaustion(worker, clients, upstreams);
    return worker->exhausted.reclaimed;
}
