/*
 * Applies the table of changes to the peers of a worker.
 *
 * Callers of upstream_choose may hold a peer. Therefore it only marks a removed peer; a timer closes the idle
 * connections of the peer, and frees it unless it is in use. A peer in use is freed with its last connection.
 */
#include "upstream/upstream_follow.h"

#include "upstream/upstream_group.h"

/* The serials of all added servers. */
struct serials {
    uint64_t items[LIMIT_UPSTREAM_CHANGES];
    unsigned count;
};

static bool has_added(const struct upstream_group *group, uint64_t serial)
{
    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (peer->added && peer->added->serial == serial)
            return true;
    }
    for (const struct upstream_name *name = group->names; name; name = name->next) {
        if (name->added && name->added->serial == serial)
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

/*
 * The text of the table may be anything that a compromised worker has written. Out of memory: retried with the next
 * change.
 */
static void add_server(struct upstream_group *group, const struct upstream_change *change)
{
    struct upstream_server server;

    if (has_added(group, change->serial) || upstream_server_parse(str_from(change->name), 80, &server) < 0)
        return;
    server.weight = change->weight;
    server.max_conns = change->max_conns;
    server.max_fails = change->max_fails;
    server.fail_timeout_ms = change->fail_timeout_ms;
    server.slow_start_ms = change->slow_start_ms;
    server.backup = change->backup;
    server.down = change->down;
    if (str_empty(server.host))
        (void)upstream_peer_add_changed(group, &server, &server.address, change->serial);
    else
        upstream_names_add(group, &server, change->serial);
}

/* Retires servers of the configuration with this address, except addresses of host names. */
static void remove_peers(struct upstream_group *group, struct str name)
{
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (upstream_peer_is_named(peer, name) && !peer->added && str_empty(peer->server->host))
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
    add_server(group, change);
}

static bool has_serial(const struct serials *serials, uint64_t serial)
{
    for (unsigned i = 0; i < serials->count; i++) {
        if (serials->items[i] == serial)
            return true;
    }
    return false;
}

/* Removes the names, and retires the peers, of added servers that are not in the table any more. */
static void remove_unlisted(struct upstream_group *group, const struct serials *serials)
{
    struct upstream_name *next = group->names;

    while (next) {
        struct upstream_name *name = next;

        next = name->next;
        if (name->added && !has_serial(serials, name->added->serial))
            upstream_name_remove(name);
    }
    for (struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        if (peer->added && !peer->retired && !has_serial(serials, peer->added->serial))
            mark_retired(peer);
    }
}

/* Rows of an older configuration do not apply; if there are rows of a newer one, this worker drains with its peers. */
void upstream_apply_changes(struct upstream_pool *pool)
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
        upstream_apply_changes(pool);
        upstream_changes_unlock(pool->changes);
    }
    if (pool->sweep && !pool->stopping)
        loop_timer_move(pool->loop, &pool->follow, pool->loop->clock.monotonic_ms);
}

/*
 * A newer configuration retires this worker soon. If none does, its number in the table is forged, and is replaced,
 * because it would prevent all changes.
 */
static void check_configuration(struct upstream_pool *pool)
{
    uint64_t now = pool->loop->clock.monotonic_ms;

    if (pool->retired || upstream_changes_configuration(pool->changes) <= pool->configuration) {
        pool->newer_since_ms = 0;
    } else if (pool->newer_since_ms == 0) {
        pool->newer_since_ms = now;
    } else if (now - pool->newer_since_ms >= LIMIT_UPSTREAM_FORGED_MS) {
        upstream_changes_lock(pool->changes);
        if (upstream_changes_configuration(pool->changes) > pool->configuration) {
            upstream_changes_set_configuration(pool->changes, pool->configuration);
            log_write(pool->log, LOG_ALERT, "the changes of upstream servers in shared memory had the number of a "
                      "configuration that does not exist: a worker process may be compromised");
        }
        upstream_changes_unlock(pool->changes);
        pool->newer_since_ms = 0;
    }
}

static void follow_timer_done(struct op *op, int result)
{
    struct upstream_pool *pool = container_of(op, struct upstream_pool, follow);

    if (pool->stopping || result < 0)
        return;
    check_configuration(pool);
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
    upstream_apply_changes(pool);
    upstream_changes_unlock(pool->changes);
    sweep_peers(pool);
    loop_timer(pool->loop, &pool->follow, pool->loop->clock.monotonic_ms + LIMIT_UPSTREAM_FOLLOW_MS);
}
