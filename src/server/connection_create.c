/*
 * Creates and releases connections, within the limits of their number and of the memory for output. The path of a
 * request through a connection: connection.c.
 */
#include "server/connection_debug.h"
#include "server/connection_internal.h"

#include "base/limits.h"
#include "server/worker_listen.h"

#include <errno.h>
#include <stdlib.h>

static bool connections_full(const struct worker *worker)
{
    return worker->connections >= worker->configuration->main->worker_connections ||
           worker->wires.output_bytes >= worker->wires.output_max;
}

void connection_limit_accept(struct worker *worker)
{
    bool pause = connections_full(worker);

    if (pause == worker->paused)
        return;
    worker->paused = pause;
    if (pause && log_limit_allows(&worker->log_limits.pause, worker->loop.clock.monotonic_ms))
        log_write(worker->log, LOG_WARN, "accepting is paused: %u connections, %zu bytes of queued output",
                  worker->connections, worker->wires.output_bytes);
    worker_listen_pause(worker);
}

static struct connection *connection_allocate(struct worker *worker)
{
    struct list *link = list_pop(&worker->free_connections);

    if (!link)
        return malloc(sizeof(struct connection));
    worker->free_connection_count--;
    return container_of(link, struct connection, link);
}

static struct connection *connection_init(struct worker *worker, const union proxy_address *peer)
{
    struct connection *connection = connection_allocate(worker);

    if (!connection)
        return NULL;
    *connection = (struct connection){
        .worker = worker,
        .peer = *peer,
        .opened_s = (uint32_t)(worker->loop.clock.monotonic_ms / 1000),
        .number = __atomic_add_fetch(&worker->shared->connection_number, 1, __ATOMIC_RELAXED)};
    connection->debug = connection_debug_is_on(worker, peer);
    list_init(&connection->woken);
    list_push(&worker->connection_list, &connection->link);
    return connection;
}

bool connection_reserve(struct worker *worker, const union proxy_address *peer)
{
    int error;

    if (worker->stopping) /* the connection would never be closed */
        return false;
    error = connection_address_reserve(worker, peer);
    if (error == -ENOMEM)
        connection_log_memory(worker);
    if (error < 0)
        return false;
    worker->connections++;
    worker->counters->accepted++;
    connection_limit_accept(worker);
    return true;
}

void connection_unreserve(struct worker *worker, const union proxy_address *peer)
{
    connection_address_unreserve(worker, peer);
    worker->connections--;
    connection_limit_accept(worker);
}

struct connection *connection_create(struct worker *worker, const union proxy_address *peer)
{
    struct connection *connection = NULL;

    if (!connection_reserve(worker, peer))
        return NULL;
    connection = connection_init(worker, peer);
    if (!connection) {
        connection_unreserve(worker, peer);
        connection_log_memory(worker);
    }
    return connection;
}

void connection_log_memory(struct worker *worker)
{
    if (log_limit_allows(&worker->log_limits.connection, worker->loop.clock.monotonic_ms))
        log_write(worker->log, LOG_CRIT, "out of memory: a connection is closed; %u are open", worker->connections);
}

void connection_destroy(struct connection *connection)
{
    struct worker *worker = connection->worker;

    list_remove(&connection->woken);
    list_remove(&connection->link);
    connection_unreserve(worker, &connection->peer);
    free(connection->proxy_header);
    connection->proxy_header = NULL;
    if (worker->free_connection_count < LIMIT_FREE_CONNECTIONS) {
        list_push(&worker->free_connections, &connection->link);
        worker->free_connection_count++;
    } else {
        free(connection);
    }
}

void connection_wake(void *owner)
{
    struct connection *connection = owner;

    if (list_empty(&connection->woken))
        list_push(&connection->worker->woken, &connection->woken);
}

void connection_free_all(struct worker *worker)
{
    struct list *link;

    while ((link = list_pop(&worker->free_connections)) != NULL)
        free(container_of(link, struct connection, link));
    worker->free_connection_count = 0;
    table_finish(&worker->addresses);
}
