/*
 * Merges the keys of several files: lists are joined, mappings are merged, and other duplicates are reported with the
 * names of both files.
 */
#include "conf/conf_merge.h"

void loader_out_of_memory(struct conf_loader *loader)
{
    conf_error(loader->errors, (struct conf_mark){NULL, 0, 0}, STR(""), "out of memory");
    loader->stop = true;
}

void conf_merge_append(struct conf_merge *merge, struct conf_pair pair)
{
    size_t place = merge->pairs.length / sizeof(pair) + 1;

    if (buffer_append(&merge->pairs, str_of((const char *)&pair, sizeof(pair))) < 0 ||
        table_set(&merge->index, pair.key->text, (void *)place) < 0)
        loader_out_of_memory(merge->loader);
}

bool conf_merge_finish(struct conf_merge *merge)
{
    struct conf_pair *pairs = arena_alloc(merge->loader->arena, merge->pairs.length);

    if (pairs) {
        if (merge->pairs.length)
            memcpy(pairs, merge->pairs.data, merge->pairs.length);
        merge->map->pairs = pairs;
        merge->map->count = merge->pairs.length / sizeof(*pairs);
    } else {
        loader_out_of_memory(merge->loader);
    }
    buffer_finish(&merge->pairs);
    table_finish(&merge->index);
    return pairs;
}

static struct conf_node *maps_merged(struct conf_loader *loader, const struct conf_node *first,
                                     const struct conf_node *second)
{
    struct conf_merge merge = {.loader = loader, .map = arena_alloc(loader->arena, sizeof(*merge.map))};

    if (!merge.map) {
        loader_out_of_memory(loader);
        return NULL;
    }
    *merge.map = *first;
    table_init(&merge.index, false);
    for (size_t i = 0; i < first->count; i++)
        conf_merge_append(&merge, first->pairs[i]);
    for (size_t i = 0; i < second->count; i++)
        conf_merge_add(&merge, second->pairs[i]);
    return conf_merge_finish(&merge) ? merge.map : NULL;
}

static struct conf_node *lists_joined(struct conf_loader *loader, struct conf_node *first,
                                      struct conf_node *second)
{
    size_t count = conf_item_count(first) + conf_item_count(second);
    struct conf_node *list = arena_alloc(loader->arena, sizeof(*list));
    size_t at = 0;

    if (list) {
        *list = (struct conf_node){.kind = CONF_LIST, .mark = first->mark, .visited = true, .count = count};
        list->items = arena_zalloc(loader->arena, count, sizeof(*list->items));
    }
    if (!list || !list->items) {
        loader_out_of_memory(loader);
        return NULL;
    }
    for (size_t i = 0; i < conf_item_count(first); i++)
        list->items[at++] = first->kind == CONF_LIST ? first->items[i] : first;
    for (size_t i = 0; i < conf_item_count(second); i++)
        list->items[at++] = second->kind == CONF_LIST ? second->items[i] : second;
    return list;
}

/* True if both values are joined to a list, as `server` is: each file may have one server, as a mapping. */
static bool is_joined_list(const struct conf_pair *first, const struct conf_pair *second)
{
    return first->value->kind == CONF_LIST || second->value->kind == CONF_LIST ||
           str_equal(first->key->text, STR("server"));
}

void conf_merge_add(struct conf_merge *merge, struct conf_pair pair)
{
    size_t place = (size_t)table_get(&merge->index, pair.key->text);
    struct conf_pair *first;
    struct conf_node *merged;

    if (!place) {
        conf_merge_append(merge, pair);
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
