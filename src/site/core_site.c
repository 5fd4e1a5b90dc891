/*
 * Directives of http, server and location: timeouts and sizes of requests, root, types, logs, error pages.
 */
#include "base/limits.h"
#include "log/access_log.h"
#include "site/core.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct core_site, field)

static const char *const satisfying[] = {"all", "any", NULL};
static const char *const error_formats[] = {"auto", "html", "json", "text", NULL};
static const char *const lingering[] = {"off", "on", "always", NULL};

static const struct directive directives[] = {
    {.name = "root",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(root),
     .row_size = sizeof(const struct template *),
     .row = core_site_read_root,
     .syntax = "path",
     .example = "root: www",
     .help = "The directory from which files are served: the path of the request is appended to it."},
    {.name = "alias",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(alias.path),
     .row_size = sizeof(const struct template *),
     .row = core_site_read_root,
     .syntax = "path",
     .example = "alias: /srv/pictures/",
     .help = "The directory (or, for one path, the file) that replaces the prefix of the location: the rest of the "
             "path is looked up in it, and never outside. In a location with a regular expression it is the whole "
             "path, and may contain captures."},
    {.name = "types",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(types),
     .row_size = sizeof(struct conf_rows),
     .row = core_types_read,
     .schema = "{\"type\": \"object\"}",
     .syntax = "{type: extension ..., ...} | {}",
     .example = "types: {text/x-log: [log, out]}",
     .help = "Media types by extension, merged with the built-in ones; an empty map removes those."},
    {.name = "default_type",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_TEXT,
     .offset = AT(default_type),
     .example = "default_type: text/plain",
     .help = "The media type for other extensions; default application/octet-stream."},
    {.name = "charset",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_TEXT,
     .offset = AT(charset),
     .example = "charset: off",
     .help = "The charset of text types, utf-8 by default; off: none. A proxied response gets it only if it is set, "
             "and if its type has no charset."},
    {.name = "disable_symlinks",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(disable_symlinks),
     .row_size = sizeof(struct core_symlinks),
     .row = core_site_read_symlinks,
     .default_value = "beneath",
     .syntax = "off | on | if_not_owner | beneath [from=path]",
     .example = "disable_symlinks: if_not_owner from=$document_root",
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .help =
         "Which symbolic links are rejected: on: all; if_not_owner: those whose owner is not the owner "
                      "of the target (both on the whole path from /, or after from=); off: none; beneath "
                      "(default): links below the root that lead out of it."},
    {.name = "error_page",
     .scopes = SCOPE_SITE,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(error_pages),
     .row_size = sizeof(struct error_page),
     .row = core_error_page_read,
     .syntax = "status ... [=[status]] path | @name | URL",
     .example = "error_page: [404 /404.html, 500 502 503 =200 /busy.html]",
     .help = "The replacement for an error: statuses, optionally =status, and a path, @name or URL."},
    {.name = "recursive_error_pages",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(recursive_error_pages),
     .default_value = "off",
     .example = "recursive_error_pages: on",
     .help = "If an error page fails, an error page for its status is used. off: the client gets the built-in page "
             "of the first error."},
    {.name = "error_page_format",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(error_page_format),
     .choices = error_formats,
     .default_value = "auto",
     .example = "error_page_format: json",
     .help = "The format of built-in error pages: html, json or text, or (auto) the preferred one by the Accept "
             "field. The page contains the $request_id, which can also be logged."},
    {.name = "access_log",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(access_logs),
     .row_size = sizeof(struct access_log_row),
     .row = core_access_log_read,
     .syntax = CORE_ACCESS_LOG_SYNTAX,
     .example = "access_log: {path: stdout, format: main}",
     .help = "The destination of a log line per request (a file, stdout, stderr, or a receiver as in error_log), and "
             "its format; or off. Lines for a file are collected, at most for the time in `flush` (1s). `if` leaves "
             "out the requests whose condition is empty or \"0\"; `sample` (0.01 or 1/100) logs an even share of the "
             "others, counted by each worker.",
     .schema = CORE_ACCESS_LOG_SCHEMA},
    {.name = "keepalive_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(keepalive_timeout_ms),
     .default_value = "75s",
     .example = "keepalive_timeout: 30s",
     .help = "How long an idle connection is kept open; 0 closes it after each response."},
    {.name = "keepalive_requests",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(keepalive_requests),
     .low = 1,
     .high = 1000000000,
     .default_value = "1000",
     .example = "keepalive_requests: 10000",
     .help = "The maximum number of requests on one connection; the response to the last one closes it."},
    {.name = "keepalive_time",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(keepalive_time_ms),
     .default_value = "1h",
     .example = "keepalive_time: 4h",
     .help = "The maximum age of a connection: the first response after it closes the connection."},
    {.name = "send_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(send_timeout_ms),
     .low = 1,
     .default_value = "60s",
     .example = "send_timeout: 20s",
     .help = "The timeout between two successful writes to the client; then the connection is closed. In HTTP/2 it "
             "also limits how long one stream waits for a window of the client; then the stream is reset."},
    {.name = "client_header_timeout",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_DURATION,
     .offset = AT(client_header_timeout_ms),
     .low = 1,
     .default_value = "60s",
     .example = "client_header_timeout: 10s",
     .help = "The timeout of the TLS handshake and of a request head: for the first head counted from the start of "
             "the connection, for later ones from their first byte."},
    {.name = "client_body_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(client_body_timeout_ms),
     .low = 1,
     .default_value = "60s",
     .example = "client_body_timeout: 20s",
     .help = "The timeout between two reads of a request body, in HTTP/2 of each stream."},
    {.name = "client_min_rate",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(client_min_rate),
     .high = 1024 * 1024,
     .default_value = "240",
     .example = "client_min_rate: 1k",
     .help = "The minimum average rate over 30 seconds, in bytes per second, at which a client must send a request "
             "body or read a response while the server waits for it (for a response it is detected after at most "
             "one and a half minutes, because the kernel buffers data). Slower clients are disconnected; a body is "
             "answered with 408. In HTTP/2 the rate of each stream is measured, too; a slow one is reset. 0: no "
             "minimum. Request heads are limited by client_header_timeout."},
    {.name = "client_header_buffer_size",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SIZE,
     .offset = AT(client_header_buffer_size),
     .low = 128,
     .high = LIMIT_REQUEST_HEAD,
     .default_value = "1k",
     .example = "client_header_buffer_size: 2k",
     .help = "The size of the first buffer for a request head."},
    {.name = "large_client_header_buffers",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(large_header_count),
     .row_size = 2 * sizeof(uint64_t),
     .row = core_site_read_buffers,
     .default_value = "4 8k",
     .syntax = "number size",
     .example = "large_client_header_buffers: 4 16k",
     .help = "Number and size of the buffers for long heads; one line must fit into one buffer (414, 431)."},
    {.name = "client_max_body_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(client_max_body_size),
     .default_value = "1m",
     .example = "client_max_body_size: 64m",
     .help =
         "The maximum length of a request body; a longer one is answered with 413. 0: no limit. It is "
                      "checked again after an internal redirect, except for error_page; the page for 413 gets no "
                      "body."},
    {.name = "client_body_buffer_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(client_body_buffer_size),
     .low = 1024,
     .high = 16ull * 1024 * 1024,
     .default_value = "16k",
     .example = "client_body_buffer_size: 128k",
     .help = "The maximum bytes of a request body in memory; at the limit reading pauses."},
    {.name = "max_headers",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(max_headers),
     .low = 1,
     .high = LIMIT_HEADERS,
     .default_value = "1000",
     .example = "max_headers: 100",
     .help = "The maximum number of header lines in a request; more are answered with 431. In HTTP/2, `:authority` "
             "counts as Host does."},
    {.name = "lingering_close",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(lingering_close),
     .choices = lingering,
     .default_value = "on",
     .example = "lingering_close: always",
     .help =
         "Read and discard input for a while before closing, so that the client receives the whole "
                      "response. on has the same effect as always, because the server does not detect whether the "
                      "client is still sending."},
    {.name = "lingering_time",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(lingering_time_ms),
     .default_value = "30s",
     .example = "lingering_time: 10s",
     .help = "The maximum duration of lingering close."},
    {.name = "lingering_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(lingering_timeout_ms),
     .default_value = "5s",
     .example = "lingering_timeout: 2s",
     .help = "The maximum wait for further input during lingering close."},
    {.name = "reset_timedout_connection",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(reset_timedout_connection),
     .default_value = "off",
     .example = "reset_timedout_connection: on",
     .help =
         "Reset connections that time out and those of `return: 444`, so that the kernel keeps no "
                      "state for them; idle ones are closed normally."},
    {.name = "output_buffers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(output_buffer_count),
     .row_size = 2 * sizeof(uint64_t),
     .row = core_site_read_buffers,
     .default_value = "1 64k",
     .syntax = "number size",
     .example = "output_buffers: 1 128k",
     .help = "Number and size of the buffers for encrypted or copied output: their product is the size of one block of "
             "output, and a connection has at most two blocks."},
    {.name = "merge_slashes",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(merge_slashes),
     .default_value = "on",
     .example = "merge_slashes: off",
     .help = "Treat repeated slashes in a path as one."},
    {.name = "underscores_in_headers",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(underscores_in_headers),
     .default_value = "off",
     .example = "underscores_in_headers: on",
     .help = "Accept request header fields whose name has an underscore; off: they are dropped, as in nginx. Names "
             "that imitate a field of the server, such as X_Forwarded_For, are always dropped."},
    {.name = "ignore_invalid_headers",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SWITCH,
     .ignored = &(const struct directive_ignored){"requests with invalid header lines are always rejected",
                                                  "delete it; underscores_in_headers: on accepts such names"},
     .default_value = "on",
     .example = "ignore_invalid_headers: on",
     .help = "Accepted for compatibility with nginx, without effect: a request with an invalid header line is "
             "rejected (400), since an upstream server could interpret it differently. off causes a warning."},
    {.name = "server_tokens",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(server_tokens),
     .default_value = "off",
     .example = "server_tokens: on",
     .help = "Show the version in the Server header (off by default, unlike nginx); error pages never show it."},
    {.name = "sendfile",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(sendfile),
     .default_value = "on",
     .example = "sendfile: off",
     .help = "Send files with sendfile where the connection is plain or encrypted by the kernel."},
    {.name = "tcp_nodelay",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(tcp_nodelay),
     .default_value = "on",
     .example = "tcp_nodelay: off",
     .help =
         "Send the last small segment of a response at once. off: the kernel delays it until the "
                      "client has acknowledged the rest."},
    {.name = "internal",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(internal),
     .default_value = "off",
     .example = "internal: on",
     .help = "Only for internal redirects (error_page, index) and subrequests; other requests get 404. It applies "
             "to inner locations, too."},
    {.name = "satisfy",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(satisfy),
     .choices = satisfying,
     .default_value = "all",
     .example = "satisfy: any",
     .help = "Access is granted if all of allow, deny, auth_basic, auth_request and secure_link grant it, or if "
             "any of them does."},
    {.name = "status_zone",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEXT,
     .line = true,
     .offset = AT(status_zone.text),
     .default_value = "off",
     .example = "status_zone: on",
     .help = "Count requests, their times and bytes in a zone of the server and in one of the location, for the status "
             "page and sluice top. A name counts the requests of this server or location under it; several servers, "
             "or several locations, may share a name. on makes the names: of a server its first server_name, else its "
             "first address; of a location the name of the server's zone and the location, as in \"example.org "
             "/api/\". A request counts in the location that responded. on and off are inherited, a name is not. "
             "After a reload, zones with the same name continue."},
    {.name = "absolute_redirect",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(absolute_redirect),
     .default_value = "off",
     .example = "absolute_redirect: on",
     .help = "Begin redirects with scheme and host; off by default, unlike nginx: a relative Location "
             "remains valid if a proxy changes scheme, host or port."},
    {.name = "port_in_redirect",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(port_in_redirect),
     .default_value = "on",
     .example = "port_in_redirect: off",
     .help = "Include the port in absolute redirects if it is not the default port of the scheme."},
    {.name = "server_name_in_redirect",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(server_name_in_redirect),
     .default_value = "off",
     .example = "server_name_in_redirect: on",
     .help = "Use the first server_name in absolute redirects instead of the client's Host."},
    {0},
};

/* The innermost of root and alias applies. */
static int check_root(struct core_site *site, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *alias = conf_map_get(at, STR("alias"));

    if (!conf_map_get(at, STR("root")))
        return 0;
    if (!alias) {
        memset(&site->alias, 0, sizeof(site->alias));
        return 0;
    }
    conf_error(reader->errors, alias->mark, STR("delete one of the two"),
               "root and alias are set in one location");
    return -EINVAL;
}

static int check_site(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    int error = core_status_zone_check(&((struct core_site *)conf)->status_zone, reader, at);

    return error < 0 ? error : check_root(conf, reader, at);
}

const struct conf_group core_site_group = {
    .name = "site",
    .directives = directives,
    .size = sizeof(struct core_site),
    .check = check_site,
};
