/*
 * The servers of `stream`, from the tree to virtual servers after those of http, with the same listening addresses,
 * names and certificates.
 */
#include "base/limits.h"
#include "site/core_stream.h"
#include "site/load.h"
#include "site/subjects.h"

#include <errno.h>

/* Uses large blocks: a block that is plain, or read as plaintext from kernel TLS, is forwarded as a whole. */
static struct wire_settings wire_of(const struct core_ssl *ssl)
{
    return (struct wire_settings){
        .sendfile = true,
        .block_size = LIMIT_UPSTREAM_BLOCK,
        .record_size = (size_t)ssl->buffer_size,
        .small_records = ssl->small_records,
        .lingering_ms = LIMIT_UPSTREAM_CLOSE_MS,
        .reset_timed_out = true,
    };
}

static void check_server(struct load *load, const struct conf_node *node, const struct loaded_server *loaded)
{
    const struct core_stream *conf = loaded->server->stream->conf;

    if (loaded->own->listens.count == 0)
        conf_error(load->errors, node->mark, STR("listen: 5432"),
                   "a server of stream has no listen: there is no default port");
    if (!conf->pass.upstream && !conf->pass.text && !conf->text && loaded->valid)
        conf_error(load->errors, node->mark, STR("proxy_pass: 127.0.0.1:15432"),
                   "this server has neither proxy_pass nor return");
    if ((conf->pass.upstream || conf->pass.text) && conf->text)
        conf_error(load->errors, node->mark, STR("delete one of the two"),
                   "this server has both proxy_pass and return");
}

static int load_stream_server(struct load *load, const struct conf_node *node, const struct conf_scope_values *outer)
{
    struct conf_scope_values *values = load_scope(load, SCOPE_STREAM_SERVER, node, outer, NULL);
    struct virtual_server *server = arena_zalloc(load->reader.arena, 1, sizeof(*server));
    struct stream_server *stream = arena_zalloc(load->reader.arena, 1, sizeof(*stream));
    struct loaded_server *loaded;

    if (!values || !server || !stream)
        return -ENOMEM;
    stream->conf = conf_scope_group(values, CORE_STREAM);
    stream->tls = conf_scope_group(values, CORE_STREAM_TLS);
    stream->module_conf = values->values + CORE_GROUPS;
    server->stream = stream;
    loaded = load_add_server(load, node, values, server);
    stream->wire = wire_of(loaded->ssl);
    if (load_access_logs(load, &stream->conf->access_logs, &stream->conf->log_formats) < 0)
        return -ENOMEM;
    check_server(load, node, loaded);
    if (load_server_names(load, server, &loaded->own->names) < 0)
        return -ENOMEM;
    return load_stream_zone(load, loaded, stream);
}

/*
 * Reads `stream` with the variables of connections, and with upstream groups of its own, because the balancing keys of
 * http's groups use request variables.
 */
static int load_stream_scope(struct load *load, const struct conf_node *stream, const struct conf_scope_values *main)
{
    static const char *const inner[] = {"server", "upstream", NULL};
    const struct conf_node *node = conf_map_get(stream, STR("server"));
    const struct conf_scope_values *values = load_scope(load, SCOPE_STREAM, stream, main, inner);
    const struct core_stream *conf = values ? conf_scope_group(values, CORE_STREAM) : NULL;
    size_t count = load_count_servers(stream);
    int error = conf ? load_access_logs(load, &conf->access_logs, &conf->log_formats) : -ENOMEM;

    if (error == 0)
        error = load_upstreams(load, stream, values);
    if (count == 0 && error == 0)
        conf_error(load->errors, stream->mark, STR("server: {listen: 5432, proxy_pass: 127.0.0.1:15432}"),
                   "stream has no server");
    for (size_t i = 0; i < count && error == 0; i++)
        error = load_stream_server(load, node->kind == CONF_LIST ? node->items[i] : node, values);
    return error;
}

int load_stream(struct load *load, const struct conf_node *stream, const struct conf_scope_values *main)
{
    struct upstreams *upstreams = &load->configuration->upstreams;
    struct user_variables *own = &load->configuration->stream_user_variables;
    struct conf_reader *reader = &load->reader;
    const struct conf_reader http = *reader;
    int error = user_variables_collect(reader->arena, stream, &variables_stream, &user_variables_of_streams, own);

    reader->user_variables = own;
    reader->variables = &own->table;
    upstreams->user = UPSTREAM_STREAM;
    if (error == 0)
        error = load_stream_scope(load, stream, main);
    upstreams->user = UPSTREAM_HTTP;
    reader->user_variables = http.user_variables;
    reader->variables = http.variables;
    return error;
}
