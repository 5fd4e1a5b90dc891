/*
 * Counts connections per client address (worker_connections_per_address), per worker, and only if the limit is set.
 * An IPv6 /64 counts as one address, because one client commonly owns all of it.
 */
#include "server/connection_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

struct address {
    unsigned connections;
    bool logged;      /* the limit was logged; cleared when the last connection of the address closes */
    struct str key; /* `bytes` */
    char bytes[8];
};

/* Returns an empty key for a peer without an IP address. */
static struct str address_key(const union proxy_address *peer)
{
    if (peer->any.sa_family == AF_INET)
        return str_of((const char *)&peer->ip4.sin_addr, sizeof(peer->ip4.sin_addr));
    if (peer->any.sa_family == AF_INET6)
        return str_of((const char *)&peer->ip6.sin6_addr, 8);
    return STR("");
}

static struct address *address_find_or_add(struct worker *worker, struct str key)
{
    struct address *address = table_get(&worker->addresses, key);

    if (address)
        return address;
    address = calloc(1, sizeof(*address));
    if (!address)
        return NULL;
    memcpy(address->bytes, key.data, key.length);
    address->key = str_of(address->bytes, key.length);
    if (table_set(&worker->addresses, address->key, address) < 0) {
        free(address);
        return NULL;
    }
    return address;
}

static void log_rejected_address(struct worker *worker, struct address *address, const union proxy_address *peer)
{
    char text[INET6_ADDRSTRLEN] = "";

    worker->counters->rejected++;
    if (address->logged)
        return;
    address->logged = true;
    if (peer->any.sa_family == AF_INET)
        inet_ntop(AF_INET, &peer->ip4.sin_addr, text, sizeof(text));
    else
        inet_ntop(AF_INET6, &peer->ip6.sin6_addr, text, sizeof(text));
    log_write(worker->log, LOG_WARN,
              "%s has %u connections: further ones are closed (worker_connections_per_address)", text,
              address->connections);
}

int connection_address_reserve(struct worker *worker, const union proxy_address *peer)
{
    uint64_t max = worker->configuration->main->connections_per_address;
    struct str key = address_key(peer);
    struct address *address;

    if (max == 0 || str_empty(key))
        return 0;
    address = address_find_or_add(worker, key);
    if (!address)
        return -ENOMEM;
    if (address->connections >= max) {
        log_rejected_address(worker, address, peer);
        return -EUSERS;
    }
    address->connections++;
    return 0;
}

void connection_address_unreserve(struct worker *worker, const union proxy_address *peer)
{
    struct str key = address_key(peer);
    struct address *address;

    if (worker->configuration->main->connections_per_address == 0 || str_empty(key))
        return;
    address = table_get(&worker->addresses, key);
    if (--address->connections > 0)
        return;
    table_remove(&worker->addresses, key);
    free(address);
}
