#include "sandbox/sandbox.h"

#include "../runner.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char logged[1024];

static void keep_line(void *owner, enum log_level level, struct str line)
{
    size_t length = strlen(logged);

    snprintf(logged + length, sizeof(logged) - length, STR_FMT, STR_ARG(line));
}

static struct log test_log(void)
{
    logged[0] = '\0';
    return (struct log){.level = LOG_INFO, .sink = keep_line};
}

static int apply(unsigned parts, struct log *log)
{
    static uint64_t denied;

    return sandbox_apply(&(struct sandbox){.parts = parts, .denied_call = &denied}, log);
}

/* Runs `check` in a child process, since a sandbox is permanent. Returns its result. */
static int in_child(int (*check)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(check());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* True if a line of /proc/self/status contains only zeros. */
static bool all_zero(const char *name)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    bool zero = false;

    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, name, strlen(name)) == 0)
            zero = strspn(line + strlen(name), ":\t 0\n") == strlen(line + strlen(name));
    }
    if (status)
        fclose(status);
    return zero;
}

static int check_capabilities(void)
{
    struct log log = test_log();
    const unsigned parts = 1u << SANDBOX_CAPABILITIES;

    if (sandbox_begin(parts) != 0 || apply(parts, &log) != 0)
        return 1;
    if (!all_zero("CapPrm") || !all_zero("CapEff") || !all_zero("CapInh") || !all_zero("CapAmb"))
        return 2;
    if (geteuid() == 0 && !all_zero("CapBnd"))
        return 3;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 4;
    if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
        return 5;
    return strstr(logged, "sandbox: capabilities\n") ? 0 : 6;
}

START_TEST(capabilities_are_dropped)
{
    ck_assert_int_eq(in_child(check_capabilities), 0);
}
END_TEST

/* A master without root may have inheritable and ambient capabilities of its service manager. */
static int check_ambient(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};
    struct log log = test_log();

    if (syscall(SYS_capget, &head, sets) < 0)
        return 1;
    sets[0].inheritable = sets[0].permitted;
    if (syscall(SYS_capset, &head, sets) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) < 0 || all_zero("CapAmb"))
        return 2;
    if (apply(1u << SANDBOX_CAPABILITIES, &log) != 0)
        return 3;
    return all_zero("CapAmb") && all_zero("CapInh") && all_zero("CapEff") ? 0 : 4;
}

START_TEST(ambient_capabilities_are_dropped)
{
    if (geteuid() == 0)
        ck_assert_int_eq(in_child(check_ambient), 0);
}
END_TEST

static int check_no_dump(void)
{
    struct log log = test_log();
    const unsigned parts = 1u << SANDBOX_NO_DUMP;

    if (sandbox_begin(parts) != 0 || apply(parts, &log) != 0)
        return 1;
    if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 2;
    if (geteuid() == 0 && all_zero("CapEff"))
        return 3;
    return strstr(logged, "sandbox: no_dump\n") ? 0 : 4;
}

START_TEST(memory_is_not_dumped)
{
    ck_assert_int_eq(in_child(check_no_dump), 0);
}
END_TEST

static int check_off(void)
{
    struct log log = test_log();

    if (sandbox_begin(0) != 0 || apply(0, &log) != 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
        return 1;
    if (geteuid() == 0 && (all_zero("CapEff") || all_zero("CapBnd")))
        return 2;
    return strstr(logged, "sandbox: off\n") ? 0 : 3;
}

START_TEST(off_changes_nothing)
{
    ck_assert_int_eq(in_child(check_off), 0);
}
END_TEST

/* As a server within a container that drops CAP_SETPCAP. */
static int check_without_setpcap(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    struct log log = test_log();

    if (syscall(SYS_capset, &head, none) < 0)
        return 1;
    return sandbox_begin(SANDBOX_ALL) == 0 && apply(1u << SANDBOX_CAPABILITIES, &log) == 0 ? 0 : 2;
}

START_TEST(root_is_not_required)
{
    ck_assert_int_eq(in_child(check_without_setpcap), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        capabilities_are_dropped, ambient_capabilities_are_dropped, memory_is_not_dumped, off_changes_nothing,
        root_is_not_required, NULL,
    };

    return run_tests("sandbox", tests);
}
