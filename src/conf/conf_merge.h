/*
 * Merges mappings of several files. Private to the loader.
 */
#ifndef CONF_CONF_MERGE_H
#define CONF_CONF_MERGE_H

#include "base/table.h"
#include "conf/conf_source.h"

/* A mapping to which the keys of others are added. The owner sets `loader` and `map`, and initialises `index`. */
struct conf_merge {
    struct conf_loader *loader;
    struct conf_node *map;
    struct buffer pairs;
    struct table index;             /* key -> index in pairs plus 1 */
};

/* The number of items of a list; 1 for another node, which counts as a list of one item. */
static inline size_t conf_item_count(const struct conf_node *node)
{
    return node->kind == CONF_LIST ? node->count : 1;
}

/* Appends a pair whose key the mapping does not contain. */
void conf_merge_append(struct conf_merge *merge, struct conf_pair pair);
/*
 * Adds a pair. If the mapping contains the key, joins lists, merges mappings, or reports the duplicate. Values are
 * copied, not changed.
 */
void conf_merge_add(struct conf_merge *merge, struct conf_pair pair);
/* Sets the pairs of `map`, and frees `pairs` and `index`. False when out of memory, which is reported. */
bool conf_merge_finish(struct conf_merge *merge);

/* Reports that memory is exhausted, and stops the load. */
void loader_out_of_memory(struct conf_loader *loader);

#endif
