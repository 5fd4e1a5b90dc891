/*
 * Servers and their locations, from the tree to the structs used for routing.
 */
#include "base/limits.h"
#include "site/capture.h"
#include "site/load.h"

#include <errno.h>
#include <stdlib.h>

const struct loaded_server *load_find_server(const struct load *load, const struct virtual_server *server)
{
    for (size_t i = 0; i < load->server_count; i++) {
        if (load->servers[i].server == server)
            return &load->servers[i];
    }
    return NULL;
}

static struct location *make_location(struct load *load, const struct conf_scope_values *values)
{
    struct location *location = arena_zalloc(load->reader.arena, 1, sizeof(*location));

    if (!location)
        return NULL;
    location->pattern = STR("/");
    location_set_values(location, values);
    return location;
}

/* Returns a lower-case copy in the arena: names are compared in lower case. */
static struct str lower_copy(struct arena *arena, struct str name)
{
    char *text = arena_alloc(arena, name.length + 1);

    if (!text)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < name.length; i++)
        text[i] = str_lower(name.data[i]);
    text[name.length] = '\0';
    return str_of(text, name.length);
}

int load_server_names(struct load *load, struct virtual_server *server, const struct conf_words *names)
{
    struct arena *arena = load->reader.arena;

    server->names.items = arena_zalloc(arena, names->count + 1, sizeof(struct str));
    if (!server->names.items)
        return -ENOMEM;
    for (size_t i = 0; i < names->count; i++) {
        /* A regular expression keeps its case. */
        server->names.items[i] =
            str_starts(names->items[i], STR("~")) ? names->items[i] : lower_copy(arena, names->items[i]);
        if (!server->names.items[i].data)
            return -ENOMEM;
    }
    server->names.count = names->count;
    server->name = names->count ? server->names.items[0] : STR("");
    if (str_starts(server->name, STR("."))) /* ".example.com": $server_name is "example.com" */
        server->name = str_skip(server->name, 1);
    return 0;
}

struct loaded_server *load_add_server(struct load *load, const struct conf_node *node,
                                      const struct conf_scope_values *values, struct virtual_server *server)
{
    struct loaded_server *loaded = &load->servers[load->server_count];

    *loaded = (struct loaded_server){
        .server = server,
        .own = conf_scope_group(values, CORE_SERVER),
        .ssl = conf_scope_group(values, CORE_SSL),
        .values = values,
        .node = node,
        .valid = load->http_valid && load->valid,
    };
    load->configuration->servers[load->server_count++] = server;
    load->configuration->server_count = load->server_count;
    return loaded;
}

int load_server(struct load *load, const struct conf_node *node, const struct conf_scope_values *http)
{
    static const char *const inner[] = {"location", NULL};
    struct conf_scope_values *values = load_scope(load, SCOPE_SERVER, node, http, inner);
    struct virtual_server *server = arena_zalloc(load->reader.arena, 1, sizeof(*server));
    struct loaded_server *loaded;

    if (!values || !server)
        return -ENOMEM;
    server->root = make_location(load, values);
    if (!server->root)
        return -ENOMEM;
    loaded = load_add_server(load, node, values, server);
    server->patterns = loaded->own->patterns;
    server->pattern_count = loaded->own->pattern_count;
    if (load_server_names(load, server, &loaded->own->names) < 0 || load_server_zone(load, node, loaded) < 0 ||
        load_when_blocks(load, node, NULL, server->root) < 0)
        return -ENOMEM;
    return load_locations(load, conf_map_get(node, STR("location")), server->root);
}

size_t load_count_servers(const struct conf_node *node)
{
    const struct conf_node *servers = node ? conf_map_get(node, STR("server")) : NULL;

    return !servers ? 0 : servers->kind == CONF_LIST ? servers->count : 1;
}

int load_servers(struct load *load, const struct conf_node *http, const struct conf_scope_values *values,
                 size_t more)
{
    const struct conf_node *node = conf_map_get(http, STR("server"));
    size_t count = load_count_servers(http);

    if (count + more == 0 && load->unreadable)
        return 0;
    if (count + more == 0) {
        conf_error(load->errors, http->mark, STR("server: {listen: 8080, root: www}"),
                   "http has no server");
        return 0;
    }
    load->servers = arena_zalloc(load->reader.arena, count + more + 1, sizeof(*load->servers));
    load->configuration->servers =
        arena_zalloc(load->reader.arena, count + more + 1, sizeof(struct virtual_server *));
    if (!load->servers || !load->configuration->servers)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int error = load_server(load, node->kind == CONF_LIST ? node->items[i] : node, values);

        if (error < 0)
            return error;
    }
    return 0;
}

/* Parses "~ regex" or "~* regex". False: invalid, and reported. */
static bool parse_regex(struct load *load, const struct conf_node *key, struct location *location)
{
    struct str text = str_trim(key->text);
    bool nocase = str_starts(text, STR("~*"));

    location->kind = LOCATION_REGEX;
    location->pattern = text;
    text = str_trim(str_skip(text, nocase ? 2 : 1));
    if (!str_empty(text))
        return capture_read(&load->reader, key, text, nocase, &location->regex) == 0;
    conf_error(load->errors, key->mark, STR("~ \\.php$, or without case ~* \\.(gif|jpe?g)$"),
               "location \"" STR_FMT "\" has no regular expression", STR_ARG(location->pattern));
    return false;
}

/* Parses "= /a", "^~ /a", "~ regex", "~* regex", "@name" or "/a". False: invalid, and reported. */
static bool parse_pattern(struct load *load, const struct conf_node *key, struct location *location)
{
    struct str text = str_trim(key->text);

    location->kind = LOCATION_PREFIX;
    if (str_starts(text, STR("~")))
        return parse_regex(load, key, location);
    if (str_starts(text, STR("@"))) {
        location->kind = LOCATION_NAMED;
        location->pattern = text;
        if (text.length > 1)
            return true;
        conf_error(load->errors, key->mark, STR("write a name, as in @fallback"), "location \"@\" has no name");
        return false;
    }
    if (str_starts(text, STR("="))) {
        location->kind = LOCATION_EXACT;
        text = str_trim(str_skip(text, 1));
    } else if (str_starts(text, STR("^~"))) {
        location->kind = LOCATION_PREFIX_FINAL;
        text = str_trim(str_skip(text, 2));
    }
    if (!str_starts(text, STR("/"))) {
        conf_error(load->errors, key->mark, STR("/, /images/, = /exact, ^~ /prefix, ~ regex or @name"),
                   "location \"" STR_FMT "\" does not begin with a slash", STR_ARG(text));
        return false;
    }
    location->pattern = text;
    return true;
}

/* Checks nginx's rules for nested locations, and duplicates. */
static bool check_place(struct load *load, const struct conf_node *key, const struct location *outer,
                        const struct location *location)
{
    bool nested = outer->nested;

    if (nested && location->kind == LOCATION_NAMED) {
        conf_error(load->errors, key->mark, STR("move it into server"),
                   "a named location is not allowed inside another location");
        return false;
    }
    if (nested && (outer->kind == LOCATION_EXACT || outer->kind == LOCATION_NAMED)) {
        conf_error(load->errors, key->mark, STR("only a prefix has locations inside"),
                   "location \"" STR_FMT "\" is not allowed inside \"" STR_FMT "\"", STR_ARG(location->pattern),
                   STR_ARG(outer->pattern));
        return false;
    }
    if (location->kind == LOCATION_REGEX)
        return true;
    if (nested && outer->kind == LOCATION_REGEX) {
        conf_error(load->errors, key->mark, STR("only regular expressions are allowed inside one"),
                   "location \"" STR_FMT "\" is not allowed inside \"" STR_FMT "\"", STR_ARG(location->pattern),
                   STR_ARG(outer->pattern));
        return false;
    }
    if (nested && !str_starts(location->pattern, outer->pattern)) {
        conf_error(load->errors, key->mark, STR("the path of a nested location begins with the outer path"),
                   "location \"" STR_FMT "\" is outside of \"" STR_FMT "\"", STR_ARG(location->pattern),
                   STR_ARG(outer->pattern));
        return false;
    }
    for (size_t i = 0; i < outer->inner_count; i++) {
        const struct location *other = outer->inner[i];
        bool both_prefix = other->kind != LOCATION_EXACT && location->kind != LOCATION_EXACT;

        if (str_equal(other->pattern, location->pattern) && (both_prefix || other->kind == location->kind)) {
            conf_error(load->errors, key->mark, STR("merge it with the other one"),
                       "duplicate location \"" STR_FMT "\"", STR_ARG(location->pattern));
            return false;
        }
    }
    return true;
}

static int load_location(struct load *load, const struct conf_pair *pair, struct location *outer)
{
    static const char *const inner[] = {"location", NULL};
    const struct conf_scope_values *values =
        load_scope(load, SCOPE_LOCATION, pair->value, outer->values, inner);
    struct location *location = values ? make_location(load, values) : NULL;

    if (!location)
        return -ENOMEM;
    location->nested = true;
    if (!parse_pattern(load, pair->key, location) || !check_place(load, pair->key, outer, location))
        return 0;
    location_set_alias_prefix(load, pair->value, location);
    if (location->regex)
        outer->patterns[outer->pattern_count++] = location;
    else
        outer->inner[outer->inner_count++] = location;
    if (load_location_zone(load, pair, location) < 0 || load_when_blocks(load, pair->value, outer, location) < 0)
        return -ENOMEM;
    return load_locations(load, conf_map_get(pair->value, STR("location")), location);
}

/* Sorts exact locations first, then prefixes by descending length, so that the first match applies. */
static int compare_locations(const void *a, const void *b)
{
    const struct location *left = *(struct location *const *)a;
    const struct location *right = *(struct location *const *)b;
    bool left_exact = left->kind == LOCATION_EXACT;
    bool right_exact = right->kind == LOCATION_EXACT;

    if (left_exact != right_exact)
        return left_exact ? -1 : 1;
    if (left->pattern.length != right->pattern.length)
        return left->pattern.length > right->pattern.length ? -1 : 1;
    return str_compare(left->pattern, right->pattern);
}

int load_locations(struct load *load, const struct conf_node *node, struct location *outer)
{
    if (!node)
        return 0;
    if (node->kind != CONF_MAP) {
        conf_error(load->errors, node->mark,
                   STR("location: {/: {index: index.html}, /images/: {root: media}}"),
                   "location takes a mapping of paths to their directives");
        return 0;
    }
    outer->inner = arena_zalloc(load->reader.arena, node->count + 1, sizeof(void *));
    outer->patterns = arena_zalloc(load->reader.arena, node->count + 1, sizeof(void *));
    if (!outer->inner || !outer->patterns)
        return -ENOMEM;
    for (size_t i = 0; i < node->count; i++) {
        int error;

        if (str_starts(node->pairs[i].key->text, STR("x-")))
            continue;
        error = load_location(load, &node->pairs[i], outer);
        if (error < 0)
            return error;
    }
    qsort(outer->inner, outer->inner_count, sizeof(void *), compare_locations);
    return 0;
}
