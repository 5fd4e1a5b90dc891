/*
 * Finds and creates groups: blocks by name, and addresses of a proxy_pass as groups of one server.
 */
#include "upstream/upstream.h"

#include "base/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

const struct resolver_settings upstream_resolver_default;

/* "host:port", "host", "[v6]:port", "[v6]". */
static int split_port(struct str text, uint16_t default_port, struct str *out_host, uint16_t *out_port)
{
    ssize_t close = str_starts(text, STR("[")) ? str_find(text, ']') : -1;
    ssize_t colon = str_rfind(text, ':');
    uint64_t port = default_port;

    *out_host = text;
    if (colon > close) {
        if (str_to_u64(str_skip(text, (size_t)colon + 1), &port) < 0 || port == 0 || port > 65535)
            return -EINVAL;
        *out_host = str_slice(text, 0, (size_t)colon);
    }
    *out_port = (uint16_t)port;
    return 0;
}

/* Letters, digits, dots, hyphens and underscores, as in hosts files. */
static bool is_host_name(struct str host)
{
    for (size_t i = 0; i < host.length; i++) {
        char c = str_lower(host.data[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'))
            return false;
    }
    return host.length > 0 && host.length <= LIMIT_HOST && host.data[0] != '.' && host.data[0] != '-';
}

static bool parse_ip4(struct str host, uint16_t port, struct listen_address *out)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&out->socket;
    char text[INET_ADDRSTRLEN];

    if (host.length >= sizeof(text))
        return false;
    memcpy(text, host.data, host.length);
    text[host.length] = '\0';
    if (inet_pton(AF_INET, text, &address->sin_addr) != 1)
        return false;
    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    out->length = sizeof(*address);
    return true;
}

static bool parse_ip6(struct str host, uint16_t port, struct listen_address *out)
{
    struct sockaddr_in6 *address = (struct sockaddr_in6 *)&out->socket;
    char text[INET6_ADDRSTRLEN];

    if (host.length < 4 || host.data[host.length - 1] != ']' || host.length - 2 >= sizeof(text))
        return false;
    memcpy(text, host.data + 1, host.length - 2);
    text[host.length - 2] = '\0';
    if (inet_pton(AF_INET6, text, &address->sin6_addr) != 1)
        return false;
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(port);
    out->length = sizeof(*address);
    return true;
}

int upstream_server_parse(struct str text, uint16_t default_port, struct upstream_server *out_server)
{
    struct upstream_server server = {.text = text, .weight = 1, .max_fails = 1, .fail_timeout_ms = 10000};
    struct str host;

    if (str_starts(text, STR("unix:"))) {
        if (text.length == 5 || listen_address_parse(text, &server.address) < 0)
            return -EINVAL;
        *out_server = server;
        return 0;
    }
    if (split_port(text, default_port, &host, &server.port) < 0)
        return -EINVAL;
    if (str_starts(host, STR("["))) {
        if (!parse_ip6(host, server.port, &server.address))
            return -EINVAL;
    } else if (!parse_ip4(host, server.port, &server.address)) {
        if (!is_host_name(host))
            return -EINVAL;
        server.host = host;
    }
    *out_server = server;
    return 0;
}

void upstream_single(struct upstream *upstream, struct upstream_server *server)
{
    *upstream = (struct upstream){.name = server->text,
                                  .servers = server,
                                  .count = 1,
                                  .resolver = &upstream_resolver_default,
                                  .keepalive = 32,
                                  .keepalive_timeout_ms = 60000,
                                  .keepalive_requests = 1000};
}

const struct resolver_settings *upstreams_resolver(const struct upstreams *upstreams, enum upstream_user user)
{
    return upstreams->resolver[user] ? upstreams->resolver[user] : &upstream_resolver_default;
}

/* Adds a group that is already in the arena. */
void upstreams_append(struct upstreams *upstreams, struct upstream *upstream)
{
    if (!upstreams->last)
        upstreams->last = &upstreams->first;
    upstream->index = upstreams->count++;
    upstream->user = upstreams->user;
    *upstreams->last = upstream;
    upstreams->last = &upstream->next;
}

/* A block of that name, or a single address with the same port, explicit or default. */
static const struct upstream *find_target(const struct upstreams *upstreams, struct str authority,
                                          uint16_t default_port)
{
    struct upstream_server parsed;
    bool address = upstream_server_parse(authority, default_port, &parsed) == 0;

    for (const struct upstream *upstream = upstreams->first; upstream; upstream = upstream->next) {
        if (upstream->user == upstreams->user && str_equal(upstream->name, authority) &&
            (upstream->named || (address && upstream->servers->port == parsed.port)))
            return upstream;
    }
    return NULL;
}

/*
 * An upstream block is found by its name. Without a block, each spelling of an address is a group: "host", "host:80".
 */
const struct upstream *upstreams_target(struct upstreams *upstreams, struct str authority,
                                        uint16_t default_port, int *out_error)
{
    const struct upstream *found = find_target(upstreams, authority, default_port);
    struct upstream_server *server;
    struct upstream *upstream;
    struct str text;

    if (found)
        return found;
    server = arena_zalloc(upstreams->arena, 1, sizeof(*server));
    upstream = arena_zalloc(upstreams->arena, 1, sizeof(*upstream));
    text = arena_copy(upstreams->arena, authority);
    *out_error = -ENOMEM;
    if (!server || !upstream || !text.data)
        return NULL;
    *out_error = upstream_server_parse(text, default_port, server);
    if (*out_error < 0)
        return NULL;
    upstream_single(upstream, server);
    upstream->resolver = upstreams_resolver(upstreams, upstreams->user);
    upstreams_append(upstreams, upstream);
    return upstream;
}
