/*
 * Variables of the connection and of the process: addresses, time, names.
 */
#include "server/variables.h"

#include "build_options.h"
#include "server/connection.h"

#include <unistd.h>

static const struct connection *request_connection(const void *subject)
{
    return request_state_of(subject)->connection;
}

static const struct clock *clock_of(const void *subject)
{
    return &request_state_of(subject)->worker->loop.clock;
}

static struct str get_realip_remote_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_address(&request_connection(subject)->peer.any, arena);
}

static struct str get_realip_remote_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(&request_connection(subject)->peer.any, arena);
}

/* Returns an address of the PROXY protocol header; AF_UNSPEC without a header. */
static const struct sockaddr *proxy_header_address(const void *subject, bool source)
{
    static const struct sockaddr unknown_address;
    const struct proxy_header *proxy_header = request_connection(subject)->proxy_header;

    if (!proxy_header)
        return &unknown_address;
    return source ? &proxy_header->source.any : &proxy_header->destination.any;
}

static struct str get_proxy_protocol_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return str_or_empty(variable_address(proxy_header_address(subject, true), arena));
}

static struct str get_proxy_protocol_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(proxy_header_address(subject, true), arena);
}

static struct str get_proxy_protocol_server_addr(const void *subject, struct str parameter,
                                                 struct arena *arena)
{
    return str_or_empty(variable_address(proxy_header_address(subject, false), arena));
}

static struct str get_proxy_protocol_server_port(const void *subject, struct str parameter,
                                                 struct arena *arena)
{
    return variable_port(proxy_header_address(subject, false), arena);
}

static struct str get_remote_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_remote_addr(subject, arena);
}

static struct str get_binary_remote_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_binary_address(exchange_client(subject));
}

static struct str get_remote_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(exchange_client(subject), arena);
}

static struct str get_server_addr(const void *subject, struct str parameter, struct arena *arena)
{
    const struct connection *connection = request_connection(subject);

    return variable_local_address(connection->endpoint, &connection->wire, arena);
}

static struct str get_server_port(const void *subject, struct str parameter, struct arena *arena)
{
    unsigned port = listen_address_port(&request_connection(subject)->endpoint->address);

    return port ? arena_print_number(arena, port) : STR("");
}

static struct str get_server_name(const void *subject, struct str parameter, struct arena *arena)
{
    return request_state_of(subject)->server->name;
}

static struct str get_connection(const void *subject, struct str parameter, struct arena *arena)
{
    return arena_print_number(arena, request_connection(subject)->number);
}

static struct str get_connection_requests(const void *subject, struct str parameter, struct arena *arena)
{
    return arena_print_number(arena, request_connection(subject)->requests);
}

static struct str get_scheme(const void *subject, struct str parameter, struct arena *arena)
{
    return request_connection(subject)->endpoint->ssl ? STR("https") : STR("http");
}

static struct str get_https(const void *subject, struct str parameter, struct arena *arena)
{
    return request_connection(subject)->endpoint->ssl ? STR("on") : STR("");
}

static struct str get_msec(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_msec(clock_of(subject), arena);
}

static struct str get_time_local(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_time_local(clock_of(subject), arena);
}

static struct str get_time_iso8601(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_time_iso8601(clock_of(subject), arena);
}

static struct str get_hostname(const void *subject, struct str parameter, struct arena *arena)
{
    return request_state_of(subject)->worker->configuration->hostname;
}

static struct str get_pid(const void *subject, struct str parameter, struct arena *arena)
{
    return arena_print_number(arena, (uint64_t)getpid());
}

static struct str get_version(const void *subject, struct str parameter, struct arena *arena)
{
    return STR(SLUICE_VERSION);
}

static const struct variable variables[] = {
    {"binary_remote_addr", false, get_binary_remote_addr, .type = "4 or 16 bytes",
     .help = "Address of the client in binary form, as a key of limits."},
    {"connection", false, get_connection, .type = "number",
     .help = "Number of the connection."},
    {"connection_requests", false, get_connection_requests, .type = "number",
     .help = "Number of the request on its connection, from 1."},
    {"hostname", false, get_hostname, .type = "text",
     .help = "Name of the machine."},
    {"https", false, get_https, .type = "text",
     .help = "\"on\" for a connection with TLS, else empty."},
    {"msec", false, get_msec, .late = true, .type = "seconds",
     .help = "Time of day, with milliseconds."},
    {"nginx_version", false, get_version, .type = "text",
     .help = "Version of sluice."},
    {"pid", false, get_pid, .type = "number",
     .help = "Process id of the worker."},
    {"proxy_protocol_addr", false, get_proxy_protocol_addr, .type = "address",
     .help = "Address of the client in the PROXY protocol header."},
    {"proxy_protocol_port", false, get_proxy_protocol_port, .type = "number",
     .help = "Port of the client in the PROXY protocol header."},
    {"proxy_protocol_server_addr", false, get_proxy_protocol_server_addr, .type = "address",
     .help = "Address of the server in the PROXY protocol header."},
    {"proxy_protocol_server_port", false, get_proxy_protocol_server_port, .type = "number",
     .help = "Port of the server in the PROXY protocol header."},
    {"realip_remote_addr", false, get_realip_remote_addr, .type = "address",
     .help = "Address of the peer, regardless of set_real_ip_from."},
    {"realip_remote_port", false, get_realip_remote_port, .type = "number",
     .help = "Port of the peer, regardless of set_real_ip_from."},
    {"remote_addr", false, get_remote_addr, .type = "address",
     .help = "Address of the client."},
    {"remote_port", false, get_remote_port, .type = "number",
     .help = "Port of the client."},
    {"scheme", false, get_scheme, .type = "text",
     .help = "http or https."},
    {"server_addr", false, get_server_addr, .type = "address",
     .help = "Address to which the client connected."},
    {"server_name", false, get_server_name, .type = "text",
     .help = "Name of the server: the first of its server_name."},
    {"server_port", false, get_server_port, .type = "number",
     .help = "Port to which the client connected."},
    {"time_iso8601", false, get_time_iso8601, .late = true, .type = "time",
     .help = "Local time in ISO 8601: 2026-01-31T12:00:00+01:00."},
    {"time_local", false, get_time_local, .late = true, .type = "time",
     .help = "Local time in the common log format: 31/Jan/2026:12:00:00 +0100."},
};

const struct variable_table variables_connection = {
    variables,
    sizeof(variables) / sizeof(variables[0]),
    &variables_tls,
};
