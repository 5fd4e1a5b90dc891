/*
 * Creates and frees peers, with their state in the zone.
 */
#include "upstream/upstream_group.h"

#include <stdio.h>
#include <stdlib.h>

#define ADDED_KEY ((uint64_t)1 << 40)

/* The key of the entry in the zone: of group and line, or of the change that added the server. */
static uint64_t key_of(const struct upstream_peer *peer)
{
    const struct upstream *upstream = peer->group->upstream;

    if (peer->added)
        return ADDED_KEY + peer->added->serial;
    return upstream_hash(upstream->name, peer->server->text) + (uint64_t)(peer->server - upstream->servers) +
           ((uint64_t)upstream->user << 32);
}

/* Claims the shared state of the peer. */
static void claim_state(struct upstream_peer *peer, uint64_t weight)
{
    const struct upstream *upstream = peer->group->upstream;
    struct upstream_pool *pool = peer->group->pool;
    const struct upstream_claim claim = {
        .key = key_of(peer),
        .group = upstream->name,
        .name = str_from(peer->name),
        .weight = weight,
        .down = peer->server->down};

    snprintf(peer->route, sizeof(peer->route), "%016llx",
             (unsigned long long)upstream_hash(str_from(peer->name), peer->server->text));
    peer->state = &peer->own;
    peer->own.weight = weight;
    peer->own.mode = peer->server->down ? UPSTREAM_DOWN : UPSTREAM_UP;
    peer->zone_index = -1;
    if (!pool->zone)
        return;
    peer->zone_index = upstream_zone_claim(pool->zone, pool->worker, &claim);
    if (peer->zone_index >= 0)
        peer->state = upstream_zone_at(pool->zone, peer->zone_index);
}

void upstream_peer_free(struct upstream_peer *peer)
{
    if (peer->zone_index >= 0)
        upstream_zone_release(peer->group->pool->zone, peer->group->pool->worker, peer->zone_index);
    tls_resumption_finish(&peer->resumption);
    free(peer->added);
    free(peer);
}

/* Adds a peer whose members `server` and `added` are set. */
static struct upstream_peer *join_group(struct upstream_peer *peer, struct upstream_group *group,
                                        const struct listen_address *address, uint64_t weight)
{
    peer->group = group;
    peer->address = *address;
    peer->number = group->next_number++;
    peer->backup = peer->server->backup;
    listen_address_format(address, peer->name, sizeof(peer->name));
    claim_state(peer, weight);
    list_init(&peer->idle);
    list_init(&peer->shared);
    list_init(&peer->link);
    list_push(&group->peers, &peer->link);
    group->count++;
    return peer;
}

struct upstream_peer *upstream_peer_add(struct upstream_group *group, const struct upstream_server *server,
                                        const struct listen_address *address, uint64_t weight)
{
    struct upstream_peer *peer = calloc(1, sizeof(*peer));

    if (!peer)
        return NULL;
    peer->server = server;
    return join_group(peer, group, address, weight);
}

struct upstream_added *upstream_added_create(const struct upstream_server *server, uint64_t serial)
{
    struct upstream_added *added = calloc(1, sizeof(*added));
    struct str host = server->host;

    if (!added)
        return NULL;
    added->server = *server;
    added->serial = serial;
    if (str_empty(host)) {
        added->server.text = listen_address_format(&server->address, added->text, sizeof(added->text));
        return added;
    }
    snprintf(added->text, sizeof(added->text), STR_FMT ":%u", STR_ARG(host), server->port);
    added->server.text = str_from(added->text);
    added->server.host = str_slice(added->server.text, 0, host.length);
    return added;
}

struct upstream_peer *upstream_peer_add_changed(struct upstream_group *group, const struct upstream_server *server,
                                                const struct listen_address *address, uint64_t serial)
{
    struct upstream_peer *peer = calloc(1, sizeof(*peer));
    struct upstream_added *added = upstream_added_create(server, serial);

    if (!peer || !added) {
        free(peer);
        free(added);
        return NULL;
    }
    peer->server = &added->server;
    peer->added = added;
    return join_group(peer, group, address, server->weight);
}

void upstream_peer_free_unused(struct upstream_peer *peer)
{
    if (!peer->retired || peer->active > 0 || !list_empty(&peer->idle) || !list_empty(&peer->shared))
        return;
    list_remove(&peer->link);
    upstream_peer_free(peer);
}
