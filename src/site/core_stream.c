/*
 * Directives of `stream` and of its servers.
 */
#include "site/core_stream.h"

#include "base/limits.h"
#include "log/access_log.h"
#include "site/core.h"
#include "upstream/upstream_bind.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct core_stream, field)
#define BOTH      (SCOPE_STREAM | SCOPE_STREAM_SERVER)

/* An address without a port must be a unix: path or the name of a block, because there is no default port. */
static int read_pass(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct stream_pass *pass = out;
    struct str text;
    int error = conf_read_template(reader, node, &pass->text);

    if (error < 0)
        return error;
    if (!template_constant(pass->text)) {
        reader->upstreams->any_address = true;
        return 0;
    }
    text = template_text(pass->text);
    pass->text = NULL;
    pass->upstream = upstreams_target(reader->upstreams, text, 0, &error);
    if (!pass->upstream && error == -EINVAL)
        conf_error(reader->errors, node->mark,
                   STR("127.0.0.1:5432, app.internal:5432, unix:/run/app.sock, or the name of an upstream"),
                   "\"" STR_FMT "\" is not an address of a server", STR_ARG(text));
    return pass->upstream ? 0 : error;
}

static const char *const proxy_protocol_words[] = {"off", "on", "v2", NULL}; /* index: version */

static const struct directive directives[] = {
    {.name = "proxy_pass",
     .scopes = SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .merge = MERGE_NONE,
     .offset = AT(pass),
     .row_size = sizeof(struct stream_pass),
     .row = read_pass,
     .syntax = "address:port | unix:path | upstream",
     .example = "proxy_pass: 127.0.0.1:15432",
     .help = "The destination of connections: an address, unix:/path, or the name of an upstream; with variables "
             "it is computed for each connection."},
    {.name = "return",
     .scopes = SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_TEMPLATE,
     .merge = MERGE_NONE,
     .offset = AT(text),
     .example = "return: $remote_addr",
     .help = "A text that is sent to the client instead of proxying."},
    {.name = "access_log",
     .scopes = BOTH,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(access_logs),
     .row_size = sizeof(struct access_log_row),
     .row = core_access_log_read,
     .syntax = CORE_ACCESS_LOG_SYNTAX,
     .example = "access_log: {path: stdout, format: basic}",
     .help = "The destination of a log line per connection (a file, stdout, stderr, or a receiver as in error_log), "
             "and its format; or off. Lines for a file are collected, at most for the time in `flush` (1s). `if` "
             "leaves out the connections whose condition is empty or \"0\"; `sample` (0.01 or 1/100) logs an even "
             "share of the others, counted by each worker.",
     .schema = CORE_ACCESS_LOG_SCHEMA},
    {.name = "log_format",
     .scopes = SCOPE_STREAM,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(log_formats),
     .row_size = sizeof(struct conf_rows),
     .row = core_log_formats_read,
     .syntax = "{name: text | {escape: default | json | none, format: text}, ...}",
     .example = "log_format: {short: '$remote_addr $status $upstream_addr'}",
     .schema = "{\"type\": \"object\"}",
     .help = "Named line formats for access_log; main, basic and json are built in."},
    {.name = "status_zone",
     .scopes = BOTH,
     .type = DIRECTIVE_TEXT,
     .line = true,
     .offset = AT(status_zone.text),
     .default_value = "off",
     .example = "status_zone: on",
     .help = "Count connections, by status, their times and bytes in a zone of the server, for the status page. A name "
             "counts the connections of this server under it; several servers may share a name. on makes the name: the "
             "first server_name, else the first address. A connection counts when it ends, and as an open one until "
             "then. on and off are inherited, a name is not. After a reload, zones with the same name continue."},
    UPSTREAM_BIND_ROW("proxy_bind", BOTH, AT(bind)),
    {.name = "proxy_connect_timeout",
     .scopes = BOTH,
     .type = DIRECTIVE_DURATION,
     .offset = AT(connect_timeout_ms),
     .default_value = "60s",
     .example = "proxy_connect_timeout: 2s",
     .help = "The timeout for connecting to a server."},
    {.name = "proxy_timeout",
     .scopes = BOTH,
     .type = DIRECTIVE_DURATION,
     .offset = AT(timeout_ms),
     .default_value = "10m",
     .example = "proxy_timeout: 1h",
     .help = "How long a connection may be idle in both directions before it is closed."},
    {.name = "proxy_upload_rate",
     .scopes = BOTH,
     .type = DIRECTIVE_SIZE,
     .offset = AT(upload_rate),
     .default_value = "0",
     .example = "proxy_upload_rate: 1m",
     .help = "The rate in bytes per second at which a client is read, per connection; 0: no limit."},
    {.name = "proxy_download_rate",
     .scopes = BOTH,
     .type = DIRECTIVE_SIZE,
     .offset = AT(download_rate),
     .default_value = "0",
     .example = "proxy_download_rate: 1m",
     .help = "The rate in bytes per second at which a server is read, per connection; 0: no limit."},
    {.name = "ssl_preread",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ssl_preread),
     .default_value = "off",
     .example = "ssl_preread: on",
     .help = "Whether the SNI name of a TLS client selects the server, without TLS termination."},
    {.name = "preread_buffer_size",
     .scopes = BOTH,
     .type = DIRECTIVE_SIZE,
     .offset = AT(preread_size),
     .low = 512,
     .high = LIMIT_UPSTREAM_BLOCK,
     .default_value = "16k",
     .example = "preread_buffer_size: 32k",
     .help = "The maximum number of bytes read from a client before its server is selected."},
    {.name = "preread_timeout",
     .scopes = BOTH,
     .type = DIRECTIVE_DURATION,
     .offset = AT(preread_timeout_ms),
     .default_value = "30s",
     .example = "preread_timeout: 5s",
     .help = "The timeout for everything before a server is selected: a PROXY protocol header, the TLS handshake "
             "and preread data, together."},
    {.name = "proxy_protocol",
     .scopes = BOTH,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(proxy_protocol),
     .choices = proxy_protocol_words,
     .default_value = "off",
     .example = "proxy_protocol: v2",
     .help = "Whether a PROXY protocol header with the client's address is sent to servers before everything else: "
             "on (version 1), or v2."},
    {.name = "proxy_half_close",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(half_close),
     .default_value = "on",
     .example = "proxy_half_close: off",
     .help = "Whether each direction ends separately; off: the end of one closes both. The connection to the server "
             "then stays open for up to 5 seconds, until the client's last bytes are sent and the server has closed, "
             "so that they are not lost."},
    {.name = "proxy_next_upstream",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(next_upstream),
     .default_value = "on",
     .example = "proxy_next_upstream: off",
     .help = "Whether another server is tried if a connection fails."},
    {.name = "proxy_next_upstream_tries",
     .scopes = BOTH,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(next_tries),
     .default_value = "0",
     .example = "proxy_next_upstream_tries: 2",
     .help = "The maximum number of servers that are tried; 0: all."},
    {.name = "proxy_next_upstream_timeout",
     .scopes = BOTH,
     .type = DIRECTIVE_DURATION,
     .offset = AT(next_timeout_ms),
     .default_value = "0",
     .example = "proxy_next_upstream_timeout: 10s",
     .help = "How long further servers are tried, counted from the first attempt; 0: no limit."},
    {0},
};

static int check_stream(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct core_stream *stream = conf;

    return core_status_zone_check(&stream->status_zone, reader, at);
}

const struct conf_group core_stream_group = {
    .name = "stream",
    .directives = directives,
    .size = sizeof(struct core_stream),
    .check = check_stream,
};
