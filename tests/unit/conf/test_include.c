/* Includes of real files in a temporary directory. */
#include "conf/conf_tree.h"

#include "../runner.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena arena;
static struct conf_errors errors;
static struct buffer diagnostics;
static char directory[] = "/tmp/sluice-include-XXXXXX";

static void set_up(void)
{
    strcpy(directory + sizeof(directory) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    arena_init(&arena, NULL, 0);
    errors = (struct conf_errors){.arena = &arena};
    buffer_init(&diagnostics, 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

static void tear_down(void)
{
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_reset(&arena);
    buffer_finish(&diagnostics);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static struct conf_node *load(const char *path)
{
    struct conf_node *root = conf_tree_load(&arena, str_from(path), &errors);

    ck_assert_int_eq(conf_errors_print(&errors, &diagnostics), 0);
    return root;
}

static struct conf_node *load_good(const char *path)
{
    struct conf_node *root = load(path);

    ck_assert_msg(root && !errors.failed, STR_FMT, STR_ARG(buffer_str(&diagnostics)));
    return root;
}

static void expect(const char *text)
{
    ck_assert_msg(str_equal(buffer_str(&diagnostics), str_from(text)), "got\n" STR_FMT "\nwanted\n%s",
                  STR_ARG(buffer_str(&diagnostics)), text);
}

static struct str value(const struct conf_node *map, const char *key)
{
    const struct conf_node *node = conf_map_get(map, str_from(key));

    return node && node->kind == CONF_SCALAR ? node->text : STR("(none)");
}

START_TEST(include_merges_in_place)
{
    const struct conf_node *root;
    const struct conf_node *http;

    mkdir("conf.d", 0700);
    write_file("a.yaml", "first: 1\ninclude: conf.d/*.yaml\nlast: 9\nhttp: {a: 1, list: [x]}\n");
    write_file("conf.d/10.yaml", "http:\n  b: 2\n  list: [y, z]\nmiddle: m\n");
    write_file("conf.d/20.yaml", "http: {c: {d: 4}}\n");
    write_file("conf.d/30.yaml", "http: {c: {e: 5}}\n");
    write_file("conf.d/ignored.txt", "first: 2\n");
    root = load_good("a.yaml");
    http = conf_map_get(root, STR("http"));
    ck_assert_uint_eq(root->count, 4);
    ck_assert(str_equal(root->pairs[1].key->text, STR("http")));
    ck_assert(str_equal(root->pairs[2].key->text, STR("middle")));
    ck_assert(str_equal(value(http, "a"), STR("1")) && str_equal(value(http, "b"), STR("2")));
    ck_assert_uint_eq(conf_map_get(http, STR("list"))->count, 3);
    ck_assert(str_equal(conf_map_get(http, STR("list"))->items[0]->text, STR("y")));
    ck_assert(str_equal(value(conf_map_get(http, STR("c")), "d"), STR("4")));
    ck_assert(str_equal(value(conf_map_get(http, STR("c")), "e"), STR("5")));
}
END_TEST

START_TEST(included_servers_are_appended)
{
    const struct conf_node *servers;

    write_file("a.yaml", "http:\n  include: [one.yaml, two.yaml]\n  server: {listen: 3}\n");
    write_file("one.yaml", "server: {listen: 1}\n");
    write_file("two.yaml", "server:\n- listen: 2\n");
    servers = conf_map_get(conf_map_get(load_good("a.yaml"), STR("http")), STR("server"));
    ck_assert_uint_eq(servers->kind, CONF_LIST);
    ck_assert_uint_eq(servers->count, 3);
    ck_assert(str_equal(value(servers->items[0], "listen"), STR("1")));
    ck_assert(str_equal(value(servers->items[2], "listen"), STR("3")));
}
END_TEST

START_TEST(include_tag_in_lists)
{
    const struct conf_node *root;

    write_file("a.yaml", "list:\n- a\n- !include more.yaml\n- !include one.yaml\nmap: !include one.yaml\n");
    write_file("more.yaml", "- b\n- c\n");
    write_file("one.yaml", "k: v\n");
    root = load_good("a.yaml");
    ck_assert_uint_eq(conf_map_get(root, STR("list"))->count, 4);
    ck_assert(str_equal(value(conf_map_get(root, STR("list"))->items[3], "k"), STR("v")));
    ck_assert(str_equal(value(conf_map_get(root, STR("map")), "k"), STR("v")));
}
END_TEST

START_TEST(path_is_relative_to_the_including_file)
{
    const struct conf_node *root;
    const struct conf_node *leaf;
    char want[64];

    mkdir("sub", 0700);
    mkdir("sub/deep", 0700);
    write_file("a.yaml", "include: sub/b.yaml\n");
    write_file("sub/b.yaml", "include: deep/*.yaml\n");
    write_file("sub/deep/c.yaml", "leaf: here\n");
    root = load_good("a.yaml");
    leaf = conf_map_get(root, STR("leaf"));
    snprintf(want, sizeof(want), "%s/sub/deep", directory);
    ck_assert(str_equal(leaf->mark.file->directory, str_from(want)));
    ck_assert(str_equal(leaf->mark.file->path, STR("sub/deep/c.yaml")));
    ck_assert(str_equal(leaf->mark.file->included_at.file->path, STR("sub/b.yaml")));
    snprintf(want, sizeof(want), "%s/a.yaml", directory);
    leaf = conf_map_get(load_good(want), STR("leaf"));
    ck_assert(str_starts(leaf->mark.file->path, str_from(directory)));
}
END_TEST

START_TEST(pattern_without_match_includes_nothing)
{
    const struct conf_node *root;

    write_file("a.yaml", "a: 1\ninclude: [none/*.yaml, empty.yaml]\n");
    write_file("empty.yaml", "# nothing\n");
    root = load_good("a.yaml");
    ck_assert_uint_eq(root->count, 1);
}
END_TEST

START_TEST(second_value_of_a_key_is_rejected)
{
    write_file("a.yaml", "root: /a\ninclude: b.yaml\n");
    write_file("b.yaml", "# a comment\nroot: /b\n");
    load("a.yaml");
    expect("b.yaml:2:1: error: 'root' is given here and in a.yaml:1\n"
           "    2 | root: /b\n"
           "      | ^\n"
           "      hint: keep one of them\n"
           "      included from a.yaml:2\n");
}
END_TEST

START_TEST(errors_name_the_included_file)
{
    write_file("a.yaml", "http:\n  include: b.yaml\n");
    write_file("b.yaml", "include: c.yaml\nname: *.example.com\n");
    write_file("c.yaml", "a 1\nb: 2\n");
    load("a.yaml");
    expect("b.yaml:2:7: error: a word that begins with * is taken for the name of an anchor\n"
           "    2 | name: *.example.com\n"
           "      |       ^\n"
           "      hint: quote it: '*.example.com'\n"
           "      included from a.yaml:2\n"
           "c.yaml:1:2: error: missing ':' after 'a'\n"
           "    1 | a 1\n"
           "      |  ^\n"
           "      hint: write a: 1\n"
           "      included from b.yaml:1\n"
           "      included from a.yaml:2\n");
}
END_TEST

START_TEST(file_that_includes_itself_is_rejected)
{
    write_file("a.yaml", "include: b.yaml\n");
    write_file("b.yaml", "include: ./a.yaml\nx: 1\n");
    load("a.yaml");
    expect("b.yaml:1:10: error: ./a.yaml includes itself\n"
           "    1 | include: ./a.yaml\n"
           "      |          ^\n"
           "      hint: delete this include\n"
           "      included from a.yaml:1\n");
}
END_TEST

START_TEST(missing_included_file_is_reported_at_its_line)
{
    write_file("a.yaml", "include: none.yaml\n");
    load("a.yaml");
    expect("a.yaml:1:10: error: cannot read none.yaml: No such file or directory\n"
           "    1 | include: none.yaml\n"
           "      |          ^\n"
           "      hint: a path is relative to the directory of the file that includes it\n");
}
END_TEST

START_TEST(directory_is_rejected)
{
    ck_assert_int_eq(mkfifo("pipe.yaml", 0600), 0);
    write_file("a.yaml", "include: [pipe.yaml, /dev/zero]\n");
    load("a.yaml");
    expect("a.yaml:1:11: error: cannot read pipe.yaml: it is not a regular file\n"
           "    1 | include: [pipe.yaml, /dev/zero]\n"
           "      |           ^\n"
           "a.yaml:1:22: error: cannot read /dev/zero: it is not a regular file\n"
           "    1 | include: [pipe.yaml, /dev/zero]\n"
           "      |                      ^\n");
}
END_TEST

START_TEST(included_file_must_be_a_mapping)
{
    write_file("a.yaml", "include: [b.yaml, {}]\nc:\n  include:\n");
    write_file("b.yaml", "- a\n");
    load("a.yaml");
    expect("a.yaml:1:11: error: b.yaml contains no mapping, as include: requires\n"
           "    1 | include: [b.yaml, {}]\n"
           "      |           ^\n"
           "      hint: include a list by '- !include FILE', as an item of a list\n"
           "a.yaml:1:19: error: include needs a file name, a pattern, or a list of them\n"
           "    1 | include: [b.yaml, {}]\n"
           "      |                   ^\n"
           "      hint: write include: conf.d/*.yaml\n"
           "a.yaml:3:3: error: include needs a file name, a pattern, or a list of them\n"
           "    3 |   include:\n"
           "      |   ^\n"
           "      hint: write include: conf.d/*.yaml\n");
}
END_TEST

/* In reading order, with repetitions, and also from a node of an included file. */
START_TEST(files_of_a_tree_are_listed)
{
    static const char *const paths[] = {"a.yaml", "b.yaml", "d.yaml", "c.yaml", "d.yaml"};
    const struct conf_node *root;
    const struct conf_file *file;

    write_file("a.yaml", "\xEF\xBB\xBFhttp: !include b.yaml\ninclude: c.yaml\n");
    write_file("b.yaml", "include: d.yaml\n");
    write_file("c.yaml", "x:\n  include: d.yaml\n");
    write_file("d.yaml", "y: 1\n");
    root = load_good("a.yaml");
    file = conf_tree_files(root);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++, file = file->next)
        ck_assert_msg(file && str_equal(file->path, str_from(paths[i])), "%s", paths[i]);
    ck_assert_ptr_null(file);
    file = conf_tree_files(conf_map_get(root, STR("http")));
    ck_assert(str_equal(file->path, STR("a.yaml")));
    ck_assert_uint_eq(file->bytes.length, file->text.length + 3);
    ck_assert(str_starts(file->bytes, STR("\xEF\xBB\xBFhttp:")) && str_starts(file->text, STR("http:")));
}
END_TEST

START_TEST(unreadable_main_file_is_reported)
{
    ck_assert_ptr_null(load("none.yaml"));
    ck_assert_ptr_null(load("/tmp"));
    expect("error: cannot read none.yaml: No such file or directory\n"
           "      hint: name another file: by -c, or after `lint` or `fmt`; `sluice serve DIRECTORY` needs none\n"
           "error: cannot read none.yaml: No such file or directory\n"
           "      hint: name another file: by -c, or after `lint` or `fmt`; `sluice serve DIRECTORY` needs none\n"
           "error: cannot read /tmp: Is a directory\n");
}
END_TEST

START_TEST(includes_above_the_limit_are_rejected)
{
    char name[32];

    mkdir("d", 0700);
    for (int i = 0; i < LIMIT_CONF_INCLUDES; i++) {
        snprintf(name, sizeof(name), "d/%04d.yaml", i);
        write_file(name, "");
    }
    write_file("a.yaml", "include: d/*.yaml\n");
    load("a.yaml");
    ck_assert(errors.failed);
    ck_assert_int_ge(str_search(buffer_str(&diagnostics), STR("more than 1000 files included")), 0);
}
END_TEST

START_TEST(file_above_the_limit_is_rejected)
{
    FILE *file = fopen("a.yaml", "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ftruncate(fileno(file), LIMIT_CONF_FILE + 1), 0);
    fclose(file);
    load("a.yaml");
    expect("error: cannot read a.yaml: it is larger than 16 MiB\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, include_merges_in_place);
    tcase_add_test(tcase, included_servers_are_appended);
    tcase_add_test(tcase, include_tag_in_lists);
    tcase_add_test(tcase, path_is_relative_to_the_including_file);
    tcase_add_test(tcase, pattern_without_match_includes_nothing);
    tcase_add_test(tcase, second_value_of_a_key_is_rejected);
    tcase_add_test(tcase, errors_name_the_included_file);
    tcase_add_test(tcase, file_that_includes_itself_is_rejected);
    tcase_add_test(tcase, missing_included_file_is_reported_at_its_line);
    tcase_add_test(tcase, directory_is_rejected);
    tcase_add_test(tcase, included_file_must_be_a_mapping);
    tcase_add_test(tcase, files_of_a_tree_are_listed);
    tcase_add_test(tcase, unreadable_main_file_is_reported);
    tcase_add_test(tcase, includes_above_the_limit_are_rejected);
    tcase_add_test(tcase, file_above_the_limit_is_rejected);
}

int main(void)
{
    return run_suite("include", add_tests);
}
