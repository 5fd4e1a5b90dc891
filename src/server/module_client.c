/*
 * The functions of module.h that concern the client: its address, and its connection.
 */
#include "server/connection.h"

const struct sockaddr *exchange_client(const struct exchange *x)
{
    const struct request_state *request = request_state_of(x);

    return request->client_known ? &request->client.any : &request->connection->peer.any;
}

const struct sockaddr *exchange_peer(const struct exchange *x)
{
    return &request_state_of(x)->connection->peer.any;
}

void exchange_local_address(const struct exchange *x, union proxy_address *out)
{
    wire_local_address(&request_state_of(x)->connection->wire, out);
}

bool exchange_is_secure(const struct exchange *x)
{
    return request_state_of(x)->connection->endpoint->ssl;
}

const struct proxy_header *exchange_proxy_header(const struct exchange *x)
{
    return request_state_of(x)->connection->proxy_header;
}

void exchange_set_client(struct exchange *x, const union proxy_address *client, bool trusted)
{
    struct request_state *request = request_state_of(x);

    request->trusted = trusted;
    request->client = *client;
    request->client_known = true;
}

bool exchange_is_trusted(const struct exchange *x)
{
    return request_state_of(x)->trusted;
}
