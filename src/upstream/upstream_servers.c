/*
 * Writes the changes of servers to the table, from which all workers apply them (upstream_follow.c).
 */
#include "upstream/upstream_servers.h"

#include "upstream/upstream_group.h"

#include <errno.h>
#include <stdio.h>

static struct upstream_peer *find_peer(struct upstream_group *group, struct str name)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (upstream_peer_is_named(peer, name))
            return peer;
    }
    return NULL;
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
    upstream_apply_changes(pool);
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
    upstream_apply_changes(pool);
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

        if (!peer->retired && !peer->backup && !upstream_peer_is_named(peer, name))
            return true;
    }
    return false;
}

/* The addresses of a name come from DNS. */
static bool is_removable(const struct upstream_peer *peer, struct str name)
{
    return upstream_peer_is_named(peer, name) && str_empty(peer->server->host);
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
