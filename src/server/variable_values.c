/*
 * Values that several tables of variables share, some of them also with the log, the error pages and `stream`.
 */
#include "server/variables.h"

#include "http/date.h"
#include "server/request_state.h"

#include <arpa/inet.h>

#define ABSENT ((struct str){NULL, 0})

enum { REQUEST_ID_DIGITS = 32 };

/* "user_agent" matches User-Agent. */
static bool names_header(struct str parameter, struct str name)
{
    if (parameter.length != name.length)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = str_lower(name.data[i]);

        if (c == '-')
            c = '_';
        if (c != str_lower(parameter.data[i]))
            return false;
    }
    return true;
}

struct str variable_of_headers(const struct headers *headers, struct str parameter, struct arena *arena)
{
    struct str separator = str_equal_nocase(parameter, STR("cookie")) ? STR("; ") : STR(", "); /* RFC 6265 4.2.1 */
    struct str joined;

    return headers_join(headers, names_header, parameter, separator, arena, &joined) < 0 ? ABSENT : joined;
}

/* Formats "127.0.0.1" for each logged or proxied request; inet_ntop would use printf. */
static struct str write_ip4(const struct sockaddr_in *address, char into[INET_ADDRSTRLEN])
{
    const unsigned char *bytes = (const unsigned char *)&address->sin_addr;
    char *at = into;

    for (int i = 0; i < 4; i++) {
        if (i > 0)
            *at++ = '.';
        if (bytes[i] >= 100)
            *at++ = (char)('0' + bytes[i] / 100);
        if (bytes[i] >= 10)
            *at++ = (char)('0' + bytes[i] / 10 % 10);
        *at++ = (char)('0' + bytes[i] % 10);
    }
    return str_of(into, (size_t)(at - into));
}

struct str variable_binary_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return str_of((const char *)&((const struct sockaddr_in *)(const void *)address)->sin_addr,
                      sizeof(struct in_addr));
    if (address->sa_family == AF_INET6)
        return str_of((const char *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                      sizeof(struct in6_addr));
    return STR("");
}

struct str variable_address(const struct sockaddr *address, struct arena *arena)
{
    char text[INET6_ADDRSTRLEN];
    const void *bytes = NULL;

    if (address->sa_family == AF_UNIX)
        return STR("unix:");
    if (address->sa_family == AF_INET)
        return arena_copy(arena, write_ip4((const struct sockaddr_in *)(const void *)address, text));
    if (address->sa_family == AF_INET6)
        bytes = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (!bytes || !inet_ntop(address->sa_family, bytes, text, sizeof(text)))
        return ABSENT;
    return arena_copy(arena, str_from(text));
}

static unsigned address_port(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
    if (address->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    return 0;
}

struct str variable_port(const struct sockaddr *address, struct arena *arena)
{
    unsigned port = address_port(address);

    return port ? arena_printf(arena, "%u", port) : STR("");
}

/* Calls getsockname(), because the endpoint's address may be a wildcard; not for a Unix socket. */
struct str variable_local_address(const struct endpoint *endpoint, const struct wire *wire, struct arena *arena)
{
    struct sockaddr_storage own = endpoint->address.socket;
    socklen_t length = sizeof(own);

    if (own.ss_family != AF_UNIX && getsockname(wire->fd, (struct sockaddr *)&own, &length) < 0)
        return ABSENT;
    return variable_address((const struct sockaddr *)&own, arena);
}

struct str variable_remote_addr(const struct exchange *x, struct arena *arena)
{
    return variable_address(exchange_client(x), arena);
}

struct str variable_msec(const struct clock *clock, struct arena *arena)
{
    return arena_printf(arena, "%lld.%03lld", (long long)(clock->wall_ms / 1000), (long long)(clock->wall_ms % 1000));
}

struct str variable_time_local(const struct clock *clock, struct arena *arena)
{
    char text[64];

    return arena_copy(arena, date_format_local(clock_wall_s(clock), text));
}

struct str variable_time_iso8601(const struct clock *clock, struct arena *arena)
{
    char text[64];

    return arena_copy(arena, date_format_iso8601(clock_wall_s(clock), text));
}

struct str variable_request_id(const struct exchange *x)
{
    struct request_state *request = client_request_state_of(x);
    char *text;

    if (request->request_id)
        return str_of(request->request_id, REQUEST_ID_DIGITS);
    text = arena_alloc(&request->x->arena, REQUEST_ID_DIGITS);
    if (!text || worker_random_id(request->worker, text, REQUEST_ID_DIGITS) < 0)
        return ABSENT;
    request->request_id = text;
    return str_of(text, REQUEST_ID_DIGITS);
}
