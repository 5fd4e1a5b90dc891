/*
 * The directives of grpc_pass: those of proxy_pass that concern streams of HTTP/2.
 */
#include "grpc.h"

#include "base/limits.h"
#include "upstream/upstream_bind.h"
#include "upstream/upstream_ssl_rows.h"

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
    own->gateway.ssl.http2 = true;
    if (pass->set_in_location && !reader->is_overlay && !conf_map_get(at, STR("grpc_pass")))
        *pass = (struct gateway_pass){0};
    error = proxy_make_tls(own, reader, at);
    return error ? error : gateway_conf_complete(&own->gateway, reader, at);
}

#define DURATION(key, field, ahead, text)                                                                    \
    {.name = (key),                                                                                          \
     .scopes = SCOPE_SITE,                                                                                   \
     .type = DIRECTIVE_DURATION,                                                                             \
     .offset = AT(gateway.field),                                                                            \
     .default_value = (ahead),                                                                               \
     .example = key ": 20s",                                                                                 \
     .help = (text)}
#define FIELDS(key, field, text)                                                                             \
    {.name = (key),                                                                                          \
     .scopes = SCOPE_SITE,                                                                                   \
     .type = DIRECTIVE_WORDS,                                                                                \
     .merge = MERGE_APPEND,                                                                                  \
     .offset = AT(gateway.field),                                                                            \
     .example = key ": X-Runtime",                                                                           \
     .help = (text)}

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
     .help = "Pass requests to a gRPC server by HTTP/2: in cleartext without negotiation, or with grpcs:// by TLS and "
             "ALPN. Messages are passed on in both directions as they arrive. Errors of this server are sent as a "
             "grpc-status: 14 (UNAVAILABLE) for 502, 4 (DEADLINE_EXCEEDED) for 504."},
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
    FIELDS("grpc_hide_header", hide_headers,
           "Header fields of a response that are not passed on, as proxy_hide_header."),
    FIELDS("grpc_pass_header", pass_headers,
           "Header fields of a response that are passed on although they are dropped by default."),
    {.name = "grpc_ignore_headers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(gateway.cache.ignore),
     .choices = gateway_ignored_headers,
     .example = "grpc_ignore_headers: X-Accel-Redirect",
     .help = "Header fields of a response without effect on this server, as proxy_ignore_headers."},
    UPSTREAM_BIND_ROW("grpc_bind", SCOPE_SITE, AT(gateway.bind)),
    DURATION("grpc_connect_timeout", connect_timeout_ms, "60s", "The timeout for connecting to the server."),
    DURATION("grpc_send_timeout", send_timeout_ms, "60s",
             "The timeout between two successful writes of a request to the server."),
    DURATION("grpc_read_timeout", read_timeout_ms, "60s",
             "The timeout between two reads of a response. A stream that is idle for longer needs a higher value."),
    DURATION("grpc_next_upstream_timeout", next_timeout_ms, "0",
             "How long further servers are tried, counted from the first attempt; 0: no limit."),
    {.name = "grpc_buffer_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(gateway.buffer_size),
     .default_value = "16k",
     .low = 1024,
     .high = LIMIT_REQUEST_HEAD,
     .example = "grpc_buffer_size: 32k",
     .help = "The maximum length of a response head."},
    {.name = "grpc_next_upstream",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(gateway.next),
     .choices = gateway_next_words,
     .default_value = "error timeout",
     .example = "grpc_next_upstream: [error, timeout, http_503]",
     .help = "Cases in which another server of the group is tried, as proxy_next_upstream. Requests of gRPC are POST "
             "requests: without non_idempotent only those that the server did not process are sent again."},
    {.name = "grpc_next_upstream_tries",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(gateway.next_tries),
     .default_value = "0",
     .example = "grpc_next_upstream_tries: 2",
     .help = "The maximum number of servers that are tried for one request; 0: all."},
    {.name = "grpc_intercept_errors",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(gateway.intercept_errors),
     .default_value = "off",
     .example = "grpc_intercept_errors: on",
     .help = "Responses with a status from 300 on that error_page lists are replaced by the error page."},
    UPSTREAM_SSL_ROWS("grpc", SCOPE_SITE, AT(gateway.ssl), AT(ssl_server_name), AT(ssl_session_reuse),
                      AT(gateway.ssl_name)),
    {.name = "grpc_ssl_password_file",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .offset = AT(gateway.ssl.passwords),
     .example = "grpc_ssl_password_file: /etc/ssl/client.passwords",
     .help = "A file of passwords for an encrypted key, one per line, which are tried in order."},
    {.name = "grpc_ssl_crl",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .offset = AT(gateway.ssl.crl),
     .example = "grpc_ssl_crl: /etc/ssl/internal-revoked.pem",
     .help = "A PEM file with certificate revocation lists, as proxy_ssl_crl."},
    {.name = "grpc_ssl_conf_command",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(ssl_commands),
     .row_size = sizeof(struct tls_command),
     .row = proxy_read_ssl_command,
     .schema = "{\"type\": \"string\"}",
     .syntax = "name value",
     .example = "grpc_ssl_conf_command: [SignatureAlgorithms ECDSA+SHA256, Groups X25519]",
     .help = "Commands for OpenSSL, as proxy_ssl_conf_command."},
    {0},
};
