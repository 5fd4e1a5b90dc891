#include "acme/acme_status.h"

#include "../runner.h"

#include <sys/wait.h>
#include <unistd.h>

START_TEST(another_process_writes_a_status)
{
    struct acme_zone *zone = acme_zone_open(2);
    struct acme_status status = {
        .not_after_s = 1, .next_s = 3, .failures = 4, .error = "cause", .window = 1};
    struct acme_status found;
    pid_t pid;

    ck_assert_ptr_nonnull(zone);
    pid = fork();
    if (pid == 0) {
        acme_status_set(zone, 1, &status);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(acme_status_get(zone, 1, &found));
    ck_assert(found.not_after_s == 1 && found.next_s == 3 && found.failures == 4);
    ck_assert_uint_eq(found.window, 1);
    ck_assert_str_eq(found.error, "cause");
    ck_assert(acme_status_get(zone, 0, &found));
    ck_assert(found.not_after_s == 0 && !*found.error);
    ck_assert(!acme_status_get(zone, 2, &found));
    acme_zone_close(zone);
}
END_TEST

START_TEST(an_error_always_ends)
{
    struct acme_zone *zone = acme_zone_open(1);
    struct acme_status status, found;

    memset(&status, 'x', sizeof(status));
    acme_status_set(zone, 0, &status);
    ck_assert(acme_status_get(zone, 0, &found));
    ck_assert_uint_eq(strlen(found.error), LIMIT_ACME_ERROR - 1);
    acme_zone_close(zone);
    acme_zone_close(NULL);
    ck_assert(!acme_status_get(NULL, 0, &found));
    ck_assert_ptr_null(acme_zone_open(SIZE_MAX / 16));
}
END_TEST

START_TEST(another_process_announces_a_renewal)
{
    struct acme_zone *zone = acme_zone_open(3);
    pid_t pid;

    ck_assert(!acme_zone_renewing(NULL));
    ck_assert(!acme_zone_renewing(zone));
    pid = fork();
    if (pid == 0) {
        acme_zone_set_renewing(zone, true);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(acme_zone_renewing(zone));
    acme_zone_set_renewing(zone, false);
    ck_assert(!acme_zone_renewing(zone));
    acme_zone_close(zone);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {another_process_writes_a_status, an_error_always_ends,
                                  another_process_announces_a_renewal, NULL};

    return run_tests("acme_status", tests);
}
