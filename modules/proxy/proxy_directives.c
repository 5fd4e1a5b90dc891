/*
 * The directives of proxy.
 */
#include "proxy.h"

#include "base/limits.h"
#include "modules/gateway/cache/response_cache.h"
#include "modules/gateway/gateway_rows.h"
#include "proxy_cache_rows.h"
#include "upstream/upstream_bind.h"
#include "upstream/upstream_ssl.h"

#include <stddef.h>

#define AT(field) offsetof(struct proxy_conf, field)

static const char *const proxy_protocol_words[] = {"off", "on", "v2", NULL}; /* by version */
static const char *const versions[] = {"1.1", "2", NULL};

const struct directive proxy_directives[] = {
    {.name = "proxy_pass",
     .scopes = SCOPE_LOCATION,
     .line = true,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(gateway.pass),
     .row_size = sizeof(struct gateway_pass),
     .row = proxy_read_pass,
     .syntax = "http[s]://address[:port][/URI] | http[s]://unix:path[:/URI] | upstream",
     .example = "proxy_pass: http://127.0.0.1:9001",
     .help = "Pass requests to a server: http:// or https:// with an address, a name or an upstream, or unix: and "
             "a path. A URI after it replaces the prefix of the location; if it has variables, it is the whole URI."},
    {.name = "proxy_set_header",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = AT(set_headers),
     .row_size = sizeof(struct proxy_fields),
     .row = proxy_read_fields,
     .syntax = "name value | {name: value, ...}",
     .example = "proxy_set_header: [X-Request-Id $request_id, {Host: $host}]",
     .help =
         "Header fields of the upstream request; an empty value removes one. X-Forwarded-For, "
                      "X-Forwarded-Proto, X-Forwarded-Host, Forwarded and Via are set by default.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}"},
    GATEWAY_FIELDS_ROW("proxy_hide_header", AT(gateway), hide_headers, "[X-Powered-By, X-Runtime]",
                       "Header fields of a response that are not passed on, in addition to Date (without "
                       "proxy_cache), Server, X-Pad and X-Accel-*."),
    GATEWAY_FIELDS_ROW("proxy_pass_header", AT(gateway), pass_headers, "Server",
                       "Header fields of a response that are passed on although they are dropped by default."),
    UPSTREAM_BIND_ROW("proxy_bind", SCOPE_SITE, AT(gateway.bind)),
    GATEWAY_DURATION_ROW("proxy_connect_timeout", AT(gateway), connect_timeout_ms, "60s", "2s",
                         "The timeout for connecting to the server."),
    GATEWAY_DURATION_ROW("proxy_send_timeout", AT(gateway), send_timeout_ms, "60s", "20s",
                         "The timeout between two successful writes of a request to the server."),
    GATEWAY_DURATION_ROW("proxy_read_timeout", AT(gateway), read_timeout_ms, "60s", "5m",
                         "The timeout between two reads from the server."),
    GATEWAY_BUFFER_SIZE_ROW("proxy", AT(gateway)),
    GATEWAY_SWITCH_ROW("proxy_request_buffering", AT(gateway), buffering.requests,
                       "Read a request body completely before a server is tried: into memory up to "
                       "client_body_buffer_size, then into a temporary file. A slow client then occupies no upstream "
                       "connection, and the body can be sent to another server. Off (default): the body is passed on "
                       "as it arrives."),
    GATEWAY_SWITCH_ROW("proxy_buffering", AT(gateway), buffering.responses,
                       "Read a response as fast as the server sends it, even if the client is slow: into memory "
                       "(proxy_buffers), then into a temporary file. Off (default): while the client does not read, "
                       "reading from the server stops. X-Accel-Buffering: yes or no in a response overrides it."),
    GATEWAY_BUFFERS_ROW("proxy", AT(gateway)),
    {.name = "proxy_busy_buffers_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .ignored = &(const struct directive_ignored){0},
     .default_value = "16k",
     .example = "proxy_busy_buffers_size: 32k",
     .help = "No effect, accepted for compatibility with nginx: bytes that wait to be sent to a client are in the "
             "buffers of its connection (output_buffers)."},
    GATEWAY_FILE_SIZE_ROW("proxy", AT(gateway),
                          "The maximum size of the temporary file for a response; 0: no file. Beyond it, reading "
                          "waits for the client."),
    GATEWAY_FILE_FOLDER_ROW("proxy", AT(gateway),
                            "The directory of temporary files with response bodies. They are unnamed and disappear "
                            "with their request. If only its last component is missing, the directory is created, "
                            "owned by the user of the workers."),
    GATEWAY_NEXT_ROW("proxy", AT(gateway),
                     "Cases in which another server of the group is tried. Never after a part of the client's body "
                     "was passed on, unless proxy_request_buffering keeps it; POST and PATCH only with "
                     "non_idempotent, or if no connection was established."),
    GATEWAY_NEXT_TRIES_ROW("proxy", AT(gateway)),
    GATEWAY_NEXT_TIMEOUT_ROW("proxy", AT(gateway)),
    UPSTREAM_SSL_ROWS("proxy", SCOPE_SITE, AT(gateway.ssl)),
    GATEWAY_IGNORE_ABORT_ROW("proxy", AT(gateway)),
    {.name = "proxy_redirect",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(redirects),
     .row_size = sizeof(struct proxy_rewrite),
     .row = proxy_read_redirect,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .syntax = "default | off | prefix replacement",
     .example = "proxy_redirect: [default, http://internal:8000/ /]",
     .help = "A prefix of Location in a response, and its replacement; the first match counts. default (also "
             "without this directive): the URI of proxy_pass becomes the prefix of the location, unless it has "
             "variables. off: unchanged."},
    {.name = "proxy_cookie_domain",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(cookie_domains),
     .row_size = sizeof(struct proxy_rewrite),
     .row = proxy_read_cookie_pair,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .syntax = "off | domain replacement",
     .example = "proxy_cookie_domain: internal.example $host",
     .help = "The domain of a Set-Cookie, and its replacement; the first match counts."},
    {.name = "proxy_cookie_path",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(cookie_paths),
     .row_size = sizeof(struct proxy_rewrite),
     .row = proxy_read_cookie_pair,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .syntax = "off | prefix replacement",
     .example = "proxy_cookie_path: /app/ /",
     .help = "A prefix of the path of a Set-Cookie, and its replacement; the first match counts."},
    {.name = "proxy_cookie_flags",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(cookie_flags),
     .row_size = sizeof(struct proxy_flags),
     .row = proxy_read_cookie_flags,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .syntax = "off | cookie flag ...",
     .example = "proxy_cookie_flags: session secure httponly samesite=lax",
     .help = "A cookie, and attributes that are added to its Set-Cookie: secure, httponly, samesite=strict, =lax "
             "or =none; with the prefix no (nosecure), an attribute that is removed."},
    {.name = "proxy_method",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(gateway.method),
     .example = "proxy_method: POST",
     .help = "The method of the upstream request, in place of the client's."},
    {.name = "proxy_set_body",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(gateway.set_body),
     .example = "proxy_set_body: '{\"client\": \"$remote_addr\"}'",
     .help = "The body of the upstream request, in place of the client's, which is then not read."},
    {.name = "proxy_pass_request_body",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(pass_body),
     .default_value = "on",
     .example = "proxy_pass_request_body: off",
     .help = "Whether the client's body is passed on to the server; off: it is neither sent nor read."},
    {.name = "proxy_pass_request_headers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(pass_fields),
     .default_value = "on",
     .example = "proxy_pass_request_headers: off",
     .help = "Whether the client's header fields are passed on to the server; off: only those that the "
             "configuration and the server set (proxy_set_header, X-Forwarded-For and related fields)."},
    GATEWAY_INTERCEPT_ROW("proxy", AT(gateway)),
    {.name = "proxy_limit_rate",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(gateway.limit_rate),
     .row_size = sizeof(const struct template *),
     .row = conf_read_size_template,
     .syntax = "size | variable",
     .example = "proxy_limit_rate: 1m",
     .schema = "{\"type\": [\"string\", \"integer\"]}",
     .help = "The rate in bytes per second at which each response is read from its server; variables are possible. "
             "0 or empty: no limit. It applies with and without proxy_buffering."},
    GATEWAY_SWITCH_ROW("proxy_force_ranges", AT(gateway), force_ranges,
                       "Send only the requested range of a complete response; a request for several ranges gets the "
                       "complete response. Stored responses always have ranges."),
    {.name = "proxy_protocol",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(gateway.proxy_protocol),
     .choices = proxy_protocol_words,
     .default_value = "off",
     .example = "proxy_protocol: v2",
     .help = "Whether a PROXY protocol header with the client's address is sent to the server before everything "
             "else: on (version 1), or v2. Such a connection is closed after its request."},
    {.name = "proxy_http_version",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(http_version),
     .choices = versions,
     .default_value = "1.1",
     .example = "proxy_http_version: \"2\"",
     .help = "The version of HTTP to the server. 2: many requests share one connection; with https:// the server "
             "must accept it by ALPN, with http:// it is used without negotiation (RFC 9113 3.3)."},
    PROXY_CACHE_ROWS,
    {0},
};
