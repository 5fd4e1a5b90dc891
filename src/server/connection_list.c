/*
 * All connections of a worker: their limit, the queue of connections and requests to continue at the end of the loop
 * iteration, and draining. A single connection is handled in connection.c.
 */
#include "server/connection_internal.h"

#include "base/limits.h"
#include "server/satisfy.h"
#include "server/subrequest.h"
#include "server/worker_listen.h"

#include <stdlib.h>

static bool connections_full(const struct worker *worker)
{
    return worker->connections >= worker->configuration->main->worker_connections ||
           worker->wires.output_bytes >= worker->wires.output_max;
}

/* At the connection limit or the output memory limit, new connections wait in the listen backlog. */
static void pause_or_resume(struct worker *worker)
{
    bool pause = connections_full(worker);

    if (pause == worker->paused)
        return;
    worker->paused = pause;
    if (pause)
        log_write(worker->log, LOG_WARN, "accepting pauses: %u connections, %zu bytes held for output",
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
    list_init(&connection->awake);
    list_push(&worker->connection_list, &connection->link);
    return connection;
}

bool connection_reserve(struct worker *worker, const union proxy_address *peer)
{
    /* A connection accepted while the worker stops would never be closed. */
    if (worker->stopping || !connection_address_reserve(worker, peer))
        return false;
    worker->connections++;
    worker->counters->accepted++;
    pause_or_resume(worker);
    return true;
}

void connection_unreserve(struct worker *worker, const union proxy_address *peer)
{
    connection_address_unreserve(worker, peer);
    worker->connections--;
    pause_or_resume(worker);
}

struct connection *connection_create(struct worker *worker, const union proxy_address *peer)
{
    struct connection *connection = NULL;

    if (!connection_reserve(worker, peer))
        return NULL;
    connection = connection_init(worker, peer);
    if (!connection) {
        connection_unreserve(worker, peer);
        connection_memory_missing(worker, true);
    }
    return connection;
}

void connection_memory_missing(struct worker *worker, bool missing)
{
    if (missing && !worker->memory_missing)
        log_write(worker->log, LOG_CRIT, "no memory for another connection beside %u: dropped",
                  worker->connections);
    worker->memory_missing = missing;
}

void connection_destroy(struct connection *connection)
{
    struct worker *worker = connection->worker;

    list_remove(&connection->awake);
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

    if (list_empty(&connection->awake))
        list_push(&connection->worker->awake, &connection->awake);
}

void request_count(struct worker *worker, int status, uint64_t began_us)
{
    uint64_t now_us = worker->loop.clock.monotonic_us;

    counters_answered(worker->counters, status, now_us > began_us ? now_us - began_us : 0);
}

/* The module of a pending exchange is the one before next_module. */
static void cancel_pending(struct request_state *request)
{
    unsigned index = request->next_module - 1;
    const struct module *module = module_table[index];

    request->pending = false;
    if (module->cancel)
        module->cancel(request->x, request->worker->module_states[index]);
}

void request_release(struct request_state *request)
{
    bool resumed = !list_empty(&request->resumed);

    list_remove(&request->resumed);
    subrequest_part(request);
    if (request->pending && !resumed)
        cancel_pending(request);
    for (uint64_t left = request->location->finishing; left != 0; left &= left - 1) {
        unsigned index = (unsigned)__builtin_ctzll(left);

        module_table[index]->finish(request->x, request->location->module_conf[index]);
    }
}

void connection_resume_all(struct worker *worker)
{
    struct list *link;

    while ((link = list_pop(&worker->resumed)) != NULL) {
        struct request_state *request = container_of(link, struct request_state, resumed);
        struct connection *connection = request->parent ? NULL : request->connection;

        if (request->upgraded) {
            connection_upgrade(request);
            continue;
        }
        request->pending = false;
        request_continue(request, satisfy_combine(request, request->resumed_with));
        if (connection) /* a subrequest has no connection of its own and may be freed by now */
            connection_wake(connection);
    }
    while ((link = list_pop(&worker->awake)) != NULL) {
        struct connection *connection = container_of(link, struct connection, awake);

        if (!connection->session)
            continue;
        wire_receive(&connection->wire);
        connection_pump(connection);
    }
    if (worker->paused)
        pause_or_resume(worker);
}

/* Connections close later, never inside these calls: the list does not change. */
void connection_drain_all(struct worker *worker)
{
    for (struct list *link = worker->connection_list.next; link != &worker->connection_list; link = link->next) {
        struct connection *connection = container_of(link, struct connection, link);

        if (!connection->session) /* in its handshake: drained when that ends */
            continue;
        connection->session->protocol->signal(connection->session, worker->retiring ? SESSION_RETIRE : SESSION_DRAIN);
        connection_wake(connection);
    }
}

void connection_abort_all(struct worker *worker)
{
    for (struct list *link = worker->connection_list.next; link != &worker->connection_list; link = link->next)
        wire_close(&container_of(link, struct connection, link)->wire, WIRE_CLOSE_ABORT);
    subrequest_abort_all(worker);
}

void connection_free_all(struct worker *worker)
{
    struct list *link;

    while ((link = list_pop(&worker->free_connections)) != NULL)
        free(container_of(link, struct connection, link));
    worker->free_connection_count = 0;
    table_finish(&worker->addresses);
}
