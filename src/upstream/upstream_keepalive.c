/*
 * `keepalive`: reuses an idle connection for a request, or opens one, and keeps it idle after the request.
 */
#include "upstream/upstream_group.h"

#include <errno.h>
#include <netinet/in.h>

static bool is_same_source(const struct sockaddr *one, const struct sockaddr *other)
{
    size_t length = one && one->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    if (!one || !other || one->sa_family != other->sa_family)
        return one == other;
    return memcmp(one, other, length) == 0;
}

bool upstream_connection_matches(const struct upstream_connection *connection,
                                 const struct upstream_transport *transport)
{
    return connection->tls == transport->context &&
           is_same_source(connection->local_address, transport->local_address) &&
           (!transport->context || str_equal(str_from(connection->name), transport->name));
}

/* The most recently used idle connection with the same local address, TLS settings and name. */
static struct upstream_connection *get_idle(struct upstream_peer *peer, const struct upstream_transport *transport)
{
    for (struct list *link = peer->idle.next; link != &peer->idle; link = link->next) {
        struct upstream_connection *connection = container_of(link, struct upstream_connection, link);

        if (connection->shared || !upstream_connection_matches(connection, transport))
            continue;
        list_remove(link);
        peer->group->idle--;
        connection->state = UPSTREAM_OPEN;
        return connection;
    }
    return NULL;
}

int upstream_connect(struct upstream_peer *peer, const struct upstream_transport *transport,
                     const struct upstream_events *events, void *user, uint64_t timeout_ms, bool new_connection,
                     struct upstream_connection **out_connection)
{
    struct upstream_connection *connection;
    int error = 0;

    if (!upstream_peer_acquire(peer))
        return -EBUSY;
    connection = new_connection || !str_empty(transport->proxy_header) ? NULL : get_idle(peer, transport);
    if (!connection)
        connection = upstream_connection_create(peer, transport, &error);
    if (!connection) {
        upstream_peer_release(peer);
        return error;
    }
    list_push(&peer->group->pool->connections, &connection->link);
    connection->peer = peer;
    connection->events = events;
    connection->user = user;
    connection->requests++;
    upstream_set_timeout(connection, timeout_ms);
    *out_connection = connection;
    return 0;
}

bool upstream_connection_may_keep_idle(struct upstream_connection *connection)
{
    struct upstream_peer *peer = connection->peer;
    const struct upstream *upstream = peer->group->upstream;

    if (connection->state != UPSTREAM_OPEN || connection->pool->stopping || peer->retired ||
        !str_empty(connection->proxy_header) || upstream->keepalive == 0 || upstream->keepalive_timeout_ms == 0 ||
        connection->requests >= upstream->keepalive_requests ||
        (!connection->shared && !wire_drained(&connection->wire)))
        return false;
    if (peer->group->idle >= upstream->keepalive && !list_empty(&peer->idle))
        upstream_connection_discard(container_of(peer->idle.previous, struct upstream_connection, link));
    return peer->group->idle < upstream->keepalive;
}

void upstream_connection_keep_idle(struct upstream_connection *connection)
{
    struct upstream_peer *peer = connection->peer;

    connection->state = UPSTREAM_IDLE;
    if (connection->requests == 1)
        upstream_connection_store_session(connection);
    peer->group->idle++;
    list_remove(&connection->woken);
    list_remove(&connection->link);
    list_insert_before(peer->idle.next, &connection->link);
    upstream_set_timeout(connection, peer->group->upstream->keepalive_timeout_ms);
    wire_receive(&connection->wire); /* any event from here on closes it, unless it is shared */
}

void upstream_release(struct upstream_connection *connection)
{
    if (!upstream_connection_may_keep_idle(connection)) {
        upstream_discard(connection);
        return;
    }
    connection->events = NULL;
    connection->user = NULL;
    upstream_peer_release(connection->peer);
    upstream_connection_keep_idle(connection);
}
