/*
 * The directives of grpc_pass: those of proxy_pass that concern streams of HTTP/2.
 */
#include "grpc.h"

#include "modules/gateway/gateway_rows.h"
#include "upstream/upstream_bind.h"
#include "upstream/upstream_ssl.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct proxy_conf, field)

int grpc_read_pass(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    return proxy_read_pass_as(reader, node, grpc_target_parse, STR("write: grpc_pass: grpc://127.0.0.1:50051"), out);
}

int grpc_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct proxy_conf *own = conf;
    struct gateway_pass *pass = &own->gateway.pass;
    int error;

    own->gateway.gateway = &grpc_gateway;
    own->gateway.ssl.settings.http2 = true;
    if (pass->set_in_location && !reader->is_overlay && !conf_map_get(at, STR("grpc_pass")))
        *pass = (struct gateway_pass){0};
    error = proxy_complete_tls(own, "grpc", reader, at);
    return error ? error : gateway_conf_complete(&own->gateway, reader, at);
}

const struct directive grpc_directives[] = {
    {.name = "grpc_pass",
     .scopes = SCOPE_LOCATION,
     .line = true,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(gateway.pass),
     .row_size = sizeof(struct gateway_pass),
     .row = grpc_read_pass,
     .syntax = "[grpc[s]://]address[:port] | [grpc://]unix:path | upstream",
     .example = "grpc_pass: grpc://127.0.0.1:50051",
     .help = "Pass requests to a gRPC server over HTTP/2: in cleartext without negotiation, or with grpcs:// over TLS "
             "with ALPN. Messages are passed on in both directions as they arrive. Errors of this server are sent as "
             "a grpc-status: 14 (UNAVAILABLE) for 502, 4 (DEADLINE_EXCEEDED) for 504."},
    {.name = "grpc_set_header",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = AT(set_headers),
     .row_size = sizeof(struct proxy_fields),
     .row = proxy_read_fields,
     .syntax = "name value | {name: value, ...}",
     .example = "grpc_set_header: [X-Request-Id $request_id, {Host: $host}]",
     .help = "Header fields of the upstream request, as proxy_set_header.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}"},
    GATEWAY_FIELDS_ROW("grpc_hide_header", AT(gateway), hide_headers, "X-Runtime",
                       "Header fields of a response that are not passed on, as proxy_hide_header."),
    GATEWAY_FIELDS_ROW("grpc_pass_header", AT(gateway), pass_headers, "X-Runtime",
                       "Header fields of a response that are passed on although they are dropped by default."),
    GATEWAY_IGNORE_HEADERS_ROW("grpc", AT(gateway),
                               "Header fields of a response without effect on this server, as proxy_ignore_headers."),
    UPSTREAM_BIND_ROW("grpc_bind", SCOPE_SITE, AT(gateway.bind)),
    GATEWAY_DURATION_ROW("grpc_connect_timeout", AT(gateway), connect_timeout_ms, "60s", "20s",
                         "The timeout for connecting to the server."),
    GATEWAY_DURATION_ROW("grpc_send_timeout", AT(gateway), send_timeout_ms, "60s", "20s",
                         "The timeout between two successful writes of a request to the server."),
    GATEWAY_DURATION_ROW("grpc_read_timeout", AT(gateway), read_timeout_ms, "60s", "20s",
                         "The timeout between two reads of a response. A stream that is idle for longer needs a "
                         "higher value."),
    GATEWAY_NEXT_TIMEOUT_ROW("grpc", AT(gateway)),
    GATEWAY_BUFFER_SIZE_ROW("grpc", AT(gateway)),
    GATEWAY_NEXT_ROW("grpc", AT(gateway),
                     "Cases in which another server of the group is tried, as proxy_next_upstream. Requests of gRPC "
                     "are POST requests: without non_idempotent only those that the server did not process are sent "
                     "again."),
    GATEWAY_NEXT_TRIES_ROW("grpc", AT(gateway)),
    GATEWAY_INTERCEPT_ROW("grpc", AT(gateway)),
    UPSTREAM_SSL_ROWS("grpc", SCOPE_SITE, AT(gateway.ssl)),
    {0},
};
