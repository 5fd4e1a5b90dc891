/*
 * Loading: file, scopes, servers, endpoints and certificates, in this order. Errors are collected and reported all
 * together. The result is declared in configuration.h.
 */
#include "site/configuration.h"

#include "acme/acme_status.h"
#include "base/clock.h"
#include "base/limits.h"
#include "site/capture.h"
#include "site/core_stream.h"
#include "site/load.h"
#include "site/module_interface.h"
#include "site/subjects.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Built once, before any fork: the core's groups, then one for each module. */
const struct conf_schema *configuration_schema(void)
{
    static const struct conf_group *groups[CORE_GROUPS + LIMIT_MODULES] = {
        [CORE_MAIN] = &core_main_group,     [CORE_HTTP] = &core_http_group, [CORE_SITE] = &core_site_group,
        [CORE_SERVER] = &core_server_group, [CORE_HTTP2] = &core_http2_group, [CORE_SSL] = &core_ssl_group,
        [CORE_UPSTREAM] = &upstream_group,  [CORE_STREAM] = &core_stream_group,
        [CORE_STREAM_TLS] = &core_stream_tls_group,
    };
    static struct conf_group modules[LIMIT_MODULES];
    static struct conf_schema schema;

    if (schema.groups)
        return &schema;
    schema.count = CORE_GROUPS;
    for (size_t i = 0; module_table[i] && i < LIMIT_MODULES; i++) {
        const struct module *module = module_table[i];

        modules[i] =
            (struct conf_group){module->name, module->directives, module->conf_size, module->conf_check};
        groups[schema.count++] = &modules[i];
    }
    schema.groups = groups;
    return &schema;
}

/* Converts nginx's "daemon off; user www;" to YAML, one directive per line; "user: www" is YAML already. */
static struct str overlay_text(struct arena *arena, struct str text)
{
    struct str rest = text;
    struct str made = STR("");

    if (str_find(text, ';') < 0)
        return text;
    while (rest.data) {
        struct str value = str_trim(str_cut(&rest, ';'));
        struct str name;

        if (str_empty(value))
            continue;
        name = str_search(value, STR(": ")) < 0 ? str_cut(&value, ' ') : STR("");
        made = arena_printf(arena, STR_FMT STR_FMT "%s" STR_FMT "\n", STR_ARG(made), STR_ARG(name),
                            name.length ? ": " : "", STR_ARG(value));
        if (!made.data)
            return made;
    }
    return made;
}

static int read_tree(struct load *load, const struct configuration_source *source)
{
    struct arena *arena = load->reader.arena;
    struct conf_node *tree;

    if (source->text.data && str_empty(source->path))
        tree = conf_tree_parse(arena, STR("(built-in)"), source->text, load->errors);
    else
        tree = conf_tree_load(arena, source->path, load->errors);
    if (tree && !str_empty(source->overlay)) {
        struct str text = overlay_text(arena, source->overlay);
        const struct conf_node *over =
            text.data ? conf_tree_parse(arena, STR("-g"), text, load->errors) : NULL;

        if (!text.data || (over && conf_tree_overlay(arena, tree, over) < 0))
            return -ENOMEM;
    }
    load->configuration->tree = tree;
    return 0;
}

static void set_file_cache(struct load *load)
{
    const struct core_http *http = load->http;

    load->configuration->file_cache = (struct file_cache_limits){
        .enabled = http->open_file_cache.enabled,
        .max_entries = (unsigned)http->open_file_cache.max_entries,
        .max_content_bytes = (size_t)http->open_file_cache.max_entries * LIMIT_FILE_CACHE_CONTENT,
        .valid_ms = http->open_file_cache_valid_ms,
        .inactive_ms = http->open_file_cache.inactive_ms,
        .min_uses = (unsigned)http->open_file_cache_min_uses,
        .skip_errors = !http->open_file_cache_errors,
    };
}

/* Returns the http node; an empty one if the file has only `stream`. */
static const struct conf_node *find_http(struct load *load, const struct conf_node *stream)
{
    const struct conf_node *tree = load->configuration->tree;
    const struct conf_node *node = conf_map_get(tree, STR("http"));
    struct conf_node *none;

    if (node || (!stream && load->unreadable))
        return node;
    if (!stream) {
        conf_error(load->errors, tree->mark, STR("http: {server: {listen: 8080, root: www}}"),
                   "the file has neither http nor stream");
        return NULL;
    }
    none = arena_zalloc(load->reader.arena, 1, sizeof(*none));
    if (none)
        *none = (struct conf_node){.kind = CONF_MAP, .mark = tree->mark};
    return none;
}

static int read_http(struct load *load, const struct conf_scope_values *values)
{
    static const char *const inner[] = {"server", "upstream", NULL};
    const struct conf_scope_values *main = values;
    const struct conf_node *stream = conf_map_get(load->configuration->tree, STR("stream"));
    const struct conf_node *node = find_http(load, stream);
    int error;

    if (!node)
        return load->unreadable || load->errors->failed ? 0 : -ENOMEM;
    values = load_scope(load, SCOPE_HTTP, node, values, inner);
    if (!values)
        return -ENOMEM;
    load->http_valid = load->valid && !load->unreadable;
    set_file_cache(load);
    error = load_upstreams(load, node, values);
    if (error == 0)
        error = load_servers(load, node, values, load_count_servers(stream));
    if (error == 0 && stream)
        error = load_stream(load, stream, main);
    if (error == 0 && load->servers)
        error = load_control(load, main);
    if (error == 0)
        error = load_acme(load);
    for (size_t i = 0; i < load->server_count && error == 0; i++) {
        if (load->servers[i].server->root)
            load_settings(load->servers[i].server, load->servers[i].ssl);
    }
    if (error == 0 && !load->errors->failed)
        error = load_endpoints(load);
    if (error == 0)
        error = load_tls(load);
    if (error == 0 && !load->errors->failed)
        error = load_acme_challenges(load);
    return error;
}

static int read_scopes(struct load *load)
{
    static const char *const inner[] = {"events", "http", "stream", NULL};
    const struct conf_node *tree = load->configuration->tree;
    const struct conf_node *events = conf_map_get(tree, STR("events"));
    struct conf_scope_values *values = load_scope(load, SCOPE_MAIN, tree, NULL, inner);
    const struct conf_scope_values *processes = values;

    if (!values)
        return -ENOMEM;
    if (events)
        processes = load_scope(load, SCOPE_EVENTS, events, values, NULL);
    if (!processes)
        return -ENOMEM;
    load->configuration->main = conf_scope_group(processes, CORE_MAIN);
    load->configuration->main->prefix = load->reader.prefix;
    core_check_backend(load->configuration, load->errors);
    core_check_aead(load->configuration, load->errors);
    return read_http(load, values);
}

static int load_all(struct load *load, const struct configuration_source *source)
{
    struct configuration *configuration = load->configuration;
    char hostname[256] = "";
    struct clock clock;
    int error;

    clock_read(&clock);
    configuration->loaded_s = clock_wall_s(&clock);
    if (gethostname(hostname, sizeof(hostname) - 1) < 0)
        hostname[0] = '\0';
    configuration->hostname = arena_copy(&configuration->arena, str_from(hostname));
    error = configuration->hostname.data ? read_tree(load, source) : -ENOMEM;
    if (error < 0 || !configuration->tree)
        return error;
    load->unreadable = load->errors->failed;
    error = user_variables_collect(&configuration->arena, conf_map_get(configuration->tree, STR("http")),
                                   variables_all(), &user_variables_of_exchanges, &configuration->user_variables);
    load->reader.user_variables = &configuration->user_variables;
    load->reader.variables = &configuration->user_variables.table;
    return error < 0 ? error : read_scopes(load);
}

struct configuration *configuration_load(const struct configuration_source *source, struct log *log,
                                         struct buffer *out_diagnostics)
{
    struct configuration *configuration = calloc(1, sizeof(*configuration));
    struct conf_errors *errors = calloc(1, sizeof(*errors));
    struct load load = {
        .configuration = configuration, .schema = configuration_schema(), .errors = errors, .log = log};
    bool good = false;

    if (configuration && errors) {
        arena_init(&configuration->arena, NULL, 0);
        errors->arena = &configuration->arena;
        configuration->upstreams.arena = &configuration->arena;
        load.reader = (struct conf_reader){
            .arena = &configuration->arena,
            .errors = errors,
            .upstreams = &configuration->upstreams,
            .caches = &configuration->caches,
            .directories = &configuration->directories,
            .limits = &configuration->limits,
            .acme = &configuration->acme,
            .otlp = &configuration->otlp,
            .prefix = source->prefix,
            .test_only = source->test_only,
        };
        good = load_all(&load, source) == 0 && configuration->tree && !errors->failed;
        if (source->report)
            source->report(source->owner, configuration->tree ? configuration : NULL, errors);
        if (conf_errors_print(errors, out_diagnostics) < 0 || (!good && !errors->failed))
            good = false;
    }
    free(errors);
    if (good)
        return configuration;
    configuration_destroy(configuration);
    return NULL;
}

void configuration_destroy(struct configuration *configuration)
{
    if (!configuration)
        return;
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        struct endpoint *endpoint = &configuration->endpoints[i];

        table_finish(&endpoint->exact);
        table_finish(&endpoint->leading);
        table_finish(&endpoint->trailing);
        if (!endpoint->tls_borrowed)
            tls_context_destroy(endpoint->tls);
    }
    for (struct media_table *media = configuration->media_tables; media; media = media->next)
        table_finish(&media->table);
    acme_zone_close(configuration->acme.zone);
    otlp_tls_context_close(&configuration->otlp);
    upstreams_finish(&configuration->upstreams);
    captures_finish(&configuration->user_variables);
    captures_finish(&configuration->stream_user_variables);
    arena_reset(&configuration->arena);
    free(configuration);
}
