/* The main function of a unit test, and an assertion for loops. */
#ifndef TEST_RUNNER_H
#define TEST_RUNNER_H

#include "skip.h"

#include <check.h>
#include <stdlib.h>

/*
 * Asserts a condition in a loop with many thousand iterations. Each ck_assert makes a system call, this one only if it
 * fails.
 */
#define assert_in_loop(condition) ((condition) ? (void)0 : ck_abort_msg("Assertion '%s' failed", #condition))

/* Runs one test case with the name of its suite. Returns the exit status. */
static inline int run_test_case(const char *name, TCase *tcase)
{
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs the tests that `add_tests` adds, each for at most 20 s unless it sets another limit. Returns the exit status. */
static inline int run_suite(const char *name, void (*add_tests)(TCase *tcase))
{
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, 20);
    add_tests(tcase);
    return run_test_case(name, tcase);
}

/* Runs every test of a NULL-terminated table. Returns the exit status. */
static inline int run_tests(const char *name, const TTest *const *tests)
{
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, 30);
    for (; *tests; tests++)
        tcase_add_test(tcase, *tests);
    return run_test_case(name, tcase);
}

#endif
