#include "master/privileges.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(user_and_group_are_found_by_name)
{
    struct identity identity;
    const char *missing;

    ck_assert_int_eq(identity_find(STR("root"), STR(""), &identity, &missing), 0);
    ck_assert_uint_eq(identity.user, 0);
    ck_assert_uint_eq(identity.group, 0);
    ck_assert_int_eq(identity_find(STR(""), STR("root"), &identity, &missing), 0);
    ck_assert_str_eq(identity.name, "nobody");
    ck_assert_uint_ne(identity.user, 0);
    ck_assert_uint_eq(identity.group, 0);
}
END_TEST

START_TEST(missing_users_are_reported)
{
    struct identity identity = {.user = 42};
    const char *missing;
    char longer[100];

    memset(longer, 'u', sizeof(longer));
    ck_assert_int_eq(identity_find(STR("no-such-user"), STR(""), &identity, &missing), -ENOENT);
    ck_assert_str_eq(missing, "user");
    ck_assert_int_eq(identity_find(STR("root"), STR("no-such-group"), &identity, &missing), -ENOENT);
    ck_assert_str_eq(missing, "group");
    ck_assert_int_eq(identity_find(str_of(longer, sizeof(longer)), STR(""), &identity, &missing), -ENOENT);
    ck_assert_int_eq(identity_find(STR("root"), str_of(longer, sizeof(longer)), &identity, &missing),
                     -ENOENT);
    ck_assert_uint_eq(identity.user, 42);
}
END_TEST

/* Checks the privileges of a child after it dropped them. Returns its exit status, 0 if all are gone. */
static int check_dropped_privileges(void)
{
    struct identity identity;
    const char *step;
    char line[256];
    FILE *status;
    int wrong = 0;

    if (identity_find(STR(""), STR(""), &identity, &step) < 0 || privileges_drop(&identity, &step) < 0)
        return 1;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 2;
    if (geteuid() == 0 || getuid() == 0 || getegid() == 0 || setuid(0) == 0)
        return 3;
    status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status)) {
        if ((strncmp(line, "CapEff:", 7) == 0 || strncmp(line, "CapPrm:", 7) == 0) &&
            strspn(line + 7, "\t 0\n") != strlen(line + 7))
            wrong = 4;
    }
    return status ? wrong : 5;
}

START_TEST(root_privileges_are_dropped)
{
    int status;
    pid_t child;

    if (geteuid() != 0)
        return;
    child = fork();
    if (child == 0)
        _exit(check_dropped_privileges());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(descriptor_limit_is_raised)
{
    struct rlimit limit;
    uint64_t now;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    now = privileges_raise_files();
    ck_assert_uint_eq(now, limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : limit.rlim_max);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        user_and_group_are_found_by_name, missing_users_are_reported, root_privileges_are_dropped,
        descriptor_limit_is_raised, NULL,
    };

    return run_tests("privileges", tests);
}
