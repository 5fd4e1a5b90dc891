/*
 * Every message of the loader and of the reader of scopes, exactly as it is printed. broken.cases has the sources and
 * their output.
 */
#include "sample.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define CASES_MAX 300

static struct test_case {
    struct str name;
    struct str source;
    struct str expected;
} cases[CASES_MAX];
static size_t case_count;
static struct buffer cases_text;

/* "=== name", the source, "~~~", the output; up to the next "=== ". Both texts keep their line ends. */
static void cases_parse(struct str text)
{
    ssize_t at = str_starts(text, STR("=== ")) ? 0 : str_search(text, STR("\n=== ")) + 1;

    while (at >= 0 && case_count < CASES_MAX) {
        struct str rest = str_skip(text, (size_t)at + 4);
        ssize_t next = str_search(rest, STR("\n=== "));
        struct str body = str_slice(rest, 0, next < 0 ? rest.length : (size_t)next + 1);
        struct test_case *one = &cases[case_count++];
        ssize_t divider;

        one->name = str_cut(&body, '\n');
        divider = str_starts(body, STR("~~~\n")) ? 0 : str_search(body, STR("\n~~~\n")) + 1;
        one->source = str_slice(body, 0, (size_t)divider);
        one->expected = str_skip(body, (size_t)divider + 4);
        text = str_skip(rest, next < 0 ? rest.length : (size_t)next + 1);
        at = next < 0 ? -1 : 0;
    }
}

static void cases_load(const char *path)
{
    FILE *file = fopen(path, "r");
    char piece[4096];
    size_t got;

    if (!file) {
        perror(path);
        exit(1);
    }
    while ((got = fread(piece, 1, sizeof(piece), file)) > 0) {
        if (buffer_append(&cases_text, str_of(piece, got)) < 0)
            exit(1);
    }
    fclose(file);
    cases_parse(buffer_str(&cases_text));
}

static void diagnose(struct str source, struct buffer *out)
{
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};
    struct conf_reader reader = {.arena = &arena, .errors = &errors, .variables = &sample_variables};
    struct sample_values values;
    struct conf_node *root;

    arena_init(&arena, NULL, 0);
    root = conf_tree_parse(&arena, STR("t.yaml"), source, &errors);
    if (root)
        sample_walk(&reader, root, &values);
    if (conf_errors_print(&errors, out) < 0)
        abort();
    arena_reset(&arena);
}

START_TEST(each_case_prints_its_output)
{
    struct buffer out = {0};
    struct str name = cases[_i].name;

    setenv("SLUICE_TEXT", "from the environment", 1);
    unsetenv("SLUICE_UNSET");
    diagnose(cases[_i].source, &out);
    ck_assert_msg(str_equal(buffer_str(&out), cases[_i].expected),
                  STR_FMT ":\n" STR_FMT "\nwanted:\n" STR_FMT, STR_ARG(name), STR_ARG(buffer_str(&out)),
                  STR_ARG(cases[_i].expected));
    buffer_finish(&out);
}
END_TEST

/* Prints the cases with the present output, to be reviewed and stored in broken.cases. */
static int rewrite(void)
{
    for (size_t i = 0; i < case_count; i++) {
        struct buffer out = {0};

        setenv("SLUICE_TEXT", "from the environment", 1);
        diagnose(cases[i].source, &out);
        printf("=== " STR_FMT "\n" STR_FMT "~~~\n" STR_FMT, STR_ARG(cases[i].name), STR_ARG(cases[i].source),
               STR_ARG(buffer_str(&out)));
        buffer_finish(&out);
    }
    return 0;
}

START_TEST(file_has_at_least_60_cases)
{
    ck_assert_uint_ge(case_count, 60);
}
END_TEST

int main(int count, char **arguments)
{
    Suite *suite = suite_create("diagnostics");
    TCase *tests = tcase_create("diagnostics");
    SRunner *runner = srunner_create(suite);
    int failed;

    cases_load(count > 1 ? arguments[1] : "broken.cases");
    if (count > 2 && strcmp(arguments[2], "--rewrite") == 0)
        return rewrite();
    tcase_add_test(tests, file_has_at_least_60_cases);
    tcase_add_loop_test(tests, each_case_prints_its_output, 0, (int)case_count);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    buffer_finish(&cases_text);
    return failed != 0;
}
