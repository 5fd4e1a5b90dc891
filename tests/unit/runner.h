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

/* Runs every test of a NULL-terminated table. Returns the exit status. */
static inline int run_tests(const char *name, const TTest *const *tests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 30);
    for (; *tests; tests++)
        tcase_add_test(tcase, *tests);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
