/*
 * Variables of `stream`: client, preread ClientHello and result. Most are final only at the end of the connection, in
 * the access log.
 */
#include "server/variables.h"

#include "base/saturate.h"
#include "build_options.h"
#include "site/subjects.h"
#include "stream/stream_private.h"

#include <unistd.h>

#define ABSENT ((struct str){NULL, 0})

static const struct clock *clock_of(const void *subject)
{
    const struct stream *stream = subject;

    return &stream->worker->loop.clock;
}

/* The connection. */

static struct str get_remote_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_address(stream_client(subject), arena);
}

static struct str get_binary_remote_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_binary_address(stream_client(subject));
}

static struct str get_remote_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(stream_client(subject), arena);
}

static struct str get_realip_remote_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_address(stream_peer(subject), arena);
}

static struct str get_realip_remote_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(stream_peer(subject), arena);
}

/* The source or destination of the PROXY protocol header; without a header, AF_UNSPEC. */
static const struct sockaddr *proxy_header_address(const void *subject, bool source)
{
    static const struct sockaddr unknown_address;
    const struct proxy_header *proxy_header = stream_proxy_header(subject);

    if (!proxy_header)
        return &unknown_address;
    return source ? &proxy_header->source.any : &proxy_header->destination.any;
}

static struct str get_proxy_protocol_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_address(proxy_header_address(subject, true), arena);
}

static struct str get_proxy_protocol_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(proxy_header_address(subject, true), arena);
}

static struct str get_proxy_protocol_server_addr(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_address(proxy_header_address(subject, false), arena);
}

static struct str get_proxy_protocol_server_port(const void *subject, struct str parameter, struct arena *arena)
{
    return variable_port(proxy_header_address(subject, false), arena);
}

static struct str get_server_addr(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return variable_local_address(stream->endpoint, &stream->client, arena);
}

static struct str get_server_port(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;
    unsigned port = listen_address_port(&stream->endpoint->address);

    return port ? arena_print_number(arena, port) : STR("");
}

static struct str get_server_name(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return stream->virtual->name;
}

static struct str get_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    return STR("TCP");
}

static struct str get_connection(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return arena_print_number(arena, stream->number);
}

/* The result. */

static struct str get_stream_status(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return arena_printf(arena, "%03d", stream->status);
}

static struct str get_bytes_sent(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return arena_print_number(arena, stream->down.bytes + stream->own_bytes);
}

static struct str get_bytes_received(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return arena_print_number(arena, stream->up.bytes + stream->preread.bytes);
}

static struct str get_session_time(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return arena_print_seconds(arena, u64_sub_sat(clock_of(subject)->monotonic_us, stream->began_us));
}

static struct str get_bytes_zero_copy(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return arena_print_number(arena, stream->transfer.zero_copy);
}

static struct str get_tls_path(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return str_from(wire_path_name(stream->transfer.path));
}

static struct str get_tls_path_reason(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return str_from(wire_reason_name(stream->transfer.reason));
}

/* Variables of a preread ClientHello. */

static struct str get_preread_name(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return stream->preread.name;
}

static struct str get_preread_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return stream->preread.protocol;
}

static struct str get_preread_alpn(const void *subject, struct str parameter, struct arena *arena)
{
    const struct stream *stream = subject;

    return stream->preread.alpn;
}

/* Clock, machine and process. */

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
    const struct stream *stream = subject;

    return stream->worker->configuration->hostname;
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
    {"bytes_received", false, get_bytes_received, .type = "bytes",
     .help = "Bytes that were received from the client."},
    {"bytes_sent", false, get_bytes_sent, .type = "bytes",
     .help = "Bytes that were sent to the client."},
    {"bytes_zero_copy", false, get_bytes_zero_copy, .type = "bytes",
     .help = "Bytes sent from a file or a pipe to the socket without a copy in user space."},
    {"connection", false, get_connection, .type = "number",
     .help = "Number of the connection."},
    {"hostname", false, get_hostname, .type = "text",
     .help = "Name of the machine."},
    {"msec", false, get_msec, .type = "seconds",
     .help = "Time of day, with milliseconds."},
    {"nginx_version", false, get_version, .type = "text",
     .help = "Version of sluice."},
    {"pid", false, get_pid, .type = "number",
     .help = "Process id of the worker."},
    {"protocol", false, get_protocol, .type = "text",
     .help = "Protocol of the connection: TCP."},
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
    {"server_addr", false, get_server_addr, .type = "address",
     .help = "Address to which the client connected."},
    {"server_name", false, get_server_name, .type = "text",
     .help = "Name of the server: the first of its server_name."},
    {"server_port", false, get_server_port, .type = "number",
     .help = "Port to which the client connected."},
    {"session_time", false, get_session_time, .type = "seconds",
     .help = "Duration of the connection, with milliseconds."},
    {"ssl_preread_alpn_protocols", false, get_preread_alpn, .type = "text",
     .help = "Protocols that the ClientHello offers by ALPN, separated by commas."},
    {"ssl_preread_protocol", false, get_preread_protocol, .type = "text",
     .help = "Highest version of TLS that the ClientHello offers."},
    {"ssl_preread_server_name", false, get_preread_name, .type = "text",
     .help = "Name in the SNI extension of the ClientHello."},
    {"status", false, get_stream_status, .type = "number",
     .help = "Status of the connection's end: 200, 400, 403, 500, 502 or 503."},
    {"time_iso8601", false, get_time_iso8601, .type = "time",
     .help = "Local time in ISO 8601: 2026-01-31T12:00:00+01:00."},
    {"time_local", false, get_time_local, .type = "time",
     .help = "Local time in the common log format: 31/Jan/2026:12:00:00 +0100."},
    {"tls_path", false, get_tls_path, .type = "text",
     .help = "Transmission path of the response: plain, user, openssl, ktls-send, ktls-sendfile and others."},
    {"tls_path_reason", false, get_tls_path_reason, .type = "text",
     .help = "The reason for $tls_path."},
};

static const void *tls_of(const void *subject)
{
    const struct stream *stream = subject;

    return stream->client.tls;
}

static const struct variable_table variables_tls_stream = {
    .variables = variables_of_tls,
    .count = VARIABLES_OF_TLS,
    .next = &variables_stream_upstream,
    .part = tls_of,
};

const struct variable_table variables_stream = {
    .variables = variables,
    .count = sizeof(variables) / sizeof(variables[0]),
    .next = &variables_tls_stream,
};
