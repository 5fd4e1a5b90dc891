/* The main function that the tests of this folder share: a list of tests, run under a name. */
#ifndef TEST_HTTP_SUITE_H
#define TEST_HTTP_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    tcase_set_timeout(cases, 60);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A str against a string constant; the failure names both. */
#define ck_assert_text(actual, expected)                                                                     \
    do {                                                                                                     \
        struct str seen_ = (actual);                                                                         \
        struct str wanted_ = str_from(expected);                                                             \
        ck_assert_msg(str_equal(seen_, wanted_), "\"" STR_FMT "\" instead of \"" STR_FMT "\"",               \
                      STR_ARG(seen_), STR_ARG(wanted_));                                                     \
    } while (0)

#endif
