#include "master/privileges.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(finds_users)
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

START_TEST(says_what_is_missing)
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

/* What a child that dropped its privileges sees of itself, as an exit status. */
static int after_drop(void)
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

START_TEST(root_is_given_up)
{
    int status;
    pid_t child;

    if (geteuid() != 0)
        return;
    child = fork();
    if (child == 0)
        _exit(after_drop());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(files_are_raised_to_the_hard_limit)
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
    return run_tests("privileges", (const TTest *const[]){finds_users, says_what_is_missing, root_is_given_up,
                                                          files_are_raised_to_the_hard_limit, NULL});
}
