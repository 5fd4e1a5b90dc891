/*
 * Endpoints: groups servers by listening address, builds the tables of their names, and selects the default server.
 */
#include "site/load.h"

#include <errno.h>

static struct endpoint *find_endpoint(struct configuration *configuration, const struct listen_row *row)
{
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        if (str_equal(configuration->endpoints[i].text, row->text))
            return &configuration->endpoints[i];
    }
    return NULL;
}

static struct endpoint *add_endpoint(struct load *load, const struct listen_row *row)
{
    struct endpoint *endpoint = &load->configuration->endpoints[load->configuration->endpoint_count];

    endpoint->servers = arena_zalloc(load->reader.arena, load->server_count, sizeof(struct virtual_server *));
    if (!endpoint->servers)
        return NULL;
    endpoint->address = row->address;
    endpoint->text = row->text;
    endpoint->mark = row->mark;
    endpoint->ssl = row->ssl;
    endpoint->proxy_protocol = row->proxy_protocol;
    endpoint->backlog = row->backlog;
    endpoint->control = row->control;
    table_init(&endpoint->exact, false);
    table_init(&endpoint->leading, false);
    table_init(&endpoint->trailing, false);
    load->configuration->endpoint_count++;
    return endpoint;
}

/* Reports a parameter of the listening socket that differs between servers on one address. */
static void report_difference(struct load *load, const struct endpoint *endpoint,
                              const struct listen_row *row, const char *word, bool has)
{
    conf_error(load->errors, row->mark, STR("set it in both servers, or use another port"),
               "\"" STR_FMT "\" is %s%s here, and %s%s at " STR_FMT ":%u", STR_ARG(row->text),
               has ? "" : "not ", word, has ? "not " : "", word,
               STR_ARG(endpoint->mark.file ? endpoint->mark.file->path : STR("the default")),
               endpoint->mark.line);
}

/* Inserts the default server first; the others keep the order of the file. */
static void join_server(struct endpoint *endpoint, struct virtual_server *server, bool first)
{
    size_t at = first ? 0 : endpoint->server_count;

    for (size_t i = endpoint->server_count; i > at; i--)
        endpoint->servers[i] = endpoint->servers[i - 1];
    endpoint->servers[at] = server;
    endpoint->server_count++;
}

static int join_endpoint(struct load *load, struct virtual_server *server, const struct listen_row *row)
{
    struct endpoint *endpoint = find_endpoint(load->configuration, row);

    if (!endpoint)
        endpoint = add_endpoint(load, row);
    if (!endpoint)
        return -ENOMEM;
    for (size_t i = 0; i < endpoint->server_count; i++) {
        if (endpoint->servers[i] == server) {
            conf_error(load->errors, row->mark, STR("delete one of the two"),
                       "duplicate listen \"" STR_FMT "\"", STR_ARG(row->text));
            return 0;
        }
    }
    if (endpoint->control != row->control)
        conf_error(load->errors, row->mark, STR("use another path for one of them"),
                   "a server and the control socket both listen on \"" STR_FMT "\"", STR_ARG(row->text));
    if (endpoint->server_count > 0 && !endpoint->servers[0]->stream != !server->stream)
        conf_error(load->errors, row->mark, STR("use another port for one of the servers"),
                   "servers of http and of stream both listen on \"" STR_FMT "\"", STR_ARG(row->text));
    if (endpoint->ssl != row->ssl)
        report_difference(load, endpoint, row, "ssl", row->ssl);
    if (endpoint->proxy_protocol != row->proxy_protocol)
        report_difference(load, endpoint, row, "proxy_protocol", row->proxy_protocol);
    if (row->is_default && endpoint->has_default)
        conf_error(load->errors, row->mark, STR("only one server of an address is the default"),
                   "duplicate default server for \"" STR_FMT "\"", STR_ARG(row->text));
    join_server(endpoint, server, row->is_default && !endpoint->has_default);
    endpoint->has_default |= row->is_default;
    if (row->backlog > endpoint->backlog)
        endpoint->backlog = row->backlog;
    return 0;
}

static int default_listen(struct load *load, const struct loaded_server *loaded)
{
    struct listen_row row = {.text = core_default_address(), .backlog = 511};

    row.mark = loaded->node->mark;
    if (listen_address_parse(row.text, &row.address) < 0)
        return -ENOMEM;
    return join_endpoint(load, loaded->server, &row);
}

/* Adds a server name of this endpoint to `table` under `key`. */
static int set_name(struct load *load, struct endpoint *endpoint, struct table *table, struct str key,
                    struct virtual_server *server, struct str name)
{
    if (!table_get(table, key))
        return table_set(table, key, server);
    conf_warning(load->errors, load_find_server(load, server)->node->mark,
                 STR("the first server of the file keeps it"),
                 "conflicting server name \"" STR_FMT "\" on \"" STR_FMT "\", ignored", STR_ARG(name),
                 STR_ARG(endpoint->text));
    return 0;
}

static int index_name(struct load *load, struct endpoint *endpoint, struct str name,
                      struct virtual_server *server)
{
    if (str_starts(name, STR("~")))
        return 0;
    if (str_starts(name, STR("*.")))
        return set_name(load, endpoint, &endpoint->leading, str_skip(name, 1), server, name);
    if (str_ends(name, STR(".*")))
        return set_name(load, endpoint, &endpoint->trailing, str_slice(name, 0, name.length - 1), server,
                        name);
    if (str_starts(name, STR(".")) && name.length > 1) {
        int error = set_name(load, endpoint, &endpoint->leading, name, server, name);

        return error < 0 ? error
                         : set_name(load, endpoint, &endpoint->exact, str_skip(name, 1), server, name);
    }
    return set_name(load, endpoint, &endpoint->exact, name, server, name);
}

static bool endpoint_has_server(const struct endpoint *endpoint, const struct virtual_server *server)
{
    for (size_t i = 0; i < endpoint->server_count; i++) {
        if (endpoint->servers[i] == server)
            return true;
    }
    return false;
}

/* Builds the tables of names: the default server is servers[0]; names and patterns keep the order of the file. */
static int index_endpoint_names(struct load *load, struct endpoint *endpoint)
{
    endpoint->patterns =
        arena_zalloc(load->reader.arena, endpoint->server_count, sizeof(*endpoint->patterns));
    if (!endpoint->patterns)
        return -ENOMEM;
    for (size_t i = 0; i < load->server_count; i++) {
        struct virtual_server *server = load->servers[i].server;

        if (!endpoint_has_server(endpoint, server))
            continue;
        for (size_t k = 0; k < server->names.count; k++) {
            int error = index_name(load, endpoint, server->names.items[k], server);

            if (error < 0)
                return error;
        }
        if (server->pattern_count)
            endpoint->patterns[endpoint->pattern_count++] = server;
    }
    return 0;
}

int load_endpoints(struct load *load)
{
    struct configuration *configuration = load->configuration;
    size_t max = load->server_count;
    int error = 0;

    for (size_t i = 0; i < load->server_count; i++)
        max += load->servers[i].own->listens.count;
    configuration->endpoints = arena_zalloc(load->reader.arena, max, sizeof(*configuration->endpoints));
    if (!configuration->endpoints)
        return -ENOMEM;
    for (size_t i = 0; i < load->server_count && error == 0; i++) {
        const struct listen_row *rows = load->servers[i].own->listens.items;
        size_t count = load->servers[i].own->listens.count;

        for (size_t k = 0; k < count && error == 0; k++)
            error = join_endpoint(load, load->servers[i].server, &rows[k]);
        if (count == 0 && !load->servers[i].server->stream)
            error = default_listen(load, &load->servers[i]);
    }
    for (size_t i = 0; i < configuration->endpoint_count && error == 0; i++)
        error = index_endpoint_names(load, &configuration->endpoints[i]);
    return error;
}
