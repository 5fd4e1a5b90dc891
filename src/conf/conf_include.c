/*
 * Resolves includes after parsing: merges the keys of a file in place of its `include`, appends lists, and reports
 * duplicates with the names of both files.
 */
#include "conf/conf_include.h"

#include "base/table.h"
#include "conf/conf_parse.h"

#include <glob.h>
#include <stdlib.h>

static struct conf_node *file_load(struct conf_loader *loader, struct str path, const struct conf_node *at);

static void out_of_memory(struct conf_loader *loader)
{
    conf_error(loader->errors, (struct conf_mark){NULL, 0, 0}, STR(""), "out of memory");
    loader->stop = true;
}

struct merge {
    struct conf_loader *loader;
    struct conf_node *map;
    struct buffer pairs;
    struct table index; /* key -> index in pairs plus 1 */
};

static void pair_append(struct merge *merge, struct conf_pair pair)
{
    size_t place = merge->pairs.length / sizeof(pair) + 1;

    if (buffer_append(&merge->pairs, str_of((const char *)&pair, sizeof(pair))) < 0 ||
        table_set(&merge->index, pair.key->text, (void *)place) < 0)
        out_of_memory(merge->loader);
}

static bool merge_finish(struct merge *merge)
{
    struct conf_pair *pairs = arena_alloc(merge->loader->arena, merge->pairs.length);

    if (pairs) {
        if (merge->pairs.length)
            memcpy(pairs, merge->pairs.data, merge->pairs.length);
        merge->map->pairs = pairs;
        merge->map->count = merge->pairs.length / sizeof(*pairs);
    } else {
        out_of_memory(merge->loader);
    }
    buffer_finish(&merge->pairs);
    table_finish(&merge->index);
    return pairs;
}

static void pair_merge(struct merge *merge, struct conf_pair pair);

static struct conf_node *maps_merged(struct conf_loader *loader, const struct conf_node *first,
                                     const struct conf_node *second)
{
    struct merge merge = {.loader = loader, .map = arena_alloc(loader->arena, sizeof(*merge.map))};

    if (!merge.map) {
        out_of_memory(loader);
        return NULL;
    }
    *merge.map = *first;
    table_init(&merge.index, false);
    for (size_t i = 0; i < first->count; i++)
        pair_append(&merge, first->pairs[i]);
    for (size_t i = 0; i < second->count; i++)
        pair_merge(&merge, second->pairs[i]);
    return merge_finish(&merge) ? merge.map : NULL;
}

static size_t items_of(const struct conf_node *node)
{
    return node->kind == CONF_LIST ? node->count : 1;
}

static struct conf_node *lists_joined(struct conf_loader *loader, struct conf_node *first,
                                      struct conf_node *second)
{
    size_t count = items_of(first) + items_of(second);
    struct conf_node *list = arena_alloc(loader->arena, sizeof(*list));
    size_t at = 0;

    if (list) {
        *list = (struct conf_node){.kind = CONF_LIST, .mark = first->mark, .visited = true, .count = count};
        list->items = arena_zalloc(loader->arena, count, sizeof(*list->items));
    }
    if (!list || !list->items) {
        out_of_memory(loader);
        return NULL;
    }
    for (size_t i = 0; i < items_of(first); i++)
        list->items[at++] = first->kind == CONF_LIST ? first->items[i] : first;
    for (size_t i = 0; i < items_of(second); i++)
        list->items[at++] = second->kind == CONF_LIST ? second->items[i] : second;
    return list;
}

/* True if both values are joined to a list, as `server` is: each file may have one server, as a mapping. */
static bool is_joined_list(const struct conf_pair *first, const struct conf_pair *second)
{
    return first->value->kind == CONF_LIST || second->value->kind == CONF_LIST ||
           str_equal(first->key->text, STR("server"));
}

static void pair_merge(struct merge *merge, struct conf_pair pair)
{
    size_t place = (size_t)table_get(&merge->index, pair.key->text);
    struct conf_pair *first;
    struct conf_node *merged;

    if (!place) {
        pair_append(merge, pair);
        return;
    }
    first = (struct conf_pair *)(void *)merge->pairs.data + place - 1;
    if (is_joined_list(first, &pair)) {
        merged = lists_joined(merge->loader, first->value, pair.value);
    } else if (first->value->kind == CONF_MAP && pair.value->kind == CONF_MAP) {
        merged = maps_merged(merge->loader, first->value, pair.value);
    } else {
        conf_error(merge->loader->errors, pair.key->mark, STR("keep one of them"),
                   "'" STR_FMT "' is given here and in " STR_FMT ":%u", STR_ARG(pair.key->text),
                   STR_ARG(first->key->mark.file->path), first->key->mark.line);
        return;
    }
    if (merged)
        first->value = merged;
}

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

static bool caps_hold(struct conf_loader *loader, const struct conf_node *at)
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

    if (!caps_hold(loader, at))
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
        out_of_memory(loader);
        return;
    }
    if (!has_wildcard(path)) {
        add_file(argument, path, name);
        return;
    }
    result = glob(path.data, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOSPACE)
        out_of_memory(loader);
    if (result == 0) {
        qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv), by_name);
        for (size_t i = 0; i < found.gl_pathc && !loader->stop; i++)
            add_file(argument, str_from(found.gl_pathv[i]), name);
    }
    globfree(&found);
}

static void merge_file(void *argument, struct str path, const struct conf_node *at)
{
    struct merge *merge = argument;
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
        pair_merge(merge, root->pairs[i]);
}

static void merge_include(struct merge *merge, const struct conf_pair *pair)
{
    const struct conf_node *value = pair->value;
    size_t count = items_of(value);

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
    struct merge merge = {.loader = loader, .map = map};
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
            pair_merge(&merge, *pair);
        else if (pair->value)
            pair_append(&merge, *pair);
    }
    if (!loader->stop)
        merge_finish(&merge);
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
        out_of_memory(part->loader);
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
        out_of_memory(loader);
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
            out_of_memory(loader);
        return path.data ? file_load(loader, path, node) : NULL;
    }
    node->visited = true;
    if (node->kind == CONF_MAP)
        map_resolve(loader, node);
    else if (node->kind == CONF_LIST)
        list_resolve(loader, node);
    return node;
}
