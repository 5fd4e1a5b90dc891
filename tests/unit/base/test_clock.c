#include "base/clock.h"

#include <check.h>

START_TEST(moves_forward)
{
    struct clock first;
    struct clock second;

    clock_read(&first);
    clock_read(&second);
    ck_assert_uint_ge(second.monotonic_us, first.monotonic_us);
    ck_assert_uint_eq(first.monotonic_ms, first.monotonic_us / 1000);
    ck_assert_int_gt(clock_wall_s(&first), 1700000000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock");
    TCase *tests = tcase_create("clock");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tests, moves_forward);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
