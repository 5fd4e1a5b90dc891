/*
 * Closes idle connections: of a retired peer, of a group, of the pool.
 */
#include "upstream/upstream_group.h"

/* Returns the number of closed connections. */
static unsigned peer_close_idle(struct upstream_peer *peer)
{
    struct list *link = peer->idle.next;
    unsigned count = 0;

    while (link != &peer->idle) {
        struct list *next = link->next;
        bool last = next == &peer->idle; /* the close of its last connection may free a retired peer */

        upstream_connection_discard(container_of(link, struct upstream_connection, link));
        count++;
        if (last)
            break;
        link = next;
    }
    return count;
}

unsigned upstream_group_close_idle(struct upstream_group *group)
{
    struct list *link = group->peers.next;
    unsigned count = 0;

    while (group->pool && link != &group->peers) {
        struct upstream_peer *peer = container_of(link, struct upstream_peer, link);

        link = link->next; /* the close of its last connection may free a retired peer */
        count += peer_close_idle(peer);
    }
    return count;
}

unsigned upstream_pool_close_idle(struct upstream_pool *pool)
{
    unsigned count = 0;

    for (unsigned i = 0; i < pool->group_count; i++)
        count += upstream_group_close_idle(&pool->groups[i]);
    for (struct upstream_target *target = pool->targets; target; target = target->next)
        count += upstream_group_close_idle(&target->group);
    return count;
}

void upstream_peer_retire(struct upstream_peer *peer)
{
    peer->retired = true;
    peer->group->count--;
    upstream_peer_sweep(peer);
}

void upstream_peer_sweep(struct upstream_peer *peer)
{
    bool in_use = peer->active > 0 || !list_empty(&peer->idle) || !list_empty(&peer->shared);

    if (in_use)
        peer_close_idle(peer);
    else
        upstream_peer_free_unused(peer);
}
