/*
 * The shipped configurations load: the default one, the examples, and the example of every directive in the tables of
 * this build.
 */
#include "site/capture.h"
#include "site/configuration.h"
#include "site/subjects.h"
#include "upstream/upstream.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>

static const char *directory;
static bool partial; /* some modules are left out of this build */

static size_t occurrences(struct str text, struct str of)
{
    size_t count = 0;

    for (ssize_t at = str_search(text, of); at >= 0; at = str_search(text, of)) {
        text = str_skip(text, (size_t)at + of.length);
        count++;
    }
    return count;
}

/* The loader rejects a directive or variable of an absent module by name. Further errors may result from this. */
static bool refused_for_modules(struct str result)
{
    static const char *const rejections[] = {": error: unknown directive '", ": error: unknown variable $",
                                           "' is not in this build of sluice\n",
                                           "hint: it is allowed in stream", /* stream has the same names */
                                           "hint: it is allowed in a server of stream\n"};
    size_t rejected = 0;

    for (size_t i = 0; i < sizeof(rejections) / sizeof(rejections[0]); i++)
        rejected += occurrences(result, str_from(rejections[i]));
    return partial && rejected > 0;
}

static void load_good(const char *path)
{
    struct configuration_source source = {.path = str_from(path), .test_only = true};
    struct log log = {0};
    struct buffer result = {0};
    struct configuration *configuration = configuration_load(&source, &log, &result);

    ck_assert_msg(configuration ? result.length == 0 : refused_for_modules(buffer_str(&result)), "%s:\n" STR_FMT, path,
                  STR_ARG(buffer_str(&result)));
    if (configuration)
        ck_assert_uint_gt(configuration->server_count, 0);
    configuration_destroy(configuration);
    buffer_finish(&result);
}

static void load_all(const char *pattern, size_t min)
{
    char path[4096];
    glob_t found;

    snprintf(path, sizeof(path), "%s/%s", directory, pattern);
    ck_assert_int_eq(glob(path, 0, NULL, &found), 0);
    ck_assert_uint_ge(found.gl_pathc, min);
    for (size_t i = 0; i < found.gl_pathc; i++)
        load_good(found.gl_pathv[i]);
    globfree(&found);
}

START_TEST(default_configuration_is_valid)
{
    load_all("sluice.yaml", 1);
}
END_TEST

START_TEST(each_example_file_is_valid)
{
    load_all("examples/*.yaml", 8);
}
END_TEST

static enum conf_scope first_scope(unsigned scopes)
{
    return (enum conf_scope)(scopes & -scopes);
}

static void example_reads(const struct directive *directive)
{
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};
    struct upstreams upstreams = {.arena = &arena};
    struct user_variables own = {0};
    struct caches caches = {0};
    struct limits limits = {0};
    struct conf_reader reader = {.arena = &arena,
                                 .errors = &errors,
                                 .user_variables = &own,
                                 .variables = &own.table,
                                 .upstreams = &upstreams,
                                 .caches = &caches,
                                 .limits = &limits,
                                 .test_only = true};
    struct conf_node *node;
    struct buffer result = {0};

    arena_init(&arena, NULL, 0);
    node = conf_tree_parse(&arena, str_from(directive->name), str_from(directive->example), &errors);
    if (node) {
        ck_assert_int_eq(user_variables_collect(&arena, node, variables_all(), &user_variables_of_exchanges, &own),
                         0);
        ck_assert_ptr_nonnull(conf_map_get(node, str_from(directive->name)));
        ck_assert_ptr_nonnull(conf_scope_read(&reader, configuration_schema(), first_scope(directive->scopes),
                                              node, NULL, NULL));
    }
    ck_assert_int_eq(conf_errors_print(&errors, &result), 0);
    ck_assert_msg((node && errors.count == 0) || refused_for_modules(buffer_str(&result)), "%s:\n" STR_FMT,
                  directive->example, STR_ARG(buffer_str(&result)));
    buffer_finish(&result);
    captures_finish(&own);
    arena_reset(&arena);
}

START_TEST(example_of_each_directive_is_valid)
{
    const struct conf_schema *schema = configuration_schema();
    size_t count = 0;

    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            ck_assert_msg(directives[i].help && *directives[i].help, "%s has no help", directives[i].name);
            ck_assert_msg(directives[i].example != NULL, "%s has no example", directives[i].name);
            example_reads(&directives[i]);
            count++;
        }
    }
    ck_assert_uint_gt(count, 40);
}
END_TEST

/* The schema of each custom directive is copied into the JSON Schema, so it must be JSON, and thus YAML. */
START_TEST(schema_of_each_directive_is_valid_yaml)
{
    const struct conf_schema *schema = configuration_schema();
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};

    arena_init(&arena, NULL, 0);
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            if (directives[i].schema)
                ck_assert_msg(
                    conf_tree_parse(&arena, STR("schema"), str_from(directives[i].schema), &errors) &&
                        !errors.failed,
                    "the schema of %s", directives[i].name);
        }
    }
    arena_reset(&arena);
}
END_TEST

int main(int count, char **arguments)
{
    Suite *suite = suite_create("shipped");
    TCase *tests = tcase_create("shipped");
    SRunner *runner = srunner_create(suite);
    int failed;

    directory = count > 1 ? arguments[1] : "conf";
    partial = count > 2;
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, default_configuration_is_valid);
    tcase_add_test(tests, each_example_file_is_valid);
    tcase_add_test(tests, example_of_each_directive_is_valid);
    tcase_add_test(tests, schema_of_each_directive_is_valid_yaml);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
