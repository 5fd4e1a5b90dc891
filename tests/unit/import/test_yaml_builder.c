/* Lookup of builders by their keys: few children, and so many that a linear search would take too long. */
#include "import/yaml_builder.h"

#include "../runner.h"

#include <stdio.h>

static struct str key_of(struct arena *arena, unsigned number)
{
    return arena_printf(arena, "key %u", number);
}

/*
 * With this many children, a lookup finds each by its key, and the first of two with the same key. It never finds a
 * child without a key.
 */
START_TEST(children_are_found_by_key)
{
    const unsigned counts[] = {0, 1, 15, 16, 17, 18, 64, 65, 100000};
    unsigned count = counts[_i];
    struct yaml_builder *root, *named = NULL;
    struct arena arena;

    arena_init(&arena, NULL, 0);
    root = yaml_builder_root(&arena);
    for (unsigned i = 0; i < count; i++) {
        struct str key = key_of(&arena, i);

        ck_assert_ptr_null(yaml_builder_find(root, key));
        named = yaml_builder_add(&arena, root, YAML_BUILDER_TEXT, key, NULL);
        ck_assert_ptr_eq(yaml_builder_find(root, key), named);
        ck_assert_ptr_ne(yaml_builder_add(&arena, root, YAML_BUILDER_MAP, key, NULL), named);
        ck_assert_ptr_eq(yaml_builder_find(root, key), named);
        ck_assert_ptr_nonnull(yaml_builder_add(&arena, root, YAML_BUILDER_TEXT, (struct str){NULL, 0}, NULL));
    }
    for (unsigned i = 0; i < count; i++) {
        struct yaml_builder *child = yaml_builder_find(root, key_of(&arena, i));

        ck_assert_ptr_nonnull(child);
        ck_assert_int_eq(child->kind, YAML_BUILDER_TEXT);
        ck_assert(str_equal(child->key, key_of(&arena, i)));
    }
    ck_assert_ptr_null(yaml_builder_find(root, key_of(&arena, count)));
    ck_assert_ptr_null(yaml_builder_find(NULL, STR("key 0")));
    arena_reset(&arena);
}
END_TEST

/* Children are printed in the order in which they were added, except one that was moved to the front. */
START_TEST(children_keep_their_order)
{
    struct buffer out = {0};
    struct yaml_builder *root;
    struct arena arena;

    arena_init(&arena, NULL, 0);
    root = yaml_builder_root(&arena);
    for (unsigned i = 0; i < 40; i++) {
        struct yaml_builder *made = yaml_builder_add(&arena, root, YAML_BUILDER_TEXT, key_of(&arena, i), NULL);

        ck_assert_ptr_nonnull(made);
        made->text = STR("x");
    }
    yaml_builder_move_first(root);
    ck_assert_int_eq(yaml_builder_print(root, &out), 0);
    ck_assert(str_starts(buffer_str(&out), STR("key 39: x\nkey 0: x\nkey 1: x\n")));
    ck_assert(str_ends(buffer_str(&out), STR("key 37: x\nkey 38: x\n")));
    ck_assert_ptr_eq(yaml_builder_find(root, STR("key 39")), root->first);
    buffer_finish(&out);
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, children_are_found_by_key, 0, 9);
    tcase_add_test(tcase, children_keep_their_order);
}

int main(void)
{
    return run_suite("import_yaml_builder", add_tests);
}
