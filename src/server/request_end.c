/*
 * The end of a request: cancels its pending module, ends its subrequests, and calls `finish` of the modules.
 */
#include "base/saturate.h"
#include "server/connection_internal.h"
#include "server/subrequest.h"
#include "server/subrequest_internal.h"

void request_count_values(struct worker *worker, const struct location_zones *zones, struct status_zone_request ended,
                          uint64_t began_us)
{
    ended.took_us = u64_sub_sat(worker->loop.clock.monotonic_us, began_us);
    counters_add_response(worker->counters, ended.status, ended.took_us);
    if (!zones)
        return;
    status_zone_count(zones->server, worker->shared_index, &ended);
    status_zone_count(zones->location, worker->shared_index, &ended);
}

void request_count(const struct request_state *request)
{
    const struct exchange *x = request->x;

    request_count_values(request->worker, request->location->zones,
                         (struct status_zone_request){.status = request_status(request),
                                                      .sent = x->response.bytes_sent,
                                                      .received = x->request.bytes},
                         x->started_us);
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

void subrequest_release(struct subrequest *sub)
{
    struct exchange *parent = sub->request->parent;

    list_remove(&sub->link);
    if (sub->detached)
        sub->request->worker->detached--;
    request_state_of(parent)->child_count--;
    body_close(&sub->x.response.body);
    request_release(sub->request);
    sub->x.session = NULL;
    exchange_release(&sub->x);
    while (parent) {
        struct exchange *next = request_state_of(parent)->parent;

        exchange_release(parent);
        parent = next;
    }
}

static void abort_subrequest(struct subrequest *sub)
{
    sub->x.cancelled = true;
    subrequest_release(sub);
}

/* Replaces the connection of a subrequest and of its own subrequests. */
static void set_connection(struct subrequest *sub, struct connection *connection)
{
    const struct list *children = &sub->request->children;

    sub->request->connection = connection;
    for (struct list *link = children->next; link != children; link = link->next)
        set_connection(container_of(link, struct subrequest, link), connection);
}

/*
 * Aborts the subrequests, except detached ones, which continue on worker->orphaned_subrequests unless the request was
 * aborted.
 */
static void detach_or_abort_subrequests(struct request_state *request)
{
    struct list *link;

    while ((link = list_pop(&request->children)) != NULL) {
        struct subrequest *sub = container_of(link, struct subrequest, link);

        if (!sub->detached || request->x->cancelled) {
            abort_subrequest(sub);
            continue;
        }
        set_connection(sub, sub->detached);
        list_push(&request->worker->orphaned_subrequests, link);
    }
}

void request_release(struct request_state *request)
{
    bool resumed = !list_empty(&request->resumed);

    list_remove(&request->resumed);
    detach_or_abort_subrequests(request);
    if (request->pending && !resumed)
        cancel_pending(request);
    for (uint64_t left = request->location->finishing; left != 0; left &= left - 1) {
        unsigned index = (unsigned)__builtin_ctzll(left);

        module_table[index]->finish(request->x, request->location->module_conf[index]);
    }
}

void subrequest_abort_all(struct worker *worker)
{
    struct list *link;

    while ((link = list_pop(&worker->orphaned_subrequests)) != NULL)
        abort_subrequest(container_of(link, struct subrequest, link));
}
