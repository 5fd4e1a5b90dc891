/*
 * Connections that many exchanges share: found by their user, counted by exchange, idle between exchanges.
 */
#include "upstream/upstream_group.h"

bool upstream_use_begin(struct upstream_peer *peer)
{
    return upstream_peer_acquire(peer);
}

void upstream_use_end(struct upstream_peer *peer)
{
    upstream_peer_release(peer);
    upstream_peer_free_unused(peer);
}

int upstream_connect_shared(struct upstream_peer *peer, const struct upstream_transport *transport,
                            const struct upstream_events *events, void *user, uint64_t timeout_ms,
                            struct upstream_connection **out_connection)
{
    int error;
    struct upstream_connection *connection = upstream_connection_create(peer, transport, &error);

    if (!connection)
        return error;
    list_push(&peer->group->pool->connections, &connection->link);
    list_push(&peer->shared, &connection->sharing);
    connection->shared = true;
    connection->peer = peer;
    connection->events = events;
    connection->user = user;
    upstream_set_timeout(connection, timeout_ms);
    *out_connection = connection;
    return 0;
}

struct upstream_connection *upstream_shared_next(const struct upstream_peer *peer,
                                                 const struct upstream_transport *transport,
                                                 const struct upstream_events *events,
                                                 struct upstream_connection *previous)
{
    const struct list *link = previous ? previous->sharing.next : peer->shared.next;

    for (; link != &peer->shared; link = link->next) {
        struct upstream_connection *connection = container_of(link, struct upstream_connection, sharing);

        if (connection->events == events && str_empty(connection->proxy_header) && str_empty(transport->proxy_header) &&
            upstream_connection_matches(connection, transport))
            return connection;
    }
    return NULL;
}

bool upstream_shared_is_usable(const struct upstream_connection *connection)
{
    return connection->peer && !connection->peer->retired && !connection->pool->stopping &&
           connection->requests < connection->peer->group->upstream->keepalive_requests;
}

void upstream_shared_use(struct upstream_connection *connection)
{
    connection->requests++;
    if (connection->state != UPSTREAM_IDLE)
        return;
    list_remove(&connection->link);
    list_push(&connection->pool->connections, &connection->link);
    connection->peer->group->idle--;
    connection->state = UPSTREAM_OPEN;
}

bool upstream_shared_keep_idle(struct upstream_connection *connection)
{
    if (!upstream_connection_may_keep_idle(connection))
        return false;
    upstream_connection_keep_idle(connection);
    return true;
}
