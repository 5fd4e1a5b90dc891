/* Shared by the tests of this folder: runs a list of tests under a name. */
#ifndef TEST_HTTP_SUITE_H
#define TEST_HTTP_SUITE_H

#include <check.h>
#include <stdlib.h>

/* A test that runs once for each row of a table; its row is _i. */
struct suite_loop {
    const TTest *test;
    int rows;
};

static inline int suite_run_loops(const char *name, const TTest *const *tests, size_t count,
                                  const struct suite_loop *loops, size_t loop_count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    for (size_t i = 0; i < loop_count; i++)
        tcase_add_loop_test(cases, loops[i].test, 0, loops[i].rows);
    tcase_set_timeout(cases, 60);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    return suite_run_loops(name, tests, count, NULL, 0);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Compares a str with a string constant; the failure message has both. */
#define ck_assert_text(actual, expected)                                                                     \
    do {                                                                                                     \
        struct str seen_ = (actual);                                                                         \
        struct str wanted_ = str_from(expected);                                                             \
        ck_assert_msg(str_equal(seen_, wanted_), "\"" STR_FMT "\" instead of \"" STR_FMT "\"",               \
                      STR_ARG(seen_), STR_ARG(wanted_));                                                     \
    } while (0)

#endif
