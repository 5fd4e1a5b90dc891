#include "conf/conf_tree.h"

#include "../runner.h"

static struct arena arena;
static struct conf_errors errors;

static void set_up(void)
{
    arena_init(&arena, NULL, 0);
    errors = (struct conf_errors){.arena = &arena};
}

static void tear_down(void)
{
    arena_reset(&arena);
}

static struct conf_node *tree(const char *text)
{
    struct conf_node *root = conf_tree_parse(&arena, STR("t.yaml"), str_from(text), &errors);
    struct buffer out = {0};

    ck_assert_int_eq(conf_errors_print(&errors, &out), 0);
    ck_assert_msg(!errors.failed, "%s\n" STR_FMT, text, STR_ARG(buffer_str(&out)));
    buffer_finish(&out);
    return root;
}

static struct str value(const struct conf_node *map, const char *key)
{
    const struct conf_node *node = conf_map_get(map, str_from(key));

    return node && node->kind == CONF_SCALAR ? node->text : STR("(none)");
}

START_TEST(nodes_have_their_kind_and_position)
{
    const struct conf_node *root = tree("\xef\xbb\xbf"
                                        "\xc3\xa4: 1\r\nlist: [a, 'b']\r\nmap:\r\n  k: no\r\n  e:\r\n");
    const struct conf_node *list = conf_map_get(root, STR("list"));
    const struct conf_node *map = conf_map_get(root, STR("map"));

    ck_assert_uint_eq(root->count, 3);
    ck_assert(str_equal(value(root, "\xc3\xa4"), STR("1")));
    ck_assert_uint_eq(root->pairs[0].value->mark.column, 4);
    ck_assert_uint_eq(list->kind, CONF_LIST);
    ck_assert_uint_eq(list->count, 2);
    ck_assert(!list->items[0]->quoted && list->items[1]->quoted);
    ck_assert_uint_eq(list->items[1]->mark.line, 2);
    ck_assert_uint_eq(list->items[1]->mark.column, 11);
    ck_assert(str_equal(value(map, "k"), STR("no")));
    ck_assert(conf_map_get(map, STR("e"))->absent);
    ck_assert_uint_eq(conf_map_get(map, STR("e"))->mark.line, 5);
    ck_assert_ptr_null(conf_map_get(list, STR("k")));
}
END_TEST

START_TEST(anchors_and_merges)
{
    const struct conf_node *root = tree("x-base: &base {a: 1, b: 2}\n"
                                        "x-more: &more {b: 3, c: 4}\n"
                                        "one: {<<: *base, b: 9}\n"
                                        "two:\n  <<: [*base, *more]\n  d: 5\n"
                                        "same: *base\n");
    const struct conf_node *one = conf_map_get(root, STR("one"));
    const struct conf_node *two = conf_map_get(root, STR("two"));

    ck_assert(str_equal(value(one, "a"), STR("1")) && str_equal(value(one, "b"), STR("9")));
    ck_assert_uint_eq(one->count, 2);
    ck_assert(str_equal(value(two, "b"), STR("2")) && str_equal(value(two, "c"), STR("4")));
    ck_assert_uint_eq(two->count, 4);
    ck_assert_ptr_eq(conf_map_get(root, STR("same")), conf_map_get(root, STR("x-base")));
}
END_TEST

/* Ten levels of ten aliases each: ten billion nodes if they were expanded. */
START_TEST(nested_aliases_are_rejected_at_the_value_limit)
{
    struct buffer text = {0};
    struct buffer out = {0};

    ck_assert_int_eq(buffer_append(&text, STR("x-0: &a0 [l, l, l, l, l, l, l, l, l, l]\n")), 0);
    for (int i = 1; i < 10; i++) {
        ck_assert_int_eq(buffer_printf(&text, "x-%d: &a%d [", i, i), 0);
        for (int k = 0; k < 10; k++)
            ck_assert_int_eq(buffer_printf(&text, "*a%d%s", i - 1, k < 9 ? ", " : "]\n"), 0);
    }
    ck_assert_ptr_null(conf_tree_parse(&arena, STR("t.yaml"), buffer_str(&text), &errors));
    ck_assert_int_eq(conf_errors_print(&errors, &out), 0);
    ck_assert_int_ge(str_search(buffer_str(&out), STR("t.yaml:6:")), 0);
    ck_assert_int_ge(str_search(buffer_str(&out), STR("more than 1000000 values")), 0);
    buffer_finish(&out);
    buffer_finish(&text);
}
END_TEST

/* Aliases add to the depth: each list contains the alias of the one before. */
START_TEST(depth_of_aliases_is_limited)
{
    struct buffer text = {0};

    ck_assert_int_eq(buffer_append(&text, STR("x-0: &a0 [l]\n")), 0);
    for (int i = 1; i < 40; i++)
        ck_assert_int_eq(buffer_printf(&text, "x-%d: &a%d [*a%d]\n", i, i, i - 1), 0);
    ck_assert_ptr_null(conf_tree_parse(&arena, STR("t.yaml"), buffer_str(&text), &errors));
    ck_assert_uint_eq(errors.count, 1);
    ck_assert_uint_eq(errors.items[0].mark.line, 31);
    buffer_finish(&text);
}
END_TEST

START_TEST(overlay_replaces_and_adds_values)
{
    struct conf_node *base = tree("a: 1\nx-m: &m {k: v, l: w}\nb: *m\nc: *m\nd: {e: {f: 1}}\n");
    struct conf_node *over = tree("a: 2\nb: {k: changed, n: new}\nz: 26\nd: [1]\n");

    ck_assert_int_eq(conf_tree_overlay(&arena, base, over), 0);
    ck_assert(str_equal(value(base, "a"), STR("2")) && str_equal(value(base, "z"), STR("26")));
    ck_assert(str_equal(value(conf_map_get(base, STR("b")), "k"), STR("changed")));
    ck_assert(str_equal(value(conf_map_get(base, STR("b")), "l"), STR("w")));
    ck_assert(str_equal(value(conf_map_get(base, STR("b")), "n"), STR("new")));
    ck_assert(str_equal(value(conf_map_get(base, STR("c")), "k"), STR("v")));
    ck_assert_uint_eq(conf_map_get(base, STR("d"))->kind, CONF_LIST);
}
END_TEST

START_TEST(mapping_has_any_number_of_keys)
{
    struct buffer text = {0};
    const struct conf_node *root;

    for (int i = 0; i < 20000; i++)
        ck_assert_int_eq(buffer_printf(&text, "key%d: %d\n", i, i), 0);
    root = tree((buffer_append(&text, str_of("", 1)) == 0 ? text.data : ""));
    ck_assert_uint_eq(root->count, 20000);
    ck_assert(str_equal(value(root, "key19999"), STR("19999")));
    buffer_finish(&text);
}
END_TEST

START_TEST(parsing_fails_with_too_little_memory)
{
    static const char text[] = "a: &a {b: [1, 2, {c: d}], e: 'f'}\ng: {<<: *a, h: ${TIGHT_X:-i}}\n";
    unsigned failed = 0;

    for (size_t room = 1; room < 40; room++) {
        struct arena tight;
        struct conf_errors own = {.arena = &tight};
        struct buffer out = {0};

        arena_init(&tight, NULL, room * 512);
        failed += conf_tree_parse(&tight, STR("t.yaml"), str_from(text), &own) == NULL;
        ck_assert_int_eq(conf_errors_print(&own, &out), 0);
        buffer_finish(&out);
        arena_reset(&tight);
    }
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_lt(failed, 39);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, nodes_have_their_kind_and_position);
    tcase_add_test(tcase, anchors_and_merges);
    tcase_add_test(tcase, nested_aliases_are_rejected_at_the_value_limit);
    tcase_add_test(tcase, depth_of_aliases_is_limited);
    tcase_add_test(tcase, overlay_replaces_and_adds_values);
    tcase_add_test(tcase, mapping_has_any_number_of_keys);
    tcase_add_test(tcase, parsing_fails_with_too_little_memory);
}

int main(void)
{
    return run_suite("tree", add_tests);
}
