#include "conf/conf_tree.h"

#include <check.h>

static struct arena arena;
static struct conf_errors errors;

static void start(void)
{
    arena_init(&arena, NULL, 0);
    errors = (struct conf_errors){.arena = &arena};
}

static void finish(void)
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

START_TEST(marks_and_kinds)
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

int main(void)
{
    Suite *suite = suite_create("tree");
    TCase *tests = tcase_create("tree");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tests, start, finish);
    tcase_add_test(tests, marks_and_kinds);
    tcase_add_test(tests, anchors_and_merges);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
