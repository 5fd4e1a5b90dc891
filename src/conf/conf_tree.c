/*
 * Loads a tree (source, nodes, includes), overlays one on another, and finds the value of a key.
 */
#include "conf/conf_tree.h"

#include "conf/conf_include.h"
#include "conf/conf_parse.h"

#include <errno.h>

static struct conf_node *root_load(struct conf_loader *loader, struct str path, struct str text)
{
    struct conf_file *file = source_open(loader, path, text, (struct conf_mark){NULL, 0, 0});
    struct conf_node *root = file ? parse_source(loader, file) : NULL;

    if (root)
        root = includes_resolve(loader, root);
    if (!root || loader->stop)
        return NULL;
    if (root->kind == CONF_MAP)
        return root;
    if (loader->errors->failed)
        return NULL;
    if (root->absent)
        conf_error(loader->errors, root->mark,
                   STR("the shortest one is http: {server: {listen: 8080, root: .}}"),
                   "the configuration is empty");
    else if (root->kind == CONF_SCALAR && str_find(root->text, ';') >= 0)
        parse_reject_nginx(loader, root->mark);
    else
        conf_error(loader->errors, root->mark,
                   STR("it begins with keys such as http:, each on a line of its own"),
                   "the configuration must be a mapping of keys to values");
    return NULL;
}

struct conf_node *conf_tree_load(struct arena *arena, struct str path, struct conf_errors *errors)
{
    struct conf_loader loader = {.arena = arena, .errors = errors};

    return root_load(&loader, path, (struct str){NULL, 0});
}

struct conf_node *conf_tree_parse(struct arena *arena, struct str name, struct str text,
                                  struct conf_errors *errors)
{
    struct conf_loader loader = {.arena = arena, .errors = errors};

    return root_load(&loader, name, text.data ? text : STR(""));
}

const struct conf_file *conf_tree_files(const struct conf_node *tree)
{
    const struct conf_file *file = tree->mark.file;

    while (file && file->included_at.file)
        file = file->included_at.file;
    return file;
}

static struct conf_pair *pair_find(const struct conf_node *map, struct str key)
{
    if (!map || map->kind != CONF_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++) {
        if (str_equal(map->pairs[i].key->text, key))
            return &map->pairs[i];
    }
    return NULL;
}

struct conf_node *conf_map_get(const struct conf_node *map, struct str key)
{
    const struct conf_pair *pair = pair_find(map, key);

    return pair ? pair->value : NULL;
}

int conf_tree_overlay(struct arena *arena, struct conf_node *base, const struct conf_node *over)
{
    struct conf_pair *pairs = arena_zalloc(arena, base->count + over->count, sizeof(*pairs));

    if (!pairs)
        return -ENOMEM;
    if (base->count)
        memcpy(pairs, base->pairs, base->count * sizeof(*pairs));
    base->pairs = pairs;
    for (size_t i = 0; i < over->count; i++) {
        struct conf_pair *known = pair_find(base, over->pairs[i].key->text);
        struct conf_node *copy;
        int error;

        if (!known) {
            base->pairs[base->count++] = over->pairs[i];
            continue;
        }
        if (known->value->kind != CONF_MAP || over->pairs[i].value->kind != CONF_MAP) {
            *known = over->pairs[i];
            continue;
        }
        /* An alias may share the map with another place. */
        copy = arena_alloc(arena, sizeof(*copy));
        if (!copy)
            return -ENOMEM;
        *copy = *known->value;
        known->value = copy;
        error = conf_tree_overlay(arena, copy, over->pairs[i].value);
        if (error < 0)
            return error;
    }
    return 0;
}
