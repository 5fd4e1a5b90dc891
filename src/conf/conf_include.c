/*
 * Resolves includes after parsing: merges the keys of a file in place of its `include`, and appends lists.
 */
#include "conf/conf_include.h"

#include "conf/conf_merge.h"
#include "conf/conf_parse.h"

#include <glob.h>
#include <stdlib.h>

static struct conf_node *file_load(struct conf_loader *loader, struct str path, const struct conf_node *at);

static bool includes_itself(struct conf_loader *loader, const struct conf_file *own,
                             const struct conf_node *at)
{
    for (const struct conf_file *file = at->mark.file; file; file = file->included_at.file) {
        if (own->inode && file->inode == own->inode && file->device == own->device) {
            conf_error(loader->errors, at->mark, STR("delete this include"), STR_FMT " includes itself",
                       STR_ARG(own->path));
            return true;
        }
    }
    return false;
}

static bool is_within_limits(struct conf_loader *loader, const struct conf_node *at)
{
    unsigned depth = 1;

    for (const struct conf_file *file = at->mark.file; file->included_at.file; file = file->included_at.file)
        depth++;
    if (loader->files < LIMIT_CONF_INCLUDES && depth < LIMIT_CONF_DEPTH)
        return true;
    conf_error(loader->errors, at->mark, STR("check whether files include each other"),
               "more than %d files included, or more than %d inside each other", LIMIT_CONF_INCLUDES,
               LIMIT_CONF_DEPTH);
    loader->stop = true;
    return false;
}

static struct conf_node *file_load(struct conf_loader *loader, struct str path, const struct conf_node *at)
{
    struct conf_file *file;
    struct conf_node *root;

    if (!is_within_limits(loader, at))
        return NULL;
    file = source_open(loader, path, (struct str){NULL, 0}, at->mark);
    root = file && !includes_itself(loader, file, at) ? parse_source(loader, file) : NULL;
    return root ? includes_resolve(loader, root) : NULL;
}

/* The path of an included file, relative in messages if that of the including file is relative. */
static struct str path_beside(struct conf_loader *loader, const struct conf_node *name)
{
    struct str own = name->mark.file->path;
    ssize_t slash = str_rfind(own, '/');

    if (str_starts(name->text, STR("/")))
        return arena_copy(loader->arena, name->text);
    if (slash < 0)
        return arena_copy(loader->arena, name->text);
    return arena_printf(loader->arena, STR_FMT "/" STR_FMT, (int)slash, own.data, STR_ARG(name->text));
}

static bool has_wildcard(struct str path)
{
    return str_find(path, '*') >= 0 || str_find(path, '?') >= 0 || str_find(path, '[') >= 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Calls `add_file` for each file that a name or pattern matches, in the order of names. */
static void files_each(struct conf_loader *loader, const struct conf_node *name,
                       void (*add_file)(void *argument, struct str path, const struct conf_node *at),
                       void *argument)
{
    struct str path = path_beside(loader, name);
    glob_t found = {0};
    int result;

    if (!path.data) {
        loader_out_of_memory(loader);
        return;
    }
    if (!has_wildcard(path)) {
        add_file(argument, path, name);
        return;
    }
    result = glob(path.data, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOSPACE)
        loader_out_of_memory(loader);
    if (result == 0) {
        qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv), by_name);
        for (size_t i = 0; i < found.gl_pathc && !loader->stop; i++)
            add_file(argument, str_from(found.gl_pathv[i]), name);
    }
    globfree(&found);
}

static void merge_file(void *argument, struct str path, const struct conf_node *at)
{
    struct conf_merge *merge = argument;
    struct conf_node *root = file_load(merge->loader, path, at);

    if (!root || root->absent)
        return;
    if (root->kind != CONF_MAP) {
        conf_error(merge->loader->errors, at->mark,
                   STR("include a list by '- !include FILE', as an item of a list"),
                   STR_FMT " contains no mapping, as include: requires", STR_ARG(path));
        return;
    }
    for (size_t i = 0; i < root->count; i++)
        conf_merge_add(merge, root->pairs[i]);
}

static void merge_include(struct conf_merge *merge, const struct conf_pair *pair)
{
    const struct conf_node *value = pair->value;
    size_t count = conf_item_count(value);

    for (size_t i = 0; i < count && !merge->loader->stop; i++) {
        const struct conf_node *name = value->kind == CONF_LIST ? value->items[i] : value;

        if (name->kind == CONF_SCALAR && !name->absent && name->text.length)
            files_each(merge->loader, name, merge_file, merge);
        else
            conf_error(merge->loader->errors, name->mark, STR("write include: conf.d/*.yaml"),
                       "include needs a file name, a pattern, or a list of them");
    }
}

static bool is_include(const struct conf_pair *pair)
{
    return !pair->key->quoted && str_equal(pair->key->text, STR("include"));
}

static void map_resolve(struct conf_loader *loader, struct conf_node *map)
{
    struct conf_merge merge = {.loader = loader, .map = map};
    bool including = false;

    for (size_t i = 0; i < map->count; i++)
        including |= is_include(&map->pairs[i]);
    table_init(&merge.index, false);
    for (size_t i = 0; i < map->count && !loader->stop; i++) {
        struct conf_pair *pair = &map->pairs[i];

        if (is_include(pair)) {
            merge_include(&merge, pair);
            continue;
        }
        pair->value = includes_resolve(loader, pair->value);
        if (pair->value && including)
            conf_merge_add(&merge, *pair);
        else if (pair->value)
            conf_merge_append(&merge, *pair);
    }
    if (!loader->stop)
        conf_merge_finish(&merge);
    buffer_finish(&merge.pairs);
    table_finish(&merge.index);
}

struct list_part {
    struct conf_loader *loader;
    struct buffer items;
};

static void list_append(struct list_part *part, struct conf_node *node)
{
    if (buffer_append(&part->items, str_of((const char *)&node, sizeof(struct conf_node *))) < 0)
        loader_out_of_memory(part->loader);
}

/* Appends a list in the file item by item, and any other value as one item. */
static void append_file(void *argument, struct str path, const struct conf_node *at)
{
    struct list_part *part = argument;
    struct conf_node *root = file_load(part->loader, path, at);

    if (!root || root->absent)
        return;
    if (root->kind != CONF_LIST) {
        list_append(part, root);
        return;
    }
    for (size_t i = 0; i < root->count; i++)
        list_append(part, root->items[i]);
}

static void list_resolve(struct conf_loader *loader, struct conf_node *list)
{
    struct list_part part = {.loader = loader};
    struct conf_node **items;

    for (size_t i = 0; i < list->count && !loader->stop; i++) {
        struct conf_node *item = list->items[i];

        if (item->include)
            files_each(loader, item, append_file, &part);
        else if ((item = includes_resolve(loader, item)))
            list_append(&part, item);
    }
    items = arena_alloc(loader->arena, part.items.length);
    if (items) {
        if (part.items.length)
            memcpy(items, part.items.data, part.items.length);
        list->items = items;
        list->count = part.items.length / sizeof(*items);
    } else {
        loader_out_of_memory(loader);
    }
    buffer_finish(&part.items);
}

struct conf_node *includes_resolve(struct conf_loader *loader, struct conf_node *node)
{
    if (loader->stop || node->visited)
        return node;
    if (node->include) {
        struct str path = path_beside(loader, node);

        if (!path.data)
            loader_out_of_memory(loader);
        return path.data ? file_load(loader, path, node) : NULL;
    }
    node->visited = true;
    if (node->kind == CONF_MAP)
        map_resolve(loader, node);
    else if (node->kind == CONF_LIST)
        list_resolve(loader, node);
    return node;
}
