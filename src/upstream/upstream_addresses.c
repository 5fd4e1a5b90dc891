/*
 * The addresses of a name: its peers follow each answer, and shared memory keeps the last one for other workers.
 */
#include "upstream/upstream_group.h"
#include "upstream/upstream_mode.h"

#include "base/limits.h"

#include <stdio.h>

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

/* Adds the peer of an address. SRV records have weights; all but those with the lowest priority value are backups. */
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
        return; /* without a peer: out of memory, retried with the next answer */
    upstream_configure_weight(peer->state, weight);
    peer->backup = name->server->backup || found->priority > lowest;
}

void upstream_addresses_apply(struct upstream_name *name, const struct resolver_answer *answer)
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

/* The key of a name: all settings that its addresses depend on. Empty: too long to be stored. */
static struct str shared_key(const struct upstream_group *group, const struct upstream_server *server,
                             char text[LIMIT_RESOLVED_KEY])
{
    const struct resolver_settings *settings = upstream_resolver_settings(group);
    int length = snprintf(text, LIMIT_RESOLVED_KEY, STR_FMT ":%u " STR_FMT " " STR_FMT "%s%s", STR_ARG(server->host),
                          server->port, STR_ARG(server->service), STR_ARG(settings->servers),
                          settings->no_ipv4 ? " ipv4=off" : "", settings->no_ipv6 ? " ipv6=off" : "");

    return length > 0 && length < LIMIT_RESOLVED_KEY ? str_of(text, (size_t)length) : STR("");
}

void upstream_addresses_store(const struct upstream_group *group, const struct upstream_server *server,
                          const struct resolver_answer *answer)
{
    struct resolved_names *names = upstream_zone_names(group->pool->zone);
    char text[LIMIT_RESOLVED_KEY];

    if (names)
        resolved_names_store(names, shared_key(group, server, text), answer);
}

void upstream_addresses_load(struct upstream_name *name)
{
    struct resolved_names *names = upstream_zone_names(name->group->pool->zone);
    struct resolver_address addresses[LIMIT_UPSTREAM_ADDRESSES];
    struct resolver_answer answer = {.addresses = addresses};
    char text[LIMIT_RESOLVED_KEY];

    if (names)
        answer.count = resolved_names_load(names, shared_key(name->group, name->server, text), addresses);
    if (answer.count == 0)
        return;
    upstream_addresses_apply(name, &answer);
    name->resolved = true;
}
