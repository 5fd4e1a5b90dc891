/* The messages that the master accepts from a worker, and the restart of a worker. */
#include "children.h"

#include "../runner.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

static void send_ready(const struct one_worker *made)
{
    ck_assert_int_eq(channel_send(made->worker_end, &(struct channel_message){.kind = CHANNEL_READY, .fd = -1}), 0);
}

static void read_messages(struct one_worker *made)
{
    child_read(&made->master, &made->generation, &made->child);
}

static void assert_killed(struct one_worker *made)
{
    ck_assert_int_eq(made->child.channel_fd, -1);
    ck_assert_int_eq(one_worker_end(made), SIGKILL);
    ck_assert_uint_eq(count_text(made->log, "sent a malformed message: it is killed"), 1);
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    one_worker_free(made);
}

START_TEST(ready_worker_is_kept)
{
    struct one_worker *made = one_worker_start(NULL);

    read_messages(made);
    ck_assert(!made->child.ready);
    made->master.clock.monotonic_ms += 500;
    send_ready(made);
    read_messages(made);
    ck_assert(made->child.ready && made->child.channel_fd >= 0 && made->log[0] == '\0');
    ck_assert_uint_eq(made->child.heartbeat_ms, 1000500);
    ck_assert_int_eq(one_worker_signal(made), 0);
    kill(made->child.pid, SIGUSR1);
    ck_assert_int_eq(one_worker_end(made), SIGUSR1);
    one_worker_free(made);
}
END_TEST

START_TEST(distant_deadline_is_a_long_wait)
{
    struct one_worker *made = one_worker_start(NULL);
    const uint64_t month_ms = (uint64_t)30 * 86400 * 1000; /* longer than INT_MAX */

    kill(made->child.pid, SIGKILL);
    ck_assert_int_eq(one_worker_end(made), SIGKILL);
    made->child.pid = 0;
    made->child.restart_ms = made->master.clock.monotonic_ms + month_ms;
    ck_assert_int_eq(children_next_ms(&made->master, &made->generation), INT_MAX);
    made->master.clock.monotonic_ms += month_ms - 5;
    ck_assert_int_eq(children_next_ms(&made->master, &made->generation), 5);
    made->master.clock.monotonic_ms += 6;
    ck_assert_int_eq(children_next_ms(&made->master, &made->generation), 0);
    made->child.restart_ms = 0;
    ck_assert_int_eq(children_next_ms(&made->master, &made->generation), -1);
    one_worker_free(made);
}
END_TEST

START_TEST(worker_that_reports_a_failure_exits_by_itself)
{
    struct one_worker *made = one_worker_start(NULL);

    ck_assert_int_eq(channel_send(made->worker_end, &(struct channel_message){.kind = CHANNEL_FAILED, .fd = -1}), 0);
    read_messages(made);
    ck_assert(!made->child.ready && made->child.channel_fd < 0 && made->log[0] == '\0');
    ck_assert_int_eq(one_worker_signal(made), 0);
    kill(made->child.pid, SIGUSR1);
    ck_assert_int_eq(one_worker_end(made), SIGUSR1);
    one_worker_free(made);
}
END_TEST

/* A message of each form that no worker sends. */
static const struct {
    enum channel_kind kind;         /* CHANNEL_KINDS: bytes that are no message */
    bool has_fd;
} malformed[] = {
    {CHANNEL_KINDS, false}, {CHANNEL_KINDS, true}, {CHANNEL_READY, true}, {CHANNEL_STOP, false},
    {CHANNEL_LISTEN, true}, {CHANNEL_LISTEN, false},
};

START_TEST(worker_that_sends_a_malformed_message_is_killed)
{
    struct one_worker *made = one_worker_start(NULL);
    struct channel_message message = {.kind = malformed[_i].kind, .fd = malformed[_i].has_fd ? made->worker_end : -1};
    enum { PASS_RIGHTS = 83 };
    int lowest = dup(0);

    close(lowest);
    /* As kernels before Linux 6.16, which do not refuse descriptors. */
    (void)setsockopt(made->child.channel_fd, SOL_SOCKET, PASS_RIGHTS, &(int){1}, sizeof(int));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(channel_send(made->worker_end, &message), 0);
    read_messages(made);
    ck_assert_int_eq(fcntl(lowest, F_GETFD), -1); /* a received descriptor is closed */
    assert_killed(made);
}
END_TEST

static void flood(int channel_fd)
{
    const struct channel_message message = {.kind = CHANNEL_READY, .fd = -1};

    for (;;) {
        if (channel_send(channel_fd, &message) < 0)
            usleep(1);
    }
}

/* Each message is valid by itself. */
START_TEST(worker_that_floods_its_channel_is_killed)
{
    struct one_worker *made = one_worker_start(flood);

    while (made->child.channel_fd >= 0)
        read_messages(made);
    assert_killed(made);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("children");
    TCase *all = tcase_create("all");
    SRunner *runner;

    tcase_set_timeout(all, 60);
    tcase_add_test(all, ready_worker_is_kept);
    tcase_add_test(all, distant_deadline_is_a_long_wait);
    tcase_add_test(all, worker_that_reports_a_failure_exits_by_itself);
    tcase_add_loop_test(all, worker_that_sends_a_malformed_message_is_killed, 0,
                        sizeof(malformed) / sizeof(malformed[0]));
    tcase_add_test(all, worker_that_floods_its_channel_is_killed);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
