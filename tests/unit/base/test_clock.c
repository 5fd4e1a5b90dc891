#include "base/clock.h"

#include "../runner.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(monotonic_time_does_not_go_back)
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

START_TEST(cpu_time_is_that_of_the_work)
{
    uint64_t start = clock_thread_cpu_ns();
    volatile unsigned work = 0;

    while (work < 1000000)
        work = work + 1;
    ck_assert_uint_gt(clock_thread_cpu_ns(), start + 1000);
}
END_TEST

START_TEST(cpu_time_of_a_process)
{
    uint64_t before = 0, after = 0;
    volatile unsigned work = 0;
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    ck_assert_int_eq(clock_pid_cpu_ns(getpid(), &before), 0);
    while (work < 1000000)
        work = work + 1;
    ck_assert_int_eq(clock_pid_cpu_ns(getpid(), &after), 0);
    ck_assert_uint_gt(after, before + 1000);
    ck_assert_int_eq(clock_pid_cpu_ns(child, &before), 0);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    before = 77;
    ck_assert_int_lt(clock_pid_cpu_ns(child, &before), 0);
    ck_assert_uint_eq(before, 77);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, monotonic_time_does_not_go_back);
    tcase_add_test(tcase, cpu_time_is_that_of_the_work);
    tcase_add_test(tcase, cpu_time_of_a_process);
}

int main(void)
{
    return run_suite("clock", add_tests);
}
