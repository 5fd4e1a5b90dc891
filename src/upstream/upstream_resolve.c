/*
 * Resolves names when the worker starts, and again when their time to live has passed. A failed resolution is retried,
 * and the known addresses stay in use.
 */
#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"

#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void resolve_due(struct upstream_pool *pool);

static bool same_address(const struct listen_address *address, const struct resolver_address *found)
{
    return address->length == found->length && memcmp(&address->socket, &found->socket, found->length) == 0;
}

static bool is_resolved(const struct listen_address *address, const struct resolver_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        if (same_address(address, &answer->addresses[i]))
            return true;
    }
    return false;
}

static bool is_peer_of(const struct upstream_peer *peer, const struct upstream_name *name)
{
    if (name->added)
        return !peer->retired && peer->added && peer->added->serial == name->added->serial;
    return !peer->retired && peer->server == name->server;
}

static struct upstream_peer *find_peer(const struct upstream_name *name, const struct resolver_address *found)
{
    struct list *peers = &name->group->peers;

    for (struct list *link = peers->next; link != peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (is_peer_of(peer, name) && same_address(&peer->address, found))
            return peer;
    }
    return NULL;
}

static uint16_t lowest_priority(const struct resolver_answer *answer)
{
    uint16_t lowest = UINT16_MAX;

    for (size_t i = 0; i < answer->count; i++) {
        if (answer->addresses[i].priority < lowest)
            lowest = answer->addresses[i].priority;
    }
    return lowest;
}

/* Adds the peer of an address. SRV records have weights; those with another than the lowest priority are backups. */
static void add_resolved_address(struct upstream_name *name, const struct resolver_address *found, uint16_t lowest)
{
    struct upstream_peer *peer = find_peer(name, found);
    struct listen_address address = {.socket = found->socket, .length = found->length};
    bool has_record = !str_empty(name->server->service);
    uint64_t weight = !has_record ? name->server->weight : found->weight ? found->weight : 1;

    if (!peer && name->added)
        peer = upstream_peer_add_changed(name->group, name->server, &address, name->added->serial);
    else if (!peer)
        peer = upstream_peer_add(name->group, name->server, &address, weight);
    if (!peer || !has_record)
        return; /* out of memory: retried with the next answer */
    upstream_configure_weight(peer->state, weight);
    peer->backup = name->server->backup || found->priority > lowest;
}

/* Creates peers for new addresses and retires those whose address is gone. */
static void apply_addresses(struct upstream_name *name, const struct resolver_answer *answer)
{
    struct list *peers = &name->group->peers;
    struct list *link = peers->next;
    uint16_t lowest = lowest_priority(answer);

    for (size_t i = 0; i < answer->count; i++)
        add_resolved_address(name, &answer->addresses[i], lowest);
    while (link != peers) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        link = link->next;
        if (is_peer_of(peer, name) && !is_resolved(&peer->address, answer))
            upstream_peer_retire(peer);
    }
}

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

static const struct resolver_settings *settings_of(const struct upstream_group *group)
{
    const struct resolver_settings *settings = group->upstream->resolver;

    return settings ? settings : &upstream_resolver_default;
}

/* The key of a name: all settings that its addresses depend on. Empty: too long to be stored. */
static struct str shared_key(const struct upstream_group *group, const struct upstream_server *server,
                             char text[LIMIT_RESOLVED_KEY])
{
    const struct resolver_settings *settings = settings_of(group);
    int length = snprintf(text, LIMIT_RESOLVED_KEY, STR_FMT ":%u " STR_FMT " " STR_FMT "%s%s", STR_ARG(server->host),
                          server->port, STR_ARG(server->service), STR_ARG(settings->servers),
                          settings->no_ipv4 ? " ipv4=off" : "", settings->no_ipv6 ? " ipv6=off" : "");

    return length > 0 && length < LIMIT_RESOLVED_KEY ? str_of(text, (size_t)length) : STR("");
}

void upstream_names_store(const struct upstream_group *group, const struct upstream_server *server,
                          const struct resolver_answer *answer)
{
    struct resolved_names *names = upstream_zone_names(group->pool->zone);
    char text[LIMIT_RESOLVED_KEY];

    if (names)
        resolved_names_store(names, shared_key(group, server, text), answer);
}

/* Uses the addresses that earlier workers stored, so that requests need not wait for the first answer. */
static void load_shared(struct upstream_name *name)
{
    struct resolved_names *names = upstream_zone_names(name->group->pool->zone);
    struct resolver_address addresses[LIMIT_UPSTREAM_ADDRESSES];
    struct resolver_answer answer = {.addresses = addresses};
    char text[LIMIT_RESOLVED_KEY];

    if (names)
        answer.count = resolved_names_load(names, shared_key(name->group, name->server, text), addresses);
    if (answer.count == 0)
        return;
    apply_addresses(name, &answer);
    name->resolved = true;
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

/* After an error the known addresses stay in use. */
static void addresses_resolved(void *owner, const struct resolver_answer *answer)
{
    struct upstream_name *name = owner;
    struct upstream_pool *pool = name->group->pool;

    name->query = NULL;
    name->resolved = true;
    if (answer->count > 0) {
        apply_addresses(name, answer);
        upstream_names_store(name->group, name->server, answer);
    }
    log_resolve_failure(name, answer->reason);
    name->failures = answer->count > 0 ? 0 : name->failures + 1;
    name->again_ms = pool->loop->clock.monotonic_ms +
                     (name->failures ? upstream_resolve_retry_ms(name->failures, settings_of(name->group)->valid_ms)
                                     : answer->valid_ms);
    list_push(&pool->names_due, &name->due);
    notify_waiting(name->group);
    resolve_due(pool);
}

static void names_due(struct op *op, int result)
{
    struct upstream_pool *pool = container_of(op, struct upstream_pool, next_name);

    for (unsigned i = 0; pool->name_removed && i < pool->group_count; i++)
        notify_waiting(&pool->groups[i]);
    pool->name_removed = false;
    resolve_due(pool);
}

/* Calls names_due from the loop. */
static void set_names_due(struct upstream_pool *pool)
{
    pool->next_name.done = names_due;
    if (!pool->stopping)
        loop_timer_move(pool->loop, &pool->next_name, pool->loop->clock.monotonic_ms);
}

/* One resolver per distinct settings, created on first use. NULL when out of memory. */
static struct resolver *find_resolver(struct upstream_pool *pool, const struct resolver_settings *settings)
{
    struct upstream_resolver *one;

    for (one = pool->resolvers; one; one = one->next) {
        if (one->settings == settings)
            return one->resolver;
    }
    one = calloc(1, sizeof(*one));
    if (!one)
        return NULL;
    one->settings = settings;
    one->resolver = resolver_create(pool->loop, settings);
    if (!one->resolver) {
        free(one);
        return NULL;
    }
    one->next = pool->resolvers;
    pool->resolvers = one;
    return one->resolver;
}

struct resolver *upstream_group_resolver(const struct upstream_group *group)
{
    return find_resolver(group->pool, settings_of(group));
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
    name->again_ms = pool->loop->clock.monotonic_ms + LIMIT_RESOLVE_RETRY_MS;
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
        if (name->again_ms <= now)
            resolve_name(name);
        if (!list_empty(&name->due) && name->again_ms < soonest)
            soonest = name->again_ms;
    }
    pool->next_name.done = names_due;
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
    load_shared(name);
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
    set_names_due(group->pool);
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
        set_names_due(name->group->pool);
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

void upstream_resolvers_finish(struct upstream_pool *pool)
{
    struct upstream_resolver *one;

    while ((one = pool->resolvers) != NULL) {
        pool->resolvers = one->next;
        resolver_destroy(one->resolver);
        free(one);
    }
}
