/*
 * `proxy_bind` and `grpc_bind`: the local address of connections to upstream servers.
 */
#ifndef UPSTREAM_UPSTREAM_BIND_H
#define UPSTREAM_UPSTREAM_BIND_H

#include "conf/directive.h"
#include "wire/proxy_header.h"

/* Reads "127.0.0.1", "::1" or off into a union proxy_address; off: its family stays AF_UNSPEC. */
int upstream_read_bind(struct conf_reader *reader, const struct conf_node *node, void *out);

/* For upstream_transport.local_address: NULL if the system chooses the address. */
static inline const struct sockaddr *upstream_bind_address(const union proxy_address *bind)
{
    return bind->any.sa_family == AF_UNSPEC ? NULL : &bind->any;
}

/* A row of a directive table. */
#define UPSTREAM_BIND_ROW(key, in, at)                                                                       \
    {.name = (key),                                                                                          \
     .scopes = (in),                                                                                         \
     .type = DIRECTIVE_CUSTOM,                                                                               \
     .offset = (at),                                                                                         \
     .row_size = sizeof(union proxy_address),                                                                \
     .row = upstream_read_bind,                                                                              \
     .syntax = "address | off",                                                                              \
     .example = key ": 192.0.2.1",                                                                           \
     .schema = "{\"type\": [\"string\", \"boolean\"]}",                                                     \
     .help = "The local address of connections to upstream servers; off: the system chooses it."}

#endif
