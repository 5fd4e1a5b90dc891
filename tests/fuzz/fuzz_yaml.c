/*
 * The loader of configurations and the reader of scopes: no input hangs or crashes them, every error can be printed,
 * and a loaded tree is printed as YAML that loads as the same tree.
 */
#include "fuzz.h"

#include "sample.h"

#define PRINTED_NODES 20000 /* limit, because aliases make a small input large */

static bool equal_nodes(const struct conf_node *a, const struct conf_node *b)
{
    if (a->kind != b->kind || a->count != b->count || a->absent != b->absent || !str_equal(a->text, b->text))
        return false;
    for (size_t i = 0; i < a->count; i++) {
        bool equal = a->kind == CONF_LIST ? equal_nodes(a->items[i], b->items[i])
                                          : equal_nodes(a->pairs[i].key, b->pairs[i].key) &&
                                                equal_nodes(a->pairs[i].value, b->pairs[i].value);

        if (!equal)
            return false;
    }
    return true;
}

static void check_printed(struct arena *arena, const struct conf_node *root)
{
    struct conf_errors errors = {.arena = arena};
    struct buffer printed = {0};
    struct buffer again = {0};
    const struct conf_node *second;

    HOLDS(conf_print_tree(root, &printed) == 0);
    second = conf_tree_parse(arena, STR("printed"), buffer_str(&printed), &errors);
    HOLDS(second && !errors.failed);
    HOLDS(equal_nodes(root, second));
    HOLDS(conf_print_tree(second, &again) == 0);
    HOLDS(str_equal(buffer_str(&printed), buffer_str(&again)));
    buffer_finish(&printed);
    buffer_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str text = str_of((const char *)bytes, size);
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};
    struct conf_reader reader = {.arena = &arena, .errors = &errors, .variables = &sample_variables};
    struct sample_values values;
    struct buffer diagnostics = {0};
    struct conf_node *root;

    /* The target must not read other files. */
    if (str_search(text, STR("include")) >= 0)
        return 0;
    arena_init(&arena, NULL, 256 * 1024 * 1024);
    root = conf_tree_parse(&arena, STR("input"), text, &errors);
    HOLDS(root || errors.failed);
    if (root && !errors.failed && root->count && root->size < PRINTED_NODES)
        check_printed(&arena, root);
    if (root)
        sample_walk(&reader, root, &values);
    HOLDS(errors.count <= LIMIT_CONF_ERRORS);
    HOLDS(conf_errors_print(&errors, &diagnostics) == 0);
    buffer_finish(&diagnostics);
    arena_reset(&arena);
    return 0;
}
