/*
 * Loading: file, scopes, servers, endpoints, certificates, in this order; mistakes are collected on the way
 * and shown all at once. What the result looks like is configuration.h's.
 */
#include "site/configuration.h"

#include "base/limits.h"
#include "log/access_log.h"
#include "site/capture.h"
#include "site/core_stream.h"
#include "site/load.h"
#include "site/module_interface.h"
#include "site/subjects.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A table of media types, shared by every scope that agrees on them. */
struct media_table {
    struct table table;
    struct media_table *next;
};

/* Made once, before any fork: the core's groups, then one for each module. */
const struct conf_schema *configuration_schema(void)
{
    static const struct conf_group *groups[CORE_GROUPS + LIMIT_MODULES] = {
        [CORE_MAIN] = &core_main_group,     [CORE_HTTP] = &core_http_group, [CORE_SITE] = &core_site_group,
        [CORE_SERVER] = &core_server_group, [CORE_SSL] = &core_ssl_group,
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

static bool same_types(const struct core_site *a, const struct core_site *b)
{
    return a->types.items == b->types.items && str_equal(a->charset, b->charset) &&
           str_equal(a->default_type, b->default_type);
}

static int make_types(struct load *load, struct core_site *site, const struct core_site *outer)
{
    struct media_table *media;

    if (outer && outer->mime.fallback.data && same_types(site, outer)) {
        site->mime = outer->mime;
        return 0;
    }
    media = arena_zalloc(load->reader.arena, 1, sizeof(*media));
    if (!media || core_types_build(load->reader.arena, site) < 0)
        return -ENOMEM;
    media->table = site->mime.by_extension;
    media->next = load->configuration->media_tables;
    load->configuration->media_tables = media;
    return 0;
}

static struct access_log_target *find_target(struct load *load, struct str path)
{
    struct configuration *configuration = load->configuration;
    struct access_log_target **grown;
    struct access_log_target *target;

    for (size_t i = 0; i < configuration->access_log_count; i++) {
        if (str_equal(configuration->access_logs[i]->path, path))
            return configuration->access_logs[i];
    }
    target = arena_zalloc(load->reader.arena, 1, sizeof(*target));
    grown = arena_zalloc(load->reader.arena, configuration->access_log_count + 1, sizeof(void *));
    if (!target || !grown)
        return NULL;
    *target = (struct access_log_target){
        .path = path, .index = (unsigned)configuration->access_log_count, .fd = -1};
    for (size_t i = 0; i < configuration->access_log_count; i++)
        grown[i] = configuration->access_logs[i];
    grown[configuration->access_log_count++] = target;
    configuration->access_logs = grown;
    return target;
}

int load_access_logs(struct load *load, const struct conf_rows *logs, const struct conf_rows *formats)
{
    struct access_log_row *rows = logs->items;

    for (size_t i = 0; i < logs->count; i++) {
        if (str_empty(rows[i].path) || rows[i].target)
            continue;
        rows[i].target = find_target(load, rows[i].path);
        rows[i].format = core_log_format_find(&load->reader, formats, rows[i].format_name);
        if (!rows[i].target)
            return -ENOMEM;
        if (!rows[i].format)
            conf_error(load->errors, rows[i].mark, STR("main, json, or a name from log_format"),
                       "there is no log format \"" STR_FMT "\"", STR_ARG(rows[i].format_name));
    }
    return 0;
}

/* A root that is not there answers 404 to everything: that is said before somebody wonders. */
static void warn_of_root(struct load *load, const struct conf_node *scope, const struct template *root)
{
    const struct conf_node *node = conf_map_get(scope, STR("root"));
    struct str path = {NULL, 0};
    struct stat found;

    if (node && root && template_constant(root))
        path = arena_copy(load->reader.arena, template_text(root));
    if (!path.data)
        return;
    if (stat(path.data, &found) == 0 ? !S_ISDIR(found.st_mode) : errno == ENOENT || errno == ENOTDIR)
        conf_warning(load->errors, node->mark,
                     STR("relative paths start at the folder of this file, or at -p"),
                     "there is no folder \"" STR_FMT "\"", STR_ARG(path));
}

struct conf_scope_values *load_scope(struct load *load, enum conf_scope scope, const struct conf_node *node,
                                     const struct conf_scope_values *outer, const char *const *inner)
{
    bool failed = load->errors->failed;
    struct conf_scope_values *values;
    const struct core_site *outer_site = outer ? conf_scope_group(outer, CORE_SITE) : NULL;
    struct core_site *site;

    load->errors->failed = false;
    values = conf_scope_read(&load->reader, load->schema, scope, node, outer, inner);
    if (!values)
        return NULL;
    load->reader.scope = scope;
    conf_scope_check(&load->reader, load->schema, values);
    load->sound = !load->errors->failed;
    load->errors->failed |= failed;
    site = conf_scope_group(values, CORE_SITE);
    if (scope == SCOPE_HTTP)
        load->http = conf_scope_group(values, CORE_HTTP);
    if (site == outer_site || !(scope & SCOPE_SITE))
        return values;
    warn_of_root(load, node, site->root);
    if (make_types(load, site, outer_site) < 0 ||
        load_access_logs(load, &site->access_logs, &load->http->log_formats) < 0)
        return NULL;
    return values;
}

/* nginx's "daemon off; user www;" as YAML, one directive a line. */
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
        name = str_find(value, ':') < 0 ? str_cut(&value, ' ') : STR("");
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
        .forget_errors = !http->open_file_cache_errors,
    };
}

/* A file that has nothing but `stream` has an empty http. */
static const struct conf_node *find_http(struct load *load, const struct conf_node *stream)
{
    const struct conf_node *tree = load->configuration->tree;
    const struct conf_node *node = conf_map_get(tree, STR("http"));
    struct conf_node *none;

    if (node || (!stream && load->unreadable))
        return node;
    if (!stream) {
        conf_error(load->errors, tree->mark, STR("http: {server: {listen: 8080, root: www}}"),
                   "there is nothing to serve: the file has no http");
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
    load->sound_http = load->sound && !load->unreadable;
    set_file_cache(load);
    error = load_upstreams(load, node, values);
    if (error == 0)
        error = load_servers(load, node, values, load_count(stream));
    if (error == 0 && stream)
        error = load_stream(load, stream, main);
    if (error == 0 && !load->errors->failed)
        error = load_endpoints(load);
    if (error == 0)
        error = load_tls(load);
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
    return read_http(load, values);
}

static int load_all(struct load *load, const struct configuration_source *source)
{
    struct configuration *configuration = load->configuration;
    char hostname[256] = "";
    int error;

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
            .folders = &configuration->folders,
            .limits = &configuration->limits,
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
    upstreams_finish(&configuration->upstreams);
    captures_finish(&configuration->user_variables);
    captures_finish(&configuration->stream_user_variables);
    arena_reset(&configuration->arena);
    free(configuration);
}
