/* The times after which the master kills a worker without heartbeats, by a clock that the test sets. */
#include "children.h"

#include "../runner.h"

#include <sys/ptrace.h>

/* Passes `ms` in steps of the check interval. */
static void advance_clock(struct one_worker *made, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += 250) {
        made->master.clock.monotonic_ms += 250;
        heartbeats_check(&made->master);
    }
}

static void kill_worker(struct one_worker *made)
{
    kill(made->child.pid, SIGKILL);
    one_worker_free(made);
}

static const enum phase watched[] = {PHASE_STARTING, PHASE_RUNNING, PHASE_QUITTING};

START_TEST(worker_that_does_not_become_ready_is_killed)
{
    struct one_worker *made = one_worker_start(NULL);

    made->generation.phase = watched[_i];
    advance_clock(made, 5750);
    ck_assert_msg(made->log[0] == '\0', "%s", made->log);
    advance_clock(made, 250);
    ck_assert_uint_eq(
        count_text(made->log, "has not become ready for 6000 ms (6 times worker_heartbeat_timeout): it is killed"), 1);
    ck_assert_int_eq(count_text(made->log, "killed and replaced") == 1, watched[_i] == PHASE_RUNNING);
    ck_assert_int_eq(one_worker_end(made), SIGABRT);
    one_worker_free(made);
}
END_TEST

START_TEST(ready_worker_is_killed_after_the_timeout)
{
    struct one_worker *made = one_worker_start(NULL);

    made->generation.phase = watched[_i];
    made->child.ready = true;
    for (int i = 0; i < 10; i++) {
        made->master.shared->workers[0].heartbeat++;
        advance_clock(made, 750);
    }
    ck_assert_msg(made->log[0] == '\0', "%s", made->log);
    advance_clock(made, 500);
    ck_assert_uint_eq(
        count_text(made->log, "has not run its event loop for 1000 ms (worker_heartbeat_timeout): it is killed"), 1);
    ck_assert_int_eq(one_worker_end(made), SIGABRT);
    one_worker_free(made);
}
END_TEST

START_TEST(worker_that_ignores_the_first_signal_is_killed_by_the_second)
{
    struct one_worker *made = one_worker_start(NULL);

    made->child.ready = true;
    kill(made->child.pid, SIGSTOP);
    advance_clock(made, 1000);
    ck_assert_int_eq(one_worker_signal(made), 0);
    advance_clock(made, 1000);
    ck_assert_int_eq(one_worker_end(made), SIGKILL);
    one_worker_free(made);
}
END_TEST

/* The machine was suspended, or the master was stopped. */
START_TEST(time_in_which_the_master_did_not_run_does_not_count)
{
    struct one_worker *made = one_worker_start(NULL);

    made->child.ready = _i == 0;
    advance_clock(made, 500);
    made->master.clock.monotonic_ms += 3600000;
    heartbeats_check(&made->master);
    ck_assert_msg(made->log[0] == '\0', "%s", made->log);
    kill_worker(made);
}
END_TEST

START_TEST(off_checks_no_worker)
{
    struct one_worker *made = one_worker_start(NULL);

    made->main.worker_heartbeat_timeout_ms = 0;
    made->child.ready = _i == 0;
    advance_clock(made, 60000);
    ck_assert_int_eq(heartbeats_next_ms(&made->master), -1);
    ck_assert_msg(made->log[0] == '\0', "%s", made->log);
    kill_worker(made);
}
END_TEST

static void request_tracing(int channel_fd)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(1);
    raise(SIGSTOP);
}

/* This process traces the worker. */
START_TEST(traced_worker_is_kept)
{
    struct one_worker *made = one_worker_start(request_tracing);
    int status;

    made->child.ready = _i == 0;
    ck_assert_int_eq(waitpid(made->child.pid, &status, 0), made->child.pid);
    if (!WIFSTOPPED(status)) {
        one_worker_free(made);
        SKIP_TEST("ptrace is not permitted");
    }
    advance_clock(made, 60500);
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    ck_assert_ptr_nonnull(strstr(made->log, "traces it: it is not killed"));
    ck_assert_int_eq(ptrace(PTRACE_DETACH, made->child.pid, NULL, NULL), 0);
    advance_clock(made, made->child.ready ? 750 : 5750);
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    advance_clock(made, 250);
    ck_assert_uint_eq(count_text(made->log, "it is killed and replaced"), 1);
    ck_assert_int_eq(one_worker_end(made), SIGABRT);
    one_worker_free(made);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, worker_that_does_not_become_ready_is_killed, 0, 3);
    tcase_add_loop_test(tcase, ready_worker_is_killed_after_the_timeout, 0, 3);
    tcase_add_test(tcase, worker_that_ignores_the_first_signal_is_killed_by_the_second);
    tcase_add_loop_test(tcase, time_in_which_the_master_did_not_run_does_not_count, 0, 2);
    tcase_add_loop_test(tcase, off_checks_no_worker, 0, 2);
    tcase_add_loop_test(tcase, traced_worker_is_kept, 0, 2);
}

int main(void)
{
    return run_suite("heartbeat", add_tests);
}
