/*
 * All journeys of a worker: how many there may be, those that are to go on at the
 * turn's end, and what happens to them when the worker stops. What happens to one
 * is journey.c's.
 */
#include "server/journey_steps.h"

#include "base/limits.h"
#include "server/satisfy.h"
#include "server/subrequest.h"
#include "server/worker_listen.h"

#include <stdlib.h>

static bool full(const struct worker *worker)
{
    return worker->connections >= worker->configuration->main->worker_connections ||
           worker->wires.output_bytes >= worker->wires.output_max;
}

/* Too many, or too much memory is held for output: new connections wait in the kernel's queue. */
static void pause_or_resume(struct worker *worker)
{
    bool pause = full(worker);

    if (pause == worker->paused)
        return;
    worker->paused = pause;
    if (pause)
        log_write(worker->log, LOG_WARN, "accepting pauses: %u connections, %zu bytes held for output",
                  worker->connections, worker->wires.output_bytes);
    worker_listen_pause(worker);
}

static struct journey *journey_memory(struct worker *worker)
{
    struct list *link = list_pop(&worker->free_journeys);

    if (!link)
        return malloc(sizeof(struct journey));
    worker->free_journey_count--;
    return container_of(link, struct journey, link);
}

static struct journey *journey_new(struct worker *worker, const union proxy_address *peer)
{
    struct journey *journey = journey_memory(worker);

    if (!journey)
        return NULL;
    *journey = (struct journey){
        .worker = worker,
        .peer = *peer,
        .opened_s = (uint32_t)(worker->loop.clock.monotonic_ms / 1000),
        .number = __atomic_add_fetch(&worker->shared->connection_number, 1, __ATOMIC_RELAXED)};
    list_init(&journey->awake);
    list_push(&worker->journeys, &journey->link);
    return journey;
}

bool journey_enter(struct worker *worker, const union proxy_address *peer)
{
    /* One that was accepted before the listener was told to stop would be nobody's to end. */
    if (worker->stopping || !journey_admit(worker, peer))
        return false;
    worker->connections++;
    worker->counters->accepted++;
    pause_or_resume(worker);
    return true;
}

void journey_leave(struct worker *worker, const union proxy_address *peer)
{
    journey_dismiss(worker, peer);
    worker->connections--;
    pause_or_resume(worker);
}

struct journey *journey_take(struct worker *worker, const union proxy_address *peer)
{
    struct journey *journey = NULL;

    if (!journey_enter(worker, peer))
        return NULL;
    journey = journey_new(worker, peer);
    if (!journey) {
        journey_leave(worker, peer);
        journey_starved(worker, true);
    }
    return journey;
}

void journey_starved(struct worker *worker, bool starved)
{
    if (starved && !worker->starved)
        log_write(worker->log, LOG_CRIT, "no memory for another connection beside %u: dropped",
                  worker->connections);
    worker->starved = starved;
}

void journey_give(struct journey *journey)
{
    struct worker *worker = journey->worker;

    list_remove(&journey->awake);
    list_remove(&journey->link);
    journey_leave(worker, &journey->peer);
    free(journey->greeting);
    journey->greeting = NULL;
    if (worker->free_journey_count < LIMIT_JOURNEYS_KEPT) {
        list_push(&worker->free_journeys, &journey->link);
        worker->free_journey_count++;
    } else {
        free(journey);
    }
}

void journey_wake(void *owner)
{
    struct journey *journey = owner;

    if (list_empty(&journey->awake))
        list_push(&journey->worker->awake, &journey->awake);
}

void journey_count(struct worker *worker, int status, uint64_t began_us)
{
    uint64_t now_us = worker->loop.clock.monotonic_us;

    counters_answered(worker->counters, status, now_us > began_us ? now_us - began_us : 0);
}

/* The module that keeps a pending exchange is the one before the next to be asked. */
static void cancel_pending(struct visit *visit)
{
    unsigned index = visit->next_module - 1;
    const struct module *module = module_table[index];

    visit->pending = false;
    if (module->cancel)
        module->cancel(visit->x, visit->worker->module_states[index]);
}

void journey_let_go(struct visit *visit)
{
    bool resumed = !list_empty(&visit->resumed);

    list_remove(&visit->resumed);
    subrequest_part(visit);
    if (visit->pending && !resumed)
        cancel_pending(visit);
    for (uint64_t left = visit->location->finishing; left != 0; left &= left - 1) {
        unsigned index = (unsigned)__builtin_ctzll(left);

        module_table[index]->finish(visit->x, visit->location->module_conf[index]);
    }
}

void journey_resume_all(struct worker *worker)
{
    struct list *link;

    while ((link = list_pop(&worker->resumed)) != NULL) {
        struct visit *visit = container_of(link, struct visit, resumed);
        struct journey *journey = visit->parent ? NULL : visit->journey;

        if (visit->successor) {
            journey_succeed(visit);
            continue;
        }
        visit->pending = false;
        journey_continue(visit, satisfy_judge(visit, visit->resumed_with));
        if (journey) /* a child has none of its own, and may be gone by now */
            journey_wake(journey);
    }
    while ((link = list_pop(&worker->awake)) != NULL) {
        struct journey *journey = container_of(link, struct journey, awake);

        if (!journey->session)
            continue;
        wire_receive(&journey->wire);
        journey_pump(journey);
    }
    if (worker->paused)
        pause_or_resume(worker);
}

/* Each ends later, never inside these calls: the list stays whole. */
void journey_drain_all(struct worker *worker)
{
    for (struct list *link = worker->journeys.next; link != &worker->journeys; link = link->next) {
        struct journey *journey = container_of(link, struct journey, link);

        if (!journey->session) /* in its handshake: told at its end */
            continue;
        journey->session->protocol->signal(journey->session, worker->retiring ? SESSION_RETIRE : SESSION_DRAIN);
        journey_wake(journey);
    }
}

void journey_abort_all(struct worker *worker)
{
    for (struct list *link = worker->journeys.next; link != &worker->journeys; link = link->next)
        wire_close(&container_of(link, struct journey, link)->wire, WIRE_END_ABORT);
    subrequest_abort_all(worker);
}

void journey_free_all(struct worker *worker)
{
    struct list *link;

    while ((link = list_pop(&worker->free_journeys)) != NULL)
        free(container_of(link, struct journey, link));
    worker->free_journey_count = 0;
    table_finish(&worker->addresses);
}
