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

/* The name among the servers of the group, or with `added` among those added at run time. NULL: none. */
static const struct upstream_name *find_name(const struct upstream_group *group, struct str name, bool added)
{
    char text[LIMIT_HOST + sizeof(":65535")];

    for (const struct upstream_name *at = group->names; at; at = at->next) {
        int length = snprintf(text, sizeof(text), STR_FMT ":%u", STR_ARG(at->server->host), at->server->port);

        if ((!added || at->added) && str_equal_nocase(str_of(text, (size_t)length), name))
            return at;
    }
    return NULL;
}

static bool has_serial(const struct upstream_peer *peer, uint64_t serial)
{
    return !peer->retired && peer->added && peer->added->serial == serial;
}

static struct upstream_change change_of(const struct upstream_group *group, enum upstream_change_kind kind,
                                        struct str name)
{
    struct upstream_change change = {.kind = kind, .group = group->upstream->index, .weight = 1};

    snprintf(change.name, sizeof(change.name), STR_FMT, STR_ARG(name));
    return change;
}

/*
 * Begins slow_start of the added server, before other workers use it. 0; -ENOSPC: it has no shared state; -ENOMEM: it
 * was not added. A name may have no peers yet.
 */
static int begin_use(struct upstream_group *group, uint64_t serial, bool is_name)
{
    int error = is_name ? 0 : -ENOMEM;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (!has_serial(peer, serial))
            continue;
        if (peer->zone_index < 0)
            return -ENOSPC;
        shared_set(&peer->state->recovered_ms, group->pool->loop->clock.monotonic_ms);
        error = 0;
    }
    return error;
}

static int add_server(struct upstream_group *group, const struct upstream_server *server, struct str name)
{
    struct upstream_pool *pool = group->pool;
    struct upstream_change change = change_of(group, CHANGE_ADDED, name);
    uint64_t serial;
    int error;

    if (find_peer(group, name) || find_name(group, name, false))
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
    error = begin_use(group, serial, !str_empty(server->host));
    if (error < 0)
        upstream_changes_erase(pool->changes, serial);
    return error;
}

/* Locks the table, and applies it to the peers of this worker. On failure it is not locked. */
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

struct str upstream_server_name(const struct upstream_server *server, char *text, size_t size)
{
    int length;

    if (str_empty(server->host))
        return listen_address_format(&server->address, text, size);
    length = snprintf(text, size, STR_FMT ":%u", STR_ARG(server->host), server->port);
    return length > 0 && (size_t)length < size ? str_of(text, (size_t)length) : STR("");
}

int upstream_group_add_server(struct upstream_group *group, const struct upstream_server *server)
{
    char text[sizeof(((struct upstream_change *)NULL)->name)];
    struct str name = upstream_server_name(server, text, sizeof(text));
    int error = str_empty(name) ? -ENAMETOOLONG : begin_change(group);

    return error < 0 ? error : end_change(group, add_server(group, server, name));
}

void upstream_group_find_server(const struct upstream_group *group, struct str name,
                                bool entries[LIMIT_UPSTREAM_PEERS])
{
    const struct upstream_name *found = find_name(group, name, true);

    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (found && peer->zone_index >= 0 && has_serial(peer, found->added->serial))
            entries[peer->zone_index] = true;
    }
}

static bool is_other_primary(const struct upstream_name *name, const struct upstream_name *removed)
{
    return name != removed && !name->server->backup;
}

/* True if the group has a server that is not a backup, besides those with this name. A host name counts as one. */
static bool has_other_primary(struct upstream_group *group, struct str name)
{
    const struct upstream_name *removed = find_name(group, name, true);

    for (const struct upstream_name *at = group->names; at; at = at->next) {
        if (is_other_primary(at, removed))
            return true;
    }
    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (!peer->retired && !peer->backup && !upstream_peer_is_named(peer, name) &&
            (!removed || !has_serial(peer, removed->added->serial)))
            return true;
    }
    return false;
}

/* False for an address of a name: it comes from DNS. */
static bool is_removable(const struct upstream_peer *peer, struct str name)
{
    return upstream_peer_is_named(peer, name) && str_empty(peer->server->host);
}

/* The kinds of servers that have a certain name. */
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

/* Marks the servers with this name as removed, and erases the rows of those added at run time. */
static void mark_removed(struct upstream_group *group, struct str name)
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

/* Removes a name that was added at run time, with its addresses. */
static int remove_name(struct upstream_group *group, const struct upstream_name *name)
{
    uint64_t serial = name->added->serial;

    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (has_serial(peer, serial))
            shared_set(&peer->state->removed, group->pool->configuration);
    }
    upstream_changes_erase(group->pool->changes, serial);
    return 0;
}

static int remove_server(struct upstream_group *group, struct str name)
{
    const struct upstream_name *added = find_name(group, name, true);
    struct upstream_pool *pool = group->pool;
    const struct upstream_change change = change_of(group, CHANGE_REMOVED, name);
    struct named found = find_removable(group, name);
    uint64_t serial;
    int error = 0;

    if (!added && !found.added && !found.configured)
        return find_peer(group, name) || find_name(group, name, false) ? -EADDRNOTAVAIL : -ENOENT;
    if (!has_other_primary(group, name))
        return -EBUSY;
    if (added)
        return remove_name(group, added);
    if (found.configured)
        error = upstream_changes_write(pool->changes, pool->configuration, &change, &serial);
    if (error == 0)
        mark_removed(group, name);
    return error;
}

int upstream_group_remove_server(struct upstream_group *group, struct str name)
{
    int error = begin_change(group);

    return error < 0 ? error : end_change(group, remove_server(group, name));
}
