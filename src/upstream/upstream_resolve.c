/*
 * Names: resolved one at a time on a helper thread, by the rules of this machine
 * (hosts file, resolv.conf), when the worker starts and again from time to time. A name
 * that does not resolve is tried again; it never stops anything.
 */
#include "upstream/upstream_group.h"

#include "base/limits.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

/* One answer under way. Owned by itself while a thread works on it. */
struct upstream_resolution {
    struct op op;
    struct upstream_pool *pool;
    struct upstream_name *name;
    char host[LIMIT_HOST + 1];
    char port[8];
    struct addrinfo *found;
    int error; /* of getaddrinfo */
};

static void resolve_next(struct upstream_pool *pool);

static int resolve(void *argument)
{
    struct upstream_resolution *resolution = argument;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};

    resolution->error = getaddrinfo(resolution->host, resolution->port, &wanted, &resolution->found);
    return 0;
}

static bool same_address(const struct listen_address *address, const struct addrinfo *found)
{
    return address->length == found->ai_addrlen &&
           memcmp(&address->socket, found->ai_addr, found->ai_addrlen) == 0;
}

static bool is_among(const struct listen_address *address, const struct addrinfo *found)
{
    for (; found; found = found->ai_next) {
        if (same_address(address, found))
            return true;
    }
    return false;
}

static struct upstream_peer *find_peer(const struct upstream_name *name, const struct addrinfo *found)
{
    struct list *peers = &name->group->peers;

    for (struct list *link = peers->next; link != peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (peer->server == name->server && !peer->gone && same_address(&peer->address, found))
            return peer;
    }
    return NULL;
}

/* New addresses become peers, and peers whose address is no more are retired. */
static void apply(struct upstream_name *name, const struct addrinfo *found)
{
    struct list *peers = &name->group->peers;
    struct list *link = peers->next;
    unsigned count = 0;

    for (const struct addrinfo *one = found; one && count < LIMIT_UPSTREAM_ADDRESSES;
         one = one->ai_next, count++) {
        struct listen_address address = {.length = one->ai_addrlen};

        if (find_peer(name, one) || one->ai_addrlen > sizeof(address.socket))
            continue;
        memcpy(&address.socket, one->ai_addr, one->ai_addrlen);
        if (!upstream_peer_add(name->group, name->server, &address))
            return; /* out of memory: tried again with the next answer */
    }
    while (link != peers) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        link = link->next;
        if (peer->server == name->server && !peer->gone && !is_among(&peer->address, found))
            upstream_peer_retire(peer);
    }
}

static void tell_waiting(struct upstream_group *group)
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

/* What is known of a name stays in use where the answer is bad. */
static void take_answer(struct upstream_resolution *resolution)
{
    struct upstream_name *name = resolution->name;
    struct upstream_pool *pool = resolution->pool;

    name->asked = true;
    if (resolution->error == 0)
        apply(name, resolution->found);
    else if (!name->failed)
        log_write(pool->log, LOG_ERROR,
                  "upstream host \"%s\" cannot be resolved (%d: %s); tried again every %d s",
                  resolution->host, resolution->error, gai_strerror(resolution->error),
                  LIMIT_RESOLVE_RETRY_MS / 1000);
    name->failed = resolution->error != 0;
    name->again_ms =
        pool->loop->clock.monotonic_ms + (name->failed ? LIMIT_RESOLVE_RETRY_MS : LIMIT_RESOLVE_VALID_MS);
    list_push(&pool->names_due, &name->due);
    tell_waiting(name->group);
}

static void resolved(struct op *op, int result)
{
    struct upstream_resolution *resolution = container_of(op, struct upstream_resolution, op);
    struct upstream_pool *pool = resolution->pool;

    pool->resolution = NULL;
    if (!pool->stopping) {
        if (result < 0)
            resolution->error = EAI_AGAIN;
        take_answer(resolution);
    }
    if (resolution->found)
        freeaddrinfo(resolution->found);
    free(resolution);
    resolve_next(pool);
}

static void next_due(struct op *op, int result)
{
    resolve_next(container_of(op, struct upstream_pool, next_name));
}

static void begin(struct upstream_pool *pool, struct upstream_name *name)
{
    struct upstream_resolution *resolution = calloc(1, sizeof(*resolution));

    list_remove(&name->due);
    if (!resolution) {
        name->again_ms = pool->loop->clock.monotonic_ms + LIMIT_RESOLVE_RETRY_MS;
        list_push(&pool->names_due, &name->due);
        return;
    }
    resolution->pool = pool;
    resolution->name = name;
    snprintf(resolution->host, sizeof(resolution->host), STR_FMT, STR_ARG(name->server->host));
    snprintf(resolution->port, sizeof(resolution->port), "%u", name->server->port);
    resolution->op.done = resolved;
    pool->resolution = resolution;
    loop_offload(pool->loop, &resolution->op, resolve, resolution);
}

/* One at a time: a dead name server shall hold one helper thread, not all. */
static void resolve_next(struct upstream_pool *pool)
{
    uint64_t now = pool->loop->clock.monotonic_ms;
    struct upstream_name *soonest = NULL;

    if (pool->stopping || pool->resolution)
        return;
    for (struct list *link = pool->names_due.next; link != &pool->names_due; link = link->next) {
        struct upstream_name *name = container_of(link, struct upstream_name, due);

        if (!soonest || name->again_ms < soonest->again_ms)
            soonest = name;
    }
    if (!soonest)
        return;
    if (soonest->again_ms <= now)
        begin(pool, soonest);
    if (pool->resolution)
        return;
    pool->next_name.done = next_due;
    if (op_idle(&pool->next_name))
        loop_timer(pool->loop, &pool->next_name, soonest->again_ms);
    else
        loop_timer_move(pool->loop, &pool->next_name, soonest->again_ms);
}

int upstream_names_start(struct upstream_group *group)
{
    struct upstream_pool *pool = group->pool;

    for (size_t i = 0; i < group->upstream->count; i++) {
        const struct upstream_server *server = &group->upstream->servers[i];
        struct upstream_name *name;

        if (str_empty(server->host) || server->down)
            continue;
        name = calloc(1, sizeof(*name));
        if (!name)
            return -ENOMEM;
        name->group = group;
        name->server = server;
        name->next = group->names;
        group->names = name;
        list_init(&name->due);
        list_push(&pool->names_due, &name->due);
    }
    resolve_next(pool);
    return 0;
}

void upstream_names_stop(struct upstream_pool *pool)
{
    loop_cancel(pool->loop, &pool->next_name);
    if (pool->resolution)
        loop_cancel(pool->loop, &pool->resolution->op);
}

void upstream_names_finish(struct upstream_group *group)
{
    struct upstream_name *name;

    while ((name = group->names) != NULL) {
        group->names = name->next;
        list_remove(&name->due);
        free(name);
    }
}
