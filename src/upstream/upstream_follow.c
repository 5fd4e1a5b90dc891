/*
 * Applies the table of changes to the peers of a worker.
 *
 * Callers of upstream_choose may hold a peer. There, a removed peer is only marked; a timer closes its idle
 * connections, and frees it unless it is in use. A peer in use is freed with its last connection.
 */
#include "upstream/upstream_follow.h"

#include "upstream/upstream_group.h"

#include <errno.h>
#include <stdio.h>

/* The serials of all added servers. */
struct serials {
    uint64_t items[LIMIT_UPSTREAM_CHANGES];
    unsigned count;
};

static bool is_named(const struct upstream_peer *peer, struct str name)
{
    return !peer->retired && str_equal(str_from(peer->name), name);
}

static struct upstream_peer *find_peer(struct upstream_group *group, struct str name)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (is_named(peer, name))
            return peer;
    }
    return NULL;
}

static bool has_added(const struct upstream_group *group, uint64_t serial)
{
    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (peer->added && peer->added->serial == serial)
            return true;
    }
    return false;
}

static void mark_retired(struct upstream_peer *peer)
{
    peer->retired = true;
    peer->group->count--;
    peer->group->pool->sweep = true;
}

/* A name of the table may be anything that a compromised worker has written. */
static void add_peer(struct upstream_group *group, const struct upstream_change *change)
{
    struct upstream_server server;

    if (has_added(group, change->serial) || upstream_server_parse(str_from(change->name), 80, &server) < 0 ||
        !str_empty(server.host))
        return;
    server.weight = change->weight;
    server.max_conns = change->max_conns;
    server.max_fails = change->max_fails;
    server.fail_timeout_ms = change->fail_timeout_ms;
    server.slow_start_ms = change->slow_start_ms;
    server.backup = change->backup;
    server.down = change->down;
    (void)upstream_peer_add_changed(group, &server, change->serial); /* out of memory: retried with the next change */
}

/* Servers of the configuration; names of servers are not removed. */
static void remove_peers(struct upstream_group *group, struct str name)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (is_named(peer, name) && !peer->added && str_empty(peer->server->host))
            mark_retired(peer);
    }
}

static void apply_change(struct upstream_pool *pool, const struct upstream_change *change, struct serials *serials)
{
    struct upstream_group *group = change->group < pool->group_count ? &pool->groups[change->group] : NULL;

    if (!group || !group->upstream->zone)
        return;
    if (change->kind == CHANGE_REMOVED) {
        remove_peers(group, str_from(change->name));
        return;
    }
    serials->items[serials->count++] = change->serial;
    add_peer(group, change);
}

static bool has_serial(const struct serials *serials, uint64_t serial)
{
    for (unsigned i = 0; i < serials->count; i++) {
        if (serials->items[i] == serial)
            return true;
    }
    return false;
}

/* Retires the peers of added servers that are not in the table any more. */
static void remove_unlisted(struct upstream_group *group, const struct serials *serials)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (peer->added && !peer->retired && !has_serial(serials, peer->added->serial))
            mark_retired(peer);
    }
}

/*
 * With the lock. Rows of an older configuration do not apply; if there are rows of a newer one, this worker is
 * draining, and keeps its peers.
 */
static void apply_changes(struct upstream_pool *pool)
{
    struct serials serials = {.count = 0};
    struct upstream_change change;

    pool->changes_seen = upstream_changes_count(pool->changes);
    if (upstream_changes_configuration(pool->changes) != pool->configuration)
        return;
    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++) {
        if (upstream_changes_read(pool->changes, i, &change))
            apply_change(pool, &change, &serials);
    }
    for (unsigned i = 0; i < pool->group_count; i++)
        remove_unlisted(&pool->groups[i], &serials);
}

/* Closes the idle connections of retired peers, and frees the peers that are not in use. */
static void sweep_peers(struct upstream_pool *pool)
{
    pool->sweep = false;
    for (unsigned i = 0; i < pool->group_count; i++) {
        struct list *link = pool->groups[i].peers.next;

        while (link != &pool->groups[i].peers) {
            struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

            link = link->next;
            if (peer->retired)
                upstream_peer_sweep(peer);
        }
    }
}

void upstream_follow_now(struct upstream_pool *pool)
{
    if (upstream_changes_count(pool->changes) != pool->changes_seen) {
        upstream_changes_lock(pool->changes);
        apply_changes(pool);
        upstream_changes_unlock(pool->changes);
    }
    if (pool->sweep && !pool->stopping)
        loop_timer_move(pool->loop, &pool->follow, pool->loop->clock.monotonic_ms);
}

static void follow_timer_done(struct op *op, int result)
{
    struct upstream_pool *pool = container_of(op, struct upstream_pool, follow);

    if (pool->stopping || result < 0)
        return;
    upstream_follow_now(pool);
    if (pool->sweep)
        sweep_peers(pool);
    loop_timer_move(pool->loop, op, pool->loop->clock.monotonic_ms + LIMIT_UPSTREAM_FOLLOW_MS);
}

void upstream_pool_follow(struct upstream_pool *pool, uint64_t configuration)
{
    bool any = false;

    for (unsigned i = 0; i < pool->group_count; i++)
        any |= pool->groups[i].upstream->zone;
    if (pool->zone)
        upstream_zone_set_configuration(pool->zone, configuration);
    if (!pool->zone || !any)
        return;
    pool->changes = upstream_zone_changes(pool->zone);
    pool->configuration = configuration;
    pool->follow.done = follow_timer_done;
    upstream_changes_lock(pool->changes);
    apply_changes(pool);
    upstream_changes_unlock(pool->changes);
    sweep_peers(pool);
    loop_timer(pool->loop, &pool->follow, pool->loop->clock.monotonic_ms + LIMIT_UPSTREAM_FOLLOW_MS);
}

static struct upstream_change change_of(const struct upstream_group *group, enum upstream_change_kind kind,
                                        struct str name)
{
    struct upstream_change change = {.kind = kind, .group = group->upstream->index, .weight = 1};

    snprintf(change.name, sizeof(change.name), STR_FMT, STR_ARG(name));
    return change;
}

static int add_server(struct upstream_group *group, const struct upstream_server *server, struct str name)
{
    struct upstream_pool *pool = group->pool;
    struct upstream_change change = change_of(group, CHANGE_ADDED, name);
    const struct upstream_peer *peer;
    uint64_t serial;
    int error;

    if (find_peer(group, name))
        return -EEXIST;
    change.weight = server->weight;
    change.max_conns = server->max_conns;
    change.max_fails = server->max_fails;
    change.fail_timeout_ms = server->fail_timeout_ms;
    change.slow_start_ms = server->slow_start_ms;
    change.backup = server->backup;
    change.down = server->down;
    error = upstream_changes_write(pool->changes, pool->configuration, &change, &serial);
    if (error < 0)
        return error;
    apply_changes(pool);
    peer = find_peer(group, name);
    if (peer && peer->place >= 0) {
        shared_set(&peer->state->recovered_ms, pool->loop->clock.monotonic_ms); /* before other workers use it */
        return 0;
    }
    upstream_changes_erase(pool->changes, serial);
    return peer ? -ENOSPC : -ENOMEM;
}

/* Locks the table, and makes the peers of this worker those of the table. On failure it is not locked. */
static int begin_change(struct upstream_group *group)
{
    struct upstream_pool *pool = group->pool;

    if (!pool->changes || !group->upstream->zone)
        return -EOPNOTSUPP;
    upstream_changes_lock(pool->changes);
    if (upstream_changes_configuration(pool->changes) > pool->configuration) {
        upstream_changes_unlock(pool->changes);
        return -ESTALE;
    }
    apply_changes(pool);
    return 0;
}

static int end_change(struct upstream_group *group, int error)
{
    upstream_changes_unlock(group->pool->changes);
    upstream_follow_now(group->pool);
    return error;
}

int upstream_group_add_server(struct upstream_group *group, const struct upstream_server *server)
{
    char name[sizeof(((struct upstream_peer *)NULL)->name)];
    int error = begin_change(group);

    if (error < 0)
        return error;
    return end_change(group, add_server(group, server, listen_address_format(&server->address, name, sizeof(name))));
}

/* True if the group has a server that is not a backup, besides those with this name. A host name counts as one. */
static bool has_other_primary(struct upstream_group *group, struct str name)
{
    const struct upstream *upstream = group->upstream;

    for (size_t i = 0; i < upstream->count; i++) {
        if (!str_empty(upstream->servers[i].host) && !upstream->servers[i].backup)
            return true;
    }
    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (!peer->retired && !peer->backup && !is_named(peer, name))
            return true;
    }
    return false;
}

/* The addresses of a name come from DNS. */
static bool is_removable(const struct upstream_peer *peer, struct str name)
{
    return is_named(peer, name) && str_empty(peer->server->host);
}

/* The kinds of servers with a name. */
struct named {
    bool added, configured;
};

static struct named find_removable(struct upstream_group *group, struct str name)
{
    struct named found = {false, false};

    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (is_removable(peer, name))
            *(peer->added ? &found.added : &found.configured) = true;
    }
    return found;
}

static void erase_added(struct upstream_group *group, struct str name)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (!is_removable(peer, name))
            continue;
        shared_set(&peer->state->removed, group->pool->configuration);
        if (peer->added)
            upstream_changes_erase(group->pool->changes, peer->added->serial);
    }
}

static int remove_server(struct upstream_group *group, struct str name)
{
    struct upstream_pool *pool = group->pool;
    const struct upstream_change change = change_of(group, CHANGE_REMOVED, name);
    struct named found = find_removable(group, name);
    uint64_t serial;
    int error = 0;

    if (!found.added && !found.configured)
        return find_peer(group, name) ? -EADDRNOTAVAIL : -ENOENT;
    if (!has_other_primary(group, name))
        return -EBUSY;
    if (found.configured)
        error = upstream_changes_write(pool->changes, pool->configuration, &change, &serial);
    if (error == 0)
        erase_added(group, name);
    return error;
}

int upstream_group_remove_server(struct upstream_group *group, struct str name)
{
    int error = begin_change(group);

    return error < 0 ? error : end_change(group, remove_server(group, name));
}
