#include "command/serve_acme.h"

#include "../runner.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tests run as any user: geteuid is replaced. */
static uid_t user = 1000;
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
    return user;
}

START_TEST(the_state_folder_is_that_of_the_user)
{
    char folder[] = "/tmp/sluice-serve-XXXXXX", path[PATH_MAX], expected[PATH_MAX];
    struct stat state;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("HOME", folder, 1);
    unsetenv("XDG_STATE_HOME");
    ck_assert_int_eq(serve_acme_state(path), 0);
    snprintf(expected, sizeof(expected), "%s/.local/state/sluice/acme", folder);
    ck_assert_str_eq(path, expected);
    ck_assert_int_eq(access(path, F_OK), -1); /* the server creates it */
    snprintf(expected, sizeof(expected), "%s/.local/state/sluice", folder);
    ck_assert_int_eq(stat(expected, &state), 0);
    ck_assert_uint_eq(state.st_mode & 0777, 0700);
    ck_assert_int_eq(serve_acme_state(path), 0);
    setenv("XDG_STATE_HOME", folder, 1);
    ck_assert_int_eq(serve_acme_state(path), 0);
    snprintf(expected, sizeof(expected), "%s/sluice/acme", folder);
    ck_assert_str_eq(path, expected);
    snprintf(expected, sizeof(expected), "rm -r %s", folder);
    ck_assert_int_eq(system(expected), 0);
}
END_TEST

START_TEST(a_missing_folder_is_an_error)
{
    char path[PATH_MAX];

    setenv("XDG_STATE_HOME", "relative", 1);
    unsetenv("HOME");
    ck_assert_int_eq(serve_acme_state(path), -EINVAL);
    setenv("HOME", "/proc/none", 1);
    ck_assert_int_lt(serve_acme_state(path), 0);
}
END_TEST

START_TEST(names_are_checked)
{
    static const char *const bad[] = {"localhost", "", "*.example.org", "a_b.test", "a b.test",
                                      "a.test\n", "\"a.test", "${A}.test"};

    ck_assert_int_eq(serve_acme_check("example.org"), 0);
    ck_assert_int_eq(serve_acme_check("WWW.Example.org"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(serve_acme_check(bad[i]), -EINVAL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_state_folder_is_that_of_the_user, a_missing_folder_is_an_error, names_are_checked,
                                  NULL};

    return run_tests("serve_acme", tests);
}
