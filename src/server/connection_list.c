/*
 * Operations on all connections of a worker: continues those that wait for the end of the loop iteration, drains all,
 * aborts all.
 */
#include "server/connection_internal.h"

#include "server/satisfy.h"
#include "server/subrequest.h"

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
    while ((link = list_pop(&worker->woken)) != NULL) {
        struct connection *connection = container_of(link, struct connection, woken);

        if (!connection->session)
            continue;
        wire_receive(&connection->wire);
        connection_pump(connection);
    }
    if (worker->paused)
        connection_limit_accept(worker);
}

void connection_resume_after(struct loop *loop)
{
    connection_resume_all(container_of(loop, struct worker, loop));
}

/* Connections close later, never inside these calls: the list does not change. */
void connection_drain_all(struct worker *worker)
{
    for (struct list *link = worker->connection_list.next; link != &worker->connection_list; link = link->next) {
        struct connection *connection = container_of(link, struct connection, link);

        if (!connection->session) /* in its handshake: drained when that ends; or TLS failed: it closes soon */
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
