/*
 * Reads one scope: its directives by the tables, its media types, the targets of its access logs, and the members of
 * struct location that depend on them.
 */
#include "site/load.h"

#include "log/access_log.h"
#include "log/log_selection.h"

#include <errno.h>
#include <sys/stat.h>

static bool same_types(const struct core_site *a, const struct core_site *b)
{
    return a->types.items == b->types.items && str_equal(a->charset, b->charset) &&
           str_equal(a->default_type, b->default_type);
}

static int make_types(struct load *load, struct core_site *site, const struct core_site *outer)
{
    struct media_table *media;

    if (outer && outer->mime.default_type.data && same_types(site, outer)) {
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

static struct access_log_target *find_target(struct load *load, const struct access_log_row *row)
{
    struct configuration *configuration = load->configuration;
    struct access_log_target **grown;
    struct access_log_target *target;

    for (size_t i = 0; i < configuration->access_log_count; i++) {
        if (str_equal(configuration->access_logs[i]->path, row->path))
            return configuration->access_logs[i];
    }
    target = arena_zalloc(load->reader.arena, 1, sizeof(*target));
    grown = arena_zalloc(load->reader.arena, configuration->access_log_count + 1, sizeof(void *));
    if (!target || !grown)
        return NULL;
    *target = (struct access_log_target){
        .path = row->path, .syslog = row->syslog, .index = (unsigned)configuration->access_log_count, .fd = -1};
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
        rows[i].target = find_target(load, &rows[i]);
        rows[i].format = core_log_format_find(&load->reader, formats, rows[i].format_name);
        if (!rows[i].target)
            return -ENOMEM;
        if (rows[i].selection)
            rows[i].selection->index = load->configuration->access_log_selections++;
        if (!rows[i].format)
            conf_error(load->errors, rows[i].mark, STR("main, json, or a name from log_format"),
                       "there is no log format \"" STR_FMT "\"", STR_ARG(rows[i].format_name));
    }
    return 0;
}

/* Warns of a missing root directory, below which every request would get 404. */
static void warn_missing_root(struct load *load, const struct conf_node *scope, const struct template *root)
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
                     STR("relative paths start at the directory of this file, or at -p"),
                     "there is no directory \"" STR_FMT "\"", STR_ARG(path));
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
    load->valid = !load->errors->failed;
    load->errors->failed |= failed;
    site = conf_scope_group(values, CORE_SITE);
    if (scope == SCOPE_HTTP)
        load->http = conf_scope_group(values, CORE_HTTP);
    if (site == outer_site || !(scope & SCOPE_SITE))
        return values;
    warn_missing_root(load, node, site->root);
    if (make_types(load, site, outer_site) < 0 ||
        load_access_logs(load, &site->access_logs, &load->http->log_formats) < 0)
        return NULL;
    return values;
}

void location_set_values(struct location *location, const struct conf_scope_values *values)
{
    location->values = values;
    location->site = conf_scope_group(values, CORE_SITE);
    location->module_conf = values->values + CORE_GROUPS;
}

/* Sets the prefix that the alias of this location replaces. */
void location_set_alias_prefix(struct load *load, const struct conf_node *node, const struct location *location)
{
    struct core_site *site = conf_scope_group(location->values, CORE_SITE);
    const struct conf_node *alias = conf_map_get(node, STR("alias"));

    if (!alias)
        return;
    site->alias.whole = location->regex != NULL;
    site->alias.prefix = location->pattern;
    if (location->kind == LOCATION_NAMED)
        conf_error(load->errors, alias->mark, STR("use root: a named location has no prefix that alias could replace"),
                   "a named location has no alias");
}
