/*
 * The pool: groups and peers of a worker, created and destroyed with it.
 */
#include "upstream/upstream_group.h"

#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>

/* Creates the peers of addresses, and starts the resolution of names, whose peers are created later. */
static int group_init(struct upstream_group *group, struct upstream_pool *pool,
                      const struct upstream *upstream)
{
    group->upstream = upstream;
    group->pool = pool;
    list_init(&group->peers);
    list_init(&group->waiting);
    upstream_checks_start(group);
    for (size_t i = 0; i < upstream->count; i++) {
        const struct upstream_server *server = &upstream->servers[i];

        if (str_empty(server->host) && !upstream_peer_add(group, server, &server->address, server->weight))
            return -ENOMEM;
    }
    return upstream_names_start(group);
}

static void group_finish(struct upstream_group *group)
{
    struct list *link;

    if (!group->pool)
        return;
    while ((link = list_pop(&group->peers)) != NULL)
        upstream_peer_free(container_of(link, struct upstream_peer, link));
    upstream_names_finish(group);
}

static int open_groups(struct upstream_pool *pool, const struct upstreams *upstreams)
{
    pool->groups = calloc(upstreams->count + 1, sizeof(*pool->groups));
    if (!pool->groups)
        return -ENOMEM;
    pool->group_count = upstreams->count;
    for (const struct upstream *upstream = upstreams->first; upstream; upstream = upstream->next) {
        if (group_init(&pool->groups[upstream->index], pool, upstream) < 0)
            return -ENOMEM;
    }
    return 0;
}

struct upstream_pool *upstream_pool_create(struct loop *loop, struct log *log,
                                           const struct upstreams *upstreams, struct upstream_zone *zone,
                                           unsigned worker)
{
    static const struct ktls_support no_ktls;
    struct upstream_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return NULL;
    pool->loop = loop;
    pool->log = log;
    pool->upstreams = upstreams;
    pool->zone = zone;
    pool->worker = worker;
    pool->wires = (struct wire_shared){.loop = loop,
                                       .log = log,
                                       .ktls = &no_ktls,
                                       .counters = &pool->counters,
                                       .output_max = LIMIT_WORKER_OUTPUT};
    pool->settings = (struct wire_settings){
        .sendfile = true, .block_size = LIMIT_UPSTREAM_BLOCK, .record_size = LIMIT_RECORD_PLAINTEXT};
    list_init(&pool->connections);
    list_init(&pool->woken);
    list_init(&pool->names_due);
    if (wire_shared_init(&pool->wires) == 0 && open_groups(pool, upstreams) == 0)
        return pool;
    upstream_pool_stop(pool);
    if (loop->in_flight == 0)
        upstream_pool_destroy(pool);
    return NULL;
}

void upstream_pool_set_counters(struct upstream_pool *pool, struct wire_counters *counters)
{
    pool->wires.counters = counters;
}

struct upstream_zone *upstream_pool_zone(const struct upstream_pool *pool)
{
    return pool->zone;
}

void upstream_pool_retire(struct upstream_pool *pool)
{
    pool->retired = true;
    if (pool->zone)
        upstream_zone_release_leadership(pool->zone, pool->worker);
}

void upstream_pool_stop(struct upstream_pool *pool)
{
    pool->stopping = true;
    for (unsigned i = 0; i < pool->group_count; i++) {
        if (pool->groups[i].pool)
            upstream_checks_stop(&pool->groups[i]);
    }
    (void)upstream_pool_close_idle(pool);
    upstream_connections_stop(pool);
    loop_cancel(pool->loop, &pool->tick);
    loop_cancel(pool->loop, &pool->follow);
    upstream_names_stop(pool);
}

void upstream_pool_destroy(struct upstream_pool *pool)
{
    struct upstream_target *target;

    if (!pool)
        return;
    for (unsigned i = 0; i < pool->group_count; i++)
        group_finish(&pool->groups[i]);
    while ((target = pool->targets) != NULL) {
        pool->targets = target->next;
        group_finish(&target->group);
        free(target);
    }
    upstream_tls_contexts_finish(&pool->tls_contexts);
    upstream_resolvers_finish(pool);
    table_finish(&pool->targets_by_name);
    free(pool->groups);
    wire_shared_finish(&pool->wires);
    free(pool);
}

struct upstream_group *upstream_pool_group(struct upstream_pool *pool, const struct upstream *upstream)
{
    return &pool->groups[upstream->index];
}

const struct upstream *upstream_group_upstream(const struct upstream_group *group)
{
    return group->upstream;
}

/* `key` is the authority and the default port: http://name and https://name are different servers. */
static struct upstream_target *make_target(struct str key, struct str authority, uint16_t default_port,
                                           const struct resolver_settings *resolver, int *out_error)
{
    struct upstream_target *target = calloc(1, sizeof(*target) + key.length);

    *out_error = -ENOMEM;
    if (!target)
        return NULL;
    memcpy(target->text, key.data, key.length);
    *out_error = upstream_server_parse(str_of(target->text, authority.length), default_port, &target->server);
    if (*out_error < 0) {
        free(target);
        return NULL;
    }
    upstream_single(&target->upstream, &target->server);
    target->upstream.resolver = resolver;
    return target;
}

static struct upstream_group *find_block(struct upstream_pool *pool, enum upstream_user user, struct str name)
{
    for (unsigned i = 0; i < pool->group_count; i++) {
        const struct upstream *upstream = pool->groups[i].upstream;

        if (upstream->named && upstream->user == user && str_equal(upstream->name, name))
            return &pool->groups[i];
    }
    return NULL;
}

/* True if a shared connection is not idle. peer->active does not count it if it has no exchange at present. */
static bool has_open_shared(const struct upstream_peer *peer)
{
    for (const struct list *link = peer->shared.next; link != &peer->shared; link = link->next) {
        if (container_of(link, const struct upstream_connection, sharing)->state != UPSTREAM_IDLE)
            return true;
    }
    return false;
}

/* True if there is no connection in use and no request waiting for its name. */
static bool is_unused(const struct upstream_target *target)
{
    const struct upstream_group *group = &target->group;

    for (const struct list *link = group->peers.next; link != &group->peers; link = link->next) {
        const struct upstream_peer *peer = container_of(link, const struct upstream_peer, link);

        if (peer->active > 0 || has_open_shared(peer))
            return false;
    }
    return list_empty(&group->waiting);
}

static void remove_target(struct upstream_pool *pool, struct upstream_target **link)
{
    struct upstream_target *target = *link;

    *link = target->next;
    (void)table_remove(&pool->targets_by_name, target->key);
    (void)upstream_group_close_idle(&target->group);
    group_finish(&target->group);
    free(target);
}

/* Evicts the least recently used target among the unused ones. */
static bool evict_target(struct upstream_pool *pool)
{
    struct upstream_target **oldest = NULL;

    for (struct upstream_target **at = &pool->targets; *at; at = &(*at)->next) {
        if (is_unused(*at) && (!oldest || (*at)->used_ms < (*oldest)->used_ms))
            oldest = at;
    }
    if (!oldest)
        return false;
    remove_target(pool, oldest);
    return true;
}

static struct upstream_group *add_target(struct upstream_pool *pool, enum upstream_user user, struct str key,
                                         struct str authority, uint16_t default_port, int *out_error)
{
    struct upstream_target *target;

    *out_error = -ENOBUFS;
    if (pool->targets_by_name.count >= LIMIT_UPSTREAM_TARGETS && !evict_target(pool))
        return NULL;
    target = make_target(key, authority, default_port, upstreams_resolver(pool->upstreams, user), out_error);
    if (!target)
        return NULL;
    *out_error = table_set(&pool->targets_by_name, str_of(target->text, key.length), target);
    if (*out_error < 0) {
        free(target);
        return NULL;
    }
    target->key = str_of(target->text, key.length);
    target->used_ms = pool->loop->clock.monotonic_ms;
    target->next = pool->targets;
    pool->targets = target;
    *out_error = group_init(&target->group, pool, &target->upstream);
    if (*out_error < 0) {
        remove_target(pool, &pool->targets);
        return NULL;
    }
    return &target->group;
}

struct upstream_group *upstream_pool_target_of(struct upstream_pool *pool, enum upstream_user user,
                                               struct str authority, uint16_t default_port, int *out_error)
{
    struct upstream_group *block = find_block(pool, user, authority);
    char text[LIMIT_UPSTREAM_AUTHORITY + sizeof(default_port) + 1];
    struct str key = str_of(text, authority.length + sizeof(default_port) + 1);
    struct upstream_target *target;

    if (block)
        return block;
    *out_error = -EINVAL;
    if (authority.length > LIMIT_UPSTREAM_AUTHORITY)
        return NULL;
    memcpy(text, authority.data, authority.length);
    memcpy(text + authority.length, &default_port, sizeof(default_port));
    text[key.length - 1] = (char)user;
    target = table_get(&pool->targets_by_name, key);
    if (target) {
        target->used_ms = pool->loop->clock.monotonic_ms;
        return &target->group;
    }
    return add_target(pool, user, key, authority, default_port, out_error);
}
