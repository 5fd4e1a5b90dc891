#include "conf/conf_vocabulary.h"
#include "sample.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

static bool equal_nodes(const struct conf_node *a, const struct conf_node *b)
{
    if (a->kind != b->kind || a->count != b->count || a->absent != b->absent || !str_equal(a->text, b->text))
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->kind == CONF_LIST
                ? !equal_nodes(a->items[i], b->items[i])
                : !equal_nodes(a->pairs[i].key, b->pairs[i].key) || !equal_nodes(a->pairs[i].value, b->pairs[i].value))
            return false;
    }
    return true;
}

static const char *const trees[] = {
    "a: 1\nb: [x, y, {c: d, e: [f]}]\nc: {}\nd: []\ne:\nf: ''\n",
    "x-b: &b {k: v, l: [1, 2]}\none: *b\ntwo: {<<: *b, m: n}\n",
    "http:\n  server:\n  - listen: [8443 ssl, '[::]:8443 ssl']\n    location:\n      ~ \\.(css|js)$: "
    "{expires: 30d}\n"
    "      = /a: {return: '200 \"a: b\"'}\n      '@named': {}\n",
    "- : x\n",
    "a: \"tab\\there, nl\\n, quote \\\" back \\\\ nul-free \\e[0m\"\nb: 'it''s'\n",
    "fe: \"a\\ufeffb\"\nls: \"a\\u2028b\"\nc1: \"a\\x85b\"\n",
    "a: \"\\u20ac \\x85 \\u2028 \\ufeff \xc3\xa4 \xe2\x82\xac\"\n",
    "a: '# no comment'\nb: 'x # y'\nc: 'x: y'\nd: 'x:'\ne: ' lead'\nf: 'trail '\ng: '- x'\nh: '...'\n",
    "'*': '&a'\n'!t': '%x'\n'<<': '>'\n'? q': '| p'\n'- d': ', c'\n",
    "a: $${SLUICE_X}\nb: '$${SLUICE_X:-y} ${SLUICE_X}'\nc: $host ${uri}\n",
    "a: |\n  block\n   text\n\n  end\nb: >-\n  folded\n  text\n",
    "a: [[1, [2]], [{b: {c: 1}}]]\n",
    "a: [,]\n",
    "a: {b: [], c: {d: {}}}\n",
    "a: no\nb: null\nc: ~\nd: 0x10\ne: 1e3\nf: =\n",
    "'...': 1\n'---': 2\n",
    "'include': a.yaml\nb: include\n",
    "a: $${SLUICE_X:-d ${SLUICE_X}\nb: $${SLUICE_X:-$${SLUICE_X} ${SLUICE_X}\n",
};

START_TEST(printed_tree_loads_the_same)
{
    struct conf_node *first;
    struct conf_node *second;
    struct buffer out = {0};
    struct buffer again = {0};

    setenv("SLUICE_X", "dollar ${SLUICE_X}", 1);
    first = conf_tree_parse(&arena, STR("t"), str_from(trees[_i]), &errors);
    if (!first) /* some cases are invalid */
        return;
    ck_assert_int_eq(conf_print_tree(first, &out), 0);
    errors.count = 0;
    errors.failed = false;
    second = conf_tree_parse(&arena, STR("t"), buffer_str(&out), &errors);
    ck_assert_msg(second && !errors.failed && equal_nodes(first, second), "%s\nprinted as\n" STR_FMT, trees[_i],
                  STR_ARG(buffer_str(&out)));
    ck_assert_int_eq(conf_print_tree(second, &again), 0);
    ck_assert(str_equal(buffer_str(&out), buffer_str(&again)));
    buffer_finish(&out);
    buffer_finish(&again);
}
END_TEST

START_TEST(tree_with_a_long_key_is_parsed_back)
{
    char text[3000];
    struct conf_node *first;
    struct conf_node *second;
    struct buffer out = {0};

    memset(text, 'k', sizeof(text));
    memcpy(text, "? ", 2);
    memcpy(text + sizeof(text) - 8, "\n: [1]\n", 8);
    first = conf_tree_parse(&arena, STR("t"), str_from(text), &errors);
    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(conf_print_tree(first, &out), 0);
    second = conf_tree_parse(&arena, STR("t"), buffer_str(&out), &errors);
    ck_assert(second && !errors.failed && equal_nodes(first, second));
    buffer_finish(&out);
}
END_TEST

START_TEST(tree_is_printed_as_block_yaml)
{
    static const char text[] = "a: {b: [1, {c: d, e: f}, []], g: 'x # y'}\nh:\n";
    static const char want[] = "a:\n  b:\n    - 1\n    - c: d\n      e: f\n    - []\n  g: 'x # y'\nh:\n";
    struct buffer out = {0};

    ck_assert_int_eq(conf_print_tree(conf_tree_parse(&arena, STR("t"), str_from(text), &errors), &out), 0);
    ck_assert_msg(str_equal(buffer_str(&out), str_from(want)), STR_FMT, STR_ARG(buffer_str(&out)));
    buffer_finish(&out);
}
END_TEST

static const struct {
    const char *name;
    int result;
    const char *text;
} helps[] = {
    {"keepalive_timeout", 0,
     "keepalive_timeout\n  How long an idle connection is kept.\n\n  where     http, server, location\n"
     "  value     a duration: 500ms, 30s, 1h30m\n  default   75s\n  inherits  inner scopes replace it\n"
     "  example   keepalive_timeout: 75s\n"},
    {"use", 0,
     "use\n  The backend.\n\n  where     events\n  value     one of auto, io_uring, epoll\n  default   auto\n"
     "  inherits  inner scopes replace it\n  example   use: auto\n"},
    {"listen", 0,
     "listen\n  Where to listen.\n\n  where     server\n  value     port [ssl], or a list of these\n"
     "  default   none\n  inherits  only where it is written\n  example   listen: [80, 443 ssl]\n"},
    {"server", 0,
     "server\n  A server: one mapping, or a list of them.\n\n  where     http\n"
     "  example   server: [{listen: 8080, server_name: a.test, root: www}]\n"},
    {"idle_time", 0,
     "idle_time\n  A deprecated duration.\n  Deprecated: use keepalive_timeout; version 2.0 rejects idle_time.\n\n"
     "  where     http, server, location\n  value     a duration: 500ms, 30s, 1h30m\n  default   none\n"
     "  inherits  inner scopes replace it\n  example   idle_time: ...\n"},
    {"lisen", -ENOENT, "no directive is named 'lisen'; did you mean listen?\n"},
    {"ssl", -ENOENT, "'ssl' is not supported by sluice: write it after the port: listen: 443 ssl\n"},
    {"header", -ENOENT,
     "no directive is named 'header'; did you mean add_header, client_header_buffer_size?\n"},
    {"zzzzzzzzzz", -ENOENT, "no directive is named 'zzzzzzzzzz'; sluice help lists all\n"},
};

START_TEST(help_of_a_directive_or_a_suggestion)
{
    struct buffer out = {0};

    ck_assert_int_eq(conf_print_help(&sample_schema, str_from(helps[_i].name), &out), helps[_i].result);
    ck_assert_msg(str_equal(buffer_str(&out), str_from(helps[_i].text)), "got\n" STR_FMT,
                  STR_ARG(buffer_str(&out)));
    buffer_finish(&out);
}
END_TEST

START_TEST(reference_has_all_directives)
{
    struct buffer out = {0};

    ck_assert_int_eq(conf_print_reference(&sample_schema, &out), 0);
    for (size_t slot = 0; slot < sample_schema.count; slot++) {
        const struct directive *directives = sample_schema.groups[slot]->directives;

        for (size_t i = 0; directives[i].name; i++) {
            struct str title =
                arena_printf(&arena, "\n### `%s`\n\n%s\n\n%s%s%sWhere: ", directives[i].name, directives[i].help,
                             directives[i].deprecated ? "Deprecated: " : "",
                             directives[i].deprecated ? directives[i].deprecated : "",
                             directives[i].deprecated ? ".\n\n" : "");

            ck_assert_msg(str_search(buffer_str(&out), title) > 0, "no %s", directives[i].name);
        }
    }
    ck_assert_int_gt(str_search(buffer_str(&out), STR("\n## Directives: ")), 0);
    ck_assert_int_gt(str_search(buffer_str(&out), STR("Value: `port [ssl]`, or a list of these")), 0);
    ck_assert_int_gt(str_search(buffer_str(&out), STR("```yaml\nkeepalive_timeout: 75s\n```\n")), 0);
    buffer_finish(&out);
}
END_TEST

START_TEST(unsupported_directives_are_listed)
{
    struct buffer out = {0};
    const char *hint;
    const char *name;

    ck_assert_int_eq(conf_print_unsupported(&out), 0);
    for (size_t i = 0; (name = vocabulary_unsupported(i, &hint)); i++)
        ck_assert_msg(str_search(buffer_str(&out), arena_printf(&arena, "| `%s` | %s |\n", name, hint)) > 0,
                      "no %s", name);
    buffer_finish(&out);
}
END_TEST

static struct str get_nothing(const void *subject, struct str parameter, struct arena *into)
{
    return (struct str){NULL, 0};
}

static const struct variable of_http[] = {
    {"host", false, get_nothing, .type = "text", .help = "The host."},
    {"arg_", true, get_nothing, .type = "text", .help = "A parameter."},
    {"status", false, get_nothing, .type = "number", .help = "Of the answer."},
};
static const struct variable of_stream[] = {
    {"status", false, get_nothing, .type = "number", .help = "Of the connection."},
    {"host", false, get_nothing, .type = "text", .help = "The host."},
};
static const struct variable_table http_table = {of_http, 3, NULL}, stream_table = {of_stream, 2, NULL};

static const struct {
    const char *name;
    int result;
    const char *text;
} variable_helps[] = {
    {"host", 0, "$host\n  The host.\n\n  where     http, stream\n  type      text\n"},
    {"arg_id", 0, "$arg_NAME\n  A parameter.\n\n  where     http\n  type      text\n"},
    {"status", 0,
     "$status\n  Of the answer.\n\n  where     http\n  type      number\n\n"
     "$status\n  Of the connection.\n\n  where     stream\n  type      number\n"},
    {"hots", -ENOENT, "no variable is named '$hots'; did you mean $host?\n"},
    {"zzzzzz", -ENOENT, "no variable is named '$zzzzzz'\n"},
};

START_TEST(help_of_a_variable_and_list_of_all)
{
    struct buffer out = {0};

    ck_assert_int_eq(
        conf_print_variable_help(&http_table, &stream_table, str_from(variable_helps[_i].name), &out),
        variable_helps[_i].result);
    ck_assert_msg(str_equal(buffer_str(&out), str_from(variable_helps[_i].text)), "got\n" STR_FMT,
                  STR_ARG(buffer_str(&out)));
    buffer_consume(&out, out.length);
    ck_assert_int_eq(conf_print_variables(&http_table, &stream_table, &out), 0);
    ck_assert_int_gt(str_search(buffer_str(&out), STR("| `$arg_NAME` | text | A parameter. |\n| `$host` |")), 0);
    ck_assert_int_gt(str_search(buffer_str(&out), STR("## Variables of stream\n")), 0);
    buffer_finish(&out);
}
END_TEST

/* JSON is YAML, so the loader can check the brackets and quotes of the schema. */
START_TEST(schema_is_valid_yaml)
{
    struct buffer out = {0};
    const struct conf_node *root;
    const struct conf_node *http;
    const struct conf_node *properties;

    ck_assert_int_eq(conf_print_json_schema(&sample_schema, &out), 0);
    root = conf_tree_parse(&arena, STR("schema"), buffer_str(&out), &errors);
    ck_assert_msg(root && !errors.failed, STR_FMT, STR_ARG(buffer_str(&out)));
    http = conf_map_get(conf_map_get(root, STR("definitions")), STR("http"));
    properties = conf_map_get(http, STR("properties"));
    ck_assert_ptr_nonnull(conf_map_get(properties, STR("sendfile")));
    ck_assert_ptr_null(conf_map_get(conf_map_get(properties, STR("sendfile")), STR("deprecated")));
    ck_assert_ptr_nonnull(conf_map_get(conf_map_get(properties, STR("idle_time")), STR("deprecated")));
    ck_assert_ptr_nonnull(conf_map_get(conf_map_get(properties, STR("idle_time")), STR("deprecationMessage")));
    ck_assert_ptr_nonnull(conf_map_get(properties, STR("server")));
    ck_assert_ptr_null(conf_map_get(properties, STR("location")));
    ck_assert_ptr_null(conf_map_get(conf_map_get(root, STR("definitions")), STR("stream")));
    buffer_finish(&out);
}
END_TEST

START_TEST(print_fails_in_a_full_buffer)
{
    for (size_t max = 1; max < 4000; max += 97) {
        struct buffer out = {.max = max};

        ck_assert_int_lt(conf_print_json_schema(&sample_schema, &out), 0);
        buffer_finish(&out);
        out = (struct buffer){.max = max};
        ck_assert_int_lt(conf_print_reference(&sample_schema, &out), 0);
        buffer_finish(&out);
    }
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof(table[0]))

int main(int count, char **arguments)
{
    Suite *suite = suite_create("print");
    TCase *tests = tcase_create("print");
    SRunner *runner = srunner_create(suite);
    int failed;

    if (count > 1 && strcmp(arguments[1], "--schema") == 0) {
        struct buffer out = {0};

        failed = conf_print_json_schema(&sample_schema, &out) < 0;
        fwrite(out.data, 1, out.length, stdout);
        buffer_finish(&out);
        return failed;
    }
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, printed_tree_loads_the_same, 0, COUNT(trees));
    tcase_add_test(tests, tree_with_a_long_key_is_parsed_back);
    tcase_add_test(tests, tree_is_printed_as_block_yaml);
    tcase_add_loop_test(tests, help_of_a_directive_or_a_suggestion, 0, COUNT(helps));
    tcase_add_test(tests, reference_has_all_directives);
    tcase_add_test(tests, unsupported_directives_are_listed);
    tcase_add_loop_test(tests, help_of_a_variable_and_list_of_all, 0, COUNT(variable_helps));
    tcase_add_test(tests, schema_is_valid_yaml);
    tcase_add_test(tests, print_fails_in_a_full_buffer);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
