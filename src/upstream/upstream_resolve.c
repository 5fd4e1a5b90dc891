/*
 * Resolves names when the worker starts, and again when their time to live has passed. A failed resolution is retried,
 * and the known addresses stay in use.
 */
#include "upstream/upstream_group.h"

#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>

static void resolve_due(struct upstream_pool *pool);

static void notify_waiting(struct upstream_group *group)
{
    struct list *link;
    struct list now;

    list_init(&now);
    while ((link = list_pop(&group->waiting)) != NULL)
        list_push(&now, link);
    while ((link = list_pop(&now)) != NULL) {
        struct upstream_waiter *waiter = container_of(link, struct upstream_waiter, link);

        waiter->resolved(waiter);
    }
}

static void log_resolve_failure(struct upstream_name *name, const char *reason)
{
    struct log *log = name->group->pool->log;

    if (reason && name->failures == 0)
        log_write(log, LOG_ERROR, "upstream host \"" STR_FMT "\" cannot be resolved: %s; retried every 1 to %d s",
                  STR_ARG(name->server->host), reason, LIMIT_RESOLVE_RETRY_MAX_MS / 1000);
    if (!reason && name->failures > 0)
        log_write(log, LOG_NOTICE, "upstream host \"" STR_FMT "\" is resolved again", STR_ARG(name->server->host));
}

uint64_t upstream_resolve_retry_ms(unsigned failures, uint64_t valid_ms)
{
    uint64_t delay_ms = LIMIT_RESOLVE_RETRY_MS;

    for (unsigned i = 1; i < failures && delay_ms < LIMIT_RESOLVE_RETRY_MAX_MS; i++)
        delay_ms *= 2;
    if (delay_ms > LIMIT_RESOLVE_RETRY_MAX_MS)
        delay_ms = LIMIT_RESOLVE_RETRY_MAX_MS;
    return valid_ms && valid_ms < delay_ms ? valid_ms : delay_ms;
}

static uint64_t retry_ms(const struct upstream_name *name)
{
    return upstream_resolve_retry_ms(name->failures, upstream_resolver_settings(name->group)->valid_ms);
}

/* After an error the known addresses stay in use. */
static void addresses_resolved(void *owner, const struct resolver_answer *answer)
{
    struct upstream_name *name = owner;
    struct upstream_pool *pool = name->group->pool;

    name->query = NULL;
    name->resolved = true;
    if (answer->count > 0) {
        upstream_addresses_apply(name, answer);
        upstream_addresses_store(name->group, name->server, answer);
    }
    log_resolve_failure(name, answer->reason);
    name->failures = answer->count > 0 ? 0 : name->failures + 1;
    name->next_query_ms = pool->loop->clock.monotonic_ms + (name->failures ? retry_ms(name) : answer->valid_ms);
    list_push(&pool->names_due, &name->due);
    notify_waiting(name->group);
    resolve_due(pool);
}

static void next_name_timer_done(struct op *op, int result)
{
    struct upstream_pool *pool = container_of(op, struct upstream_pool, next_name);

    for (unsigned i = 0; pool->name_removed && i < pool->group_count; i++)
        notify_waiting(&pool->groups[i]);
    pool->name_removed = false;
    resolve_due(pool);
}

/* Resolves the due names from the loop. */
static void schedule_names(struct upstream_pool *pool)
{
    pool->next_name.done = next_name_timer_done;
    if (!pool->stopping)
        loop_timer_move(pool->loop, &pool->next_name, pool->loop->clock.monotonic_ms);
}

static void resolve_name(struct upstream_name *name)
{
    struct upstream_pool *pool = name->group->pool;
    const struct upstream_server *server = name->server;
    struct resolver *resolver = upstream_group_resolver(name->group);

    if (resolver)
        name->query = resolver_query_start(resolver, server->host, server->port, server->service,
                                           addresses_resolved, name);
    list_remove(&name->due);
    if (name->query)
        return;
    name->next_query_ms = pool->loop->clock.monotonic_ms + LIMIT_RESOLVE_RETRY_MS;
    list_push(&pool->names_due, &name->due);
}

/* Starts queries for all due names, and sets the timer for the next one. */
static void resolve_due(struct upstream_pool *pool)
{
    uint64_t now = pool->loop->clock.monotonic_ms;
    uint64_t soonest = UINT64_MAX;
    struct list *link = pool->names_due.next;

    if (pool->stopping)
        return;
    while (link != &pool->names_due) {
        struct upstream_name *name = container_of(link, struct upstream_name, due);

        link = link->next;
        if (name->next_query_ms <= now)
            resolve_name(name);
        if (!list_empty(&name->due) && name->next_query_ms < soonest)
            soonest = name->next_query_ms;
    }
    pool->next_name.done = next_name_timer_done;
    if (soonest != UINT64_MAX)
        loop_timer_move(pool->loop, &pool->next_name, soonest);
}

/* Adds the name; it is due now. */
static void add_name(struct upstream_group *group, struct upstream_name *name)
{
    name->group = group;
    name->next = group->names;
    group->names = name;
    list_init(&name->due);
    list_push(&group->pool->names_due, &name->due);
    upstream_addresses_load(name);
}

void upstream_names_add(struct upstream_group *group, const struct upstream_server *server, uint64_t serial)
{
    struct upstream_name *name = calloc(1, sizeof(*name));
    struct upstream_added *added = upstream_added_create(server, serial);

    if (!name || !added) {
        free(name);
        free(added);
        return;
    }
    name->added = added;
    name->server = &added->server;
    add_name(group, name);
    schedule_names(group->pool);
}

static void free_name(struct upstream_name *name)
{
    resolver_query_cancel(name->query);
    list_remove(&name->due);
    free(name->added);
    free(name);
}

void upstream_name_remove(struct upstream_name *name)
{
    struct upstream_name **link = &name->group->names;

    while (*link != name)
        link = &(*link)->next;
    *link = name->next;
    if (!name->resolved) {
        name->group->pool->name_removed = true;
        schedule_names(name->group->pool);
    }
    free_name(name);
}

int upstream_names_start(struct upstream_group *group)
{
    for (size_t i = 0; i < group->upstream->count; i++) {
        const struct upstream_server *server = &group->upstream->servers[i];
        struct upstream_name *name;

        if (str_empty(server->host) || server->down)
            continue;
        name = calloc(1, sizeof(*name));
        if (!name)
            return -ENOMEM;
        name->server = server;
        add_name(group, name);
    }
    resolve_due(group->pool);
    return 0;
}

void upstream_names_stop(struct upstream_pool *pool)
{
    loop_cancel(pool->loop, &pool->next_name);
    for (struct upstream_resolver *one = pool->resolvers; one; one = one->next)
        resolver_stop(one->resolver);
}

void upstream_names_finish(struct upstream_group *group)
{
    struct upstream_name *name;

    while ((name = group->names) != NULL) {
        group->names = name->next;
        free_name(name);
    }
}
