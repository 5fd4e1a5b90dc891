#include "acme/acme_client.h"

#include "../runner.h"
#include "made.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static char logged[1 << 16];
static unsigned lost_signals;       /* that no process got */

int __real_kill(pid_t pid, int signal_number);
int __wrap_kill(pid_t pid, int signal_number);

int __wrap_kill(pid_t pid, int signal_number)
{
    int result = __real_kill(pid, signal_number);

    lost_signals += result < 0 && signal_number != 0;
    return result;
}

static void keep_line(void *owner, enum log_level level, struct str line)
{
    size_t length = strlen(logged);

    snprintf(logged + length, sizeof(logged) - length, STR_FMT, STR_ARG(line));
}

static struct log lines = {.level = LOG_INFO, .sink = keep_line};
static struct acme_events events;
static struct acme_run run;

/* A client of this text, which is found by PATH. */
static void set_up(const char *script)
{
    folder_make();
    logged[0] = '\0';
    file_write(path_of("client"), script, 0755);
    setenv("PATH", folder, 1);
    ck_assert_int_eq(acme_events_open(&events, -1), 0);
    run = (struct acme_run){.challenges = "/challenges", .challenge_type = "tls-alpn-01",
                             .home = folder, .timeout_ms = 20000, .events = &events};
    run.log = &lines;
    acme_run_add(&run, "client");
}

static void tear_down(void)
{
    acme_events_close(&events);
    setenv("PATH", "/usr/bin:/bin", 1);
    folder_remove();
}

START_TEST(client_gets_its_environment_and_returns_status_and_output)
{
    setenv("NOTIFY_SOCKET", "/run/x", 1);
    setenv("DNS_KEY", "kept", 1);
    set_up("#!/bin/sh\necho \"1: $1\"\n"
           "echo \"$SLUICE_ACME_CHALLENGES $SLUICE_ACME_CHALLENGE_TYPE "
           "${NOTIFY_SOCKET-none} $DNS_KEY $HOME\" >&2; umask\nexit 3\n");
    acme_run_add(&run, "one two");
    ck_assert_int_eq(acme_client_run(&run), 3);
    ck_assert_ptr_nonnull(strstr(run.output, "1: one two\n"));
    ck_assert_ptr_nonnull(strstr(run.output, "/challenges tls-alpn-01 none kept "));
    ck_assert_ptr_nonnull(strstr(run.output, folder));
    ck_assert_ptr_nonnull(strstr(run.output, "0077\n"));
    ck_assert_ptr_nonnull(strstr(logged, "acme: 1: one two"));
    tear_down();
}
END_TEST

START_TEST(open_files_are_not_passed_on)
{
    int fd;

    set_up("#!/bin/sh\n[ -e /proc/self/fd/77 ] && exit 1\nexit 0\n");
    fd = dup2(STDOUT_FILENO, 77);
    ck_assert_int_eq(fd, 77);
    ck_assert_int_eq(acme_client_run(&run), 0);
    close(fd);
    tear_down();
}
END_TEST

START_TEST(client_that_cannot_be_executed_is_reported)
{
    set_up("#!/bin/sh\n");
    run.arguments[0] = (char[]){"no-such-client"};
    ck_assert_int_eq(acme_client_run(&run), -ENOENT);
    run.arguments[0] = (char[]){"client"};
    ck_assert_int_eq(chmod(path_of("client"), 0644), 0);
    ck_assert_int_eq(acme_client_run(&run), -ENOENT);
    tear_down();
}
END_TEST

START_TEST(too_many_arguments_are_refused)
{
    set_up("#!/bin/sh\n");
    for (int i = 0; i < ACME_ARGUMENTS; i++)
        acme_run_add(&run, "x");
    ck_assert_int_eq(acme_client_run(&run), -E2BIG);
    tear_down();
}
END_TEST

/* The script writes the process id of its child to the file `child`. */
static void check_child_is_killed(const char *script)
{
    char text[64] = "";
    FILE *stream;

    set_up(script);
    run.timeout_ms = 1000;
    ck_assert_int_eq(acme_client_run(&run), -ETIMEDOUT);
    stream = fopen(path_of("child"), "re");
    ck_assert_ptr_nonnull(stream);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), stream));
    fclose(stream);
    for (int i = 0; i < 100 && kill(atoi(text), 0) == 0; i++) { /* until init has reaped it */
        char state[256] = "", path[64];

        snprintf(path, sizeof(path), "/proc/%d/stat", atoi(text));
        stream = fopen(path, "re");
        if (!stream || !fgets(state, sizeof(state), stream) || strstr(state, ") Z"))
            strcpy(text, "999999999");
        if (stream)
            fclose(stream);
        usleep(10000);
    }
    ck_assert_int_eq(kill(atoi(text), 0), -1);
    tear_down();
}

START_TEST(a_slow_client_is_killed_with_its_children)
{
    check_child_is_killed("#!/bin/sh\ntrap '' TERM\n/bin/sleep 600 & echo $! >child\nwait; wait; /bin/sleep 600\n");
}
END_TEST

START_TEST(a_child_that_ignores_the_signal_is_killed)
{
    check_child_is_killed("#!/bin/sh\n/bin/sh -c 'trap \"\" TERM; echo $$ >child; exec /bin/sleep 600' &\nwait\n");
}
END_TEST

/* The process ends when the hook is ready; the client ends at once on SIGTERM, and its hook after it. */
START_TEST(a_hook_has_time_to_remove_its_record)
{
    set_up("#!/bin/sh\n"
           "(trap 'while kill -0 $$; do /bin/sleep 0.01; done; echo >removed; exit' TERM\n"
           "kill -TERM $PPID; while :; do /bin/sleep 0.01; done) &\n"
           "exec /bin/sleep 600\n");
    ck_assert_int_eq(acme_client_run(&run), -EINTR);
    ck_assert_int_eq(access(path_of("removed"), F_OK), 0);
    tear_down();
}
END_TEST

START_TEST(death_by_a_signal_is_reported_as_such)
{
    set_up("#!/bin/sh\nkill -9 $$\n");
    ck_assert_int_eq(acme_client_run(&run), -ECHILD);
    tear_down();
}
END_TEST

/* Also a client that has just been forked gets the signal. */
START_TEST(the_end_of_the_process_ends_the_client)
{
    int ends[2];

    set_up("#!/bin/sh\nexec /bin/sleep 600\n");
    kill(getpid(), SIGTERM);
    lost_signals = 0;
    ck_assert_int_eq(acme_client_run(&run), -EINTR);
    ck_assert_uint_eq(lost_signals, 0);
    ck_assert(events.ending);
    acme_events_close(&events);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(acme_events_open(&events, ends[0]), 0);
    close(ends[1]);
    ck_assert_int_eq(acme_client_run(&run), -EINTR);
    close(ends[0]);
    tear_down();
}
END_TEST

START_TEST(the_end_of_a_long_output_is_kept)
{
    set_up("#!/bin/sh\ni=0\nwhile [ $i -lt 3000 ]; do echo \"line $i\"; i=$((i + 1)); done\n");
    ck_assert_int_eq(acme_client_run(&run), 0);
    ck_assert_uint_eq(run.length, LIMIT_ACME_OUTPUT - 1);
    ck_assert_uint_eq(strlen(run.output), run.length);
    ck_assert_str_eq(run.output + run.length - 10, "line 2999\n");
    tear_down();
}
END_TEST

static const struct {
    const char *output, *cause;
} causes[] = {
    {"", ""},
    {"\n\n", ""},
    {"one\ntwo\n", "two"},
    {"  \"detail\": \"no such name\",\nuacme: failed\n", "no such name"},
    {"\"detail\": \"first\"\n\"detail\": \"second\"\n}\n", "second"},
    {"\"detail\": \"a \\\"quoted\\\" word\"\n", "a \\\"quoted\\\" word"},
    {"\"detail\":\n", ""},
    {"\"detail\": \"\n", "\""},
    {"uacme: error\n{\n}\n", "uacme: error"},
};

START_TEST(each_failure_has_its_cause)
{
    char cause[64], little[8];

    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        run.length = strlen(causes[i].output);
        memcpy(run.output, causes[i].output, run.length + 1);
        acme_client_cause(&run, cause, sizeof(cause));
        ck_assert_str_eq(cause, causes[i].cause);
    }
    run.length = 20;
    memset(run.output, 'x', 20);
    acme_client_cause(&run, little, sizeof(little));
    ck_assert_str_eq(little, "xxxxxxx");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {client_gets_its_environment_and_returns_status_and_output,
                                         open_files_are_not_passed_on,
                                         client_that_cannot_be_executed_is_reported,
                                         too_many_arguments_are_refused,
                                         a_slow_client_is_killed_with_its_children,
                                         a_child_that_ignores_the_signal_is_killed,
                                         a_hook_has_time_to_remove_its_record,
                                         death_by_a_signal_is_reported_as_such,
                                         the_end_of_the_process_ends_the_client,
                                         the_end_of_a_long_output_is_kept,
                                         each_failure_has_its_cause,
                                         NULL};

    return run_tests("acme_client", tests);
}
