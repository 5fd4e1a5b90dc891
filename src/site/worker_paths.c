/*
 * Walks all locations for the paths, and all groups of upstream servers for the ports.
 */
#include "site/worker_paths.h"

#include "build_options.h"
#include "site/module_interface.h"
#include "site/when.h"

#include <errno.h>

#define DNS_PORT 53

/* Directories are permitted instead of a file: another file may replace it by rename. */
static struct str directory_of(struct str path)
{
    ssize_t slash = str_rfind(path, '/');

    return slash > 0 ? str_slice(path, 0, (size_t)slash) : STR("/");
}

static struct str front_of(const struct template *template)
{
    return template_constant(template) ? template_text(template) : template_front(template);
}

/* The directories before the first variable; all directories if the path begins with a variable. */
static int add_template(struct sandbox_paths *paths, const struct template *template, bool whole_files)
{
    struct str text = front_of(template);

    if (!template_constant(template) || whole_files)
        text = directory_of(text);
    return sandbox_paths_add(paths, text, SANDBOX_READ);
}

static bool links_leave_root(const struct core_site *site)
{
    return site->disable_symlinks.policy == SYMLINKS_ANYWHERE || site->disable_symlinks.policy == SYMLINKS_OWNER;
}

static const struct template *root_of(const struct core_site *site)
{
    return site->alias.path ? site->alias.path : site->root;
}

/* If links may leave the root, all files must be readable. */
static int add_root(struct sandbox_paths *paths, const struct core_site *site, const struct core_site *outer)
{
    const struct template *root = root_of(site);

    if (!root || (outer && root == root_of(outer) && links_leave_root(site) == links_leave_root(outer)))
        return 0;
    if (links_leave_root(site))
        return sandbox_paths_add(paths, STR("/"), SANDBOX_READ);
    return add_template(paths, root, false);
}

static const void *field_of(const struct directive *directive, const void *conf)
{
    return (const char *)conf + directive->offset;
}

static int add_opened(struct sandbox_paths *paths, const struct directive *directive, const void *conf)
{
    struct str path;

    if (directive->type == DIRECTIVE_TEMPLATE) {
        const struct template *template = *(const struct template *const *)field_of(directive, conf);

        return template ? add_template(paths, template, true) : 0;
    }
    path = *(const struct str *)field_of(directive, conf);
    return str_empty(path) ? 0 : sandbox_paths_add(paths, directory_of(path), SANDBOX_READ);
}

static bool inherits_path(const struct directive *directive, const void *conf, const void *outer)
{
    return outer && ((const struct str *)field_of(directive, conf))->data ==
                        ((const struct str *)field_of(directive, outer))->data;
}

/* The walk through the locations. */
struct path_walk {
    struct sandbox_paths *paths;
    bool stores_bodies;             /* temporary files exist only with upstream servers */
};

static int add_directive(const struct path_walk *walk, const struct directive *directive, const void *conf,
                         const void *outer)
{
    if (directive->opened)
        return add_opened(walk->paths, directive, conf);
    if (directive->written && walk->stores_bodies && !inherits_path(directive, conf, outer))
        return sandbox_paths_add(walk->paths, *(const struct str *)field_of(directive, conf), SANDBOX_WRITE);
    return 0;
}

static int add_modules(const struct path_walk *walk, void *const *confs, void *const *outer)
{
    int result = 0;

    for (size_t i = 0; module_table[i] && result == 0; i++) {
        const struct directive *directive = module_table[i]->directives;

        for (; directive && directive->name && result == 0; directive++)
            result = add_directive(walk, directive, confs[i], outer ? outer[i] : NULL);
    }
    return result;
}

/* `outer`: the enclosing scope, which was added; NULL at a server. Values that it hands down are not added again. */
static int add_scope(const struct path_walk *walk, const struct location *location, const struct location *outer)
{
    int result = add_root(walk->paths, location->site, outer ? outer->site : NULL);

    return result < 0 ? result : add_modules(walk, location->module_conf, outer ? outer->module_conf : NULL);
}

/*
 * Paths that begin with a variable ($document_root, $request_filename) are below a root in general, and relative ones
 * never exist.
 */
static int add_conditions(struct sandbox_paths *paths, const struct when_block *when)
{
    int result = 0;

    for (size_t i = 0; i < when->count && result == 0; i++) {
        const struct condition *condition = &when->conditions[i];
        bool file = condition->kind == CONDITION_FILE || condition->kind == CONDITION_DIRECTORY ||
                    condition->kind == CONDITION_EXISTS;

        if (file && str_starts(front_of(condition->value), STR("/")))
            result = add_template(paths, condition->value, true);
    }
    return result;
}

static int add_when_block(const struct path_walk *walk, const struct when_block *when, const struct location *outer)
{
    int result = add_conditions(walk->paths, when);

    return result < 0 ? result : add_scope(walk, when->location, outer);
}

static int add_location(const struct path_walk *walk, const struct location *location, const struct location *outer)
{
    int result = add_scope(walk, location, outer);

    for (size_t i = 0; i < location->inner_count && result == 0; i++)
        result = add_location(walk, location->inner[i], location);
    for (size_t i = 0; i < location->when_block_count && result == 0; i++)
        result = add_when_block(walk, &location->when_blocks[i], location);
    for (size_t i = 0; i < location->pattern_count && result == 0; i++)
        result = add_location(walk, location->patterns[i], location);
    return result;
}

static int add_list(struct sandbox_paths *paths, const char *const *list, enum sandbox_access access)
{
    int result = 0;

    for (; *list && result == 0; list++)
        result = sandbox_paths_add(paths, str_from(*list), access);
    return result;
}

static int add_written(const struct configuration *configuration, struct sandbox_paths *paths)
{
    int result = sandbox_paths_add(paths, STR("/dev/null"), SANDBOX_WRITE); /* spare descriptors */

    for (size_t i = 0; i < configuration->directories.count && result == 0; i++)
        result = sandbox_paths_add(paths, configuration->directories.items[i], SANDBOX_WRITE);
    for (size_t i = 0; i < configuration->caches.count && result == 0; i++)
        result = sandbox_paths_add(paths, configuration->caches.items[i]->path, SANDBOX_WRITE);
    if (result == 0 && configuration->caches.count > 0)
        result = sandbox_paths_add(paths, STR("/proc/sys/kernel/random/boot_id"), SANDBOX_READ);
    return result;
}

/* A name can be added to a group with `zone` while the workers run. */
static bool resolves_names(const struct upstreams *upstreams)
{
    for (const struct upstream *upstream = upstreams->first; upstream; upstream = upstream->next) {
        if (upstream->zone)
            return true;
        for (size_t i = 0; i < upstream->count; i++) {
            if (!str_empty(upstream->servers[i].host))
                return true;
        }
    }
    return upstreams->any_address;
}

/* c-ares reads its files again for each group of queries, and other programs replace them by rename. */
static int add_resolver(const struct upstreams *upstreams, struct sandbox_paths *paths)
{
    static const char *const resolver_files[] = {"/etc", "/etc/resolv.conf", NULL};

    return resolves_names(upstreams) ? add_list(paths, resolver_files, SANDBOX_READ) : 0;
}

static bool has_upstreams(const struct upstreams *upstreams)
{
    return upstreams->first || upstreams->any_address;
}

/* OpenSSL looks up issuers in the system's directory when a server's certificate is verified. */
static int add_issuers(const struct upstreams *upstreams, struct sandbox_paths *paths)
{
    static const char *const directories[] = {"/etc/ssl/certs", "/usr/lib/ssl", "/usr/share/ca-certificates",
                                              "/usr/local/share/ca-certificates", NULL};

    return has_upstreams(upstreams) ? add_list(paths, directories, SANDBOX_READ) : 0;
}

int worker_paths_collect(const struct configuration *configuration, struct sandbox_paths *paths)
{
    const struct path_walk walk = {paths, has_upstreams(&configuration->upstreams)};
    int result = add_written(configuration, paths);

    for (size_t i = 0; i < configuration->server_count && result == 0; i++)
        result = configuration->servers[i]->root ? add_location(&walk, configuration->servers[i]->root, NULL) : 0;
    if (result == 0 && configuration->acme.count > 0)
        result = sandbox_paths_add(paths, configuration->acme.challenges, SANDBOX_READ);
    if (result == 0)
        result = add_resolver(&configuration->upstreams, paths);
    if (result == 0)
        result = add_issuers(&configuration->upstreams, paths);
    if (result == 0 && BUILD_SANITIZED)
        result = sandbox_paths_add(paths, STR("/"), SANDBOX_READ); /* for reports with source lines */
    return result;
}

static int add_server(const struct upstream_server *server, struct sandbox_ports *ports)
{
    if (!str_empty(server->service))
        ports->any = true; /* SRV records have the ports */
    if (!str_empty(server->host))
        return sandbox_ports_add(ports, server->port);
    return sandbox_ports_add(ports, (uint16_t)listen_address_port(&server->address));
}

/* The ports of servers that are added at run time. */
static int add_zone(const struct upstream_ports *zone, struct sandbox_ports *ports)
{
    int result = 0;

    ports->any |= zone->any;
    for (size_t i = 0; i < zone->count && result == 0; i++) {
        for (unsigned port = zone->ranges[i].first; port <= zone->ranges[i].last && result == 0; port++)
            result = sandbox_ports_add(ports, (uint16_t)port);
    }
    return result;
}

/* "127.0.0.1:53,[::1]:53" */
static int add_name_servers(const struct resolver_settings *settings, struct sandbox_ports *ports)
{
    struct str servers = settings ? settings->servers : STR("");
    int result = sandbox_ports_add(ports, DNS_PORT);

    while (!str_empty(servers) && result == 0) {
        struct str one = str_cut(&servers, ',');
        ssize_t colon = str_rfind(one, ':');
        uint64_t port;

        if (colon >= 0 && str_to_u64(str_skip(one, (size_t)colon + 1), &port) == 0 && port <= UINT16_MAX)
            result = sandbox_ports_add(ports, (uint16_t)port);
    }
    return result;
}

int worker_ports_collect(const struct configuration *configuration, struct sandbox_ports *ports)
{
    const struct upstreams *upstreams = &configuration->upstreams;
    int result = 0;

    ports->any = upstreams->any_address;
    for (const struct upstream *upstream = upstreams->first; upstream && result == 0; upstream = upstream->next) {
        for (size_t i = 0; i < upstream->count && result == 0; i++)
            result = add_server(&upstream->servers[i], ports);
        if (result == 0)
            result = add_zone(&upstream->ports, ports);
        if (result == 0 && resolves_names(upstreams))
            result = add_name_servers(upstream->resolver, ports);
    }
    return result;
}
