/*
 * Builds the YAML of an import as a tree; yaml_print.c prints it.
 */
#include "import/yaml_builder.h"

#include "base/table.h"

enum { LINEAR_CHILDREN_MAX = 16 }; /* more children of a map are found by hash chains */

struct yaml_builder *yaml_builder_root(struct arena *arena)
{
    struct yaml_builder *root = arena_zalloc(arena, 1, sizeof(*root));

    if (root)
        root->kind = YAML_BUILDER_MAP;
    return root;
}

static struct yaml_builder **key_chain_of(const struct yaml_builder *map, struct str key)
{
    return &map->chains[table_hash(key, false) % map->chain_count];
}

/* Adds the child to its chain, unless an earlier child has the same key: the first one is found. */
static void add_to_chain(struct yaml_builder *map, struct yaml_builder *child)
{
    struct yaml_builder **link = child->key.data ? key_chain_of(map, child->key) : NULL;

    while (link && *link && !str_equal((*link)->key, child->key))
        link = &(*link)->chained;
    if (link && !*link)
        *link = child;
}

/* Grows the chains; without memory for them children are searched linearly. */
static void build_chains(struct arena *arena, struct yaml_builder *map)
{
    map->chains = arena_zalloc(arena, 4 * map->count, sizeof(struct yaml_builder *));
    map->chain_count = map->chains ? 4 * map->count : 0;
    for (struct yaml_builder *child = map->first; child && map->chains; child = child->next) {
        child->chained = NULL;
        add_to_chain(map, child);
    }
}

struct yaml_builder *yaml_builder_find(const struct yaml_builder *map, struct str key)
{
    struct yaml_builder *child = map ? map->first : NULL;

    if (map && map->chains) {
        child = *key_chain_of(map, key);
        while (child && !str_equal(child->key, key))
            child = child->chained;
        return child;
    }
    while (child && !str_equal(child->key, key))
        child = child->next;
    return child;
}

struct yaml_builder *yaml_builder_add(struct arena *arena, struct yaml_builder *parent,
                                      enum yaml_builder_kind kind, struct str key,
                                      const struct nginx_directive *origin)
{
    struct yaml_builder *child = parent ? arena_zalloc(arena, 1, sizeof(*child)) : NULL;

    if (!child)
        return NULL;
    *child = (struct yaml_builder){.kind = kind, .key = key, .parent = parent, .origin = origin};
    if (origin) {
        child->comments_above = origin->comments_above;
        child->comment_beside = origin->comment_beside;
        child->comments_below = origin->comments_below;
    }
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
    if (parent->kind == YAML_BUILDER_MAP && parent->count > LINEAR_CHILDREN_MAX && parent->count > parent->chain_count)
        build_chains(arena, parent);
    else if (parent->chains)
        add_to_chain(parent, child);
    return child;
}

struct yaml_builder *yaml_builder_open(struct arena *arena, struct yaml_builder *map,
                                       enum yaml_builder_kind kind, struct str key)
{
    struct yaml_builder *child = yaml_builder_find(map, key);

    if (!child)
        return yaml_builder_add(arena, map, kind, key, NULL);
    return child->kind == kind ? child : NULL;
}

void yaml_builder_move_first(struct yaml_builder *parent)
{
    struct yaml_builder *before = parent ? parent->first : NULL;

    if (!before || before == parent->last)
        return;
    while (before->next != parent->last)
        before = before->next;
    parent->last->next = parent->first;
    parent->first = parent->last;
    parent->last = before;
    before->next = NULL;
}

struct yaml_builder *yaml_builder_at(struct yaml_builder *root, unsigned line)
{
    struct yaml_builder *found = NULL;

    for (struct yaml_builder *child = root->first; child; child = child->next) {
        struct yaml_builder *inner;

        if (child->omitted || line < child->line || line > child->last_line)
            continue;
        inner = yaml_builder_at(child, line);
        if (inner)
            found = inner;
        else if (child->origin)
            found = child;
    }
    return found;
}
