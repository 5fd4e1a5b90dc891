/* The messages that the master accepts from a worker. */
#include "children.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
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
    int lowest = dup(0);

    close(lowest);
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

/* Two workers: number 1 has two endpoints with two sockets each, and number 0 accepts from them while 1 is down. */
struct two_workers {
    struct one_worker *made;
    struct child children[2];
    int fds[2 * 4];
    int worker_end;                 /* of the channel of number 1 */
};

static void two_workers_start(struct two_workers *two)
{
    struct generation *generation;

    *two = (struct two_workers){.made = one_worker_start(NULL)};
    generation = &two->made->generation;
    two->children[0] = two->made->child;
    two->children[0].ready = true;
    two->children[1] = (struct child){.acceptor = -1, .pid = two->made->child.pid};
    for (size_t i = 0; i < 2; i++)
        list_init(&two->children[i].queued);
    for (size_t i = 0; i < 8; i++)
        two->fds[i] = dup(0);
    ck_assert_int_eq(channel_open(&two->children[1].channel_fd, &two->worker_end), 0);
    generation->children = two->children;
    generation->child_count = 2;
    generation->sockets = (struct sockets){.fds = two->fds, .endpoints = 2, .workers = 2, .slots = 4};
}

/* Number 1 exits, and its replacement becomes ready. */
static void replace_second(struct two_workers *two)
{
    child_reassign_sockets(&two->made->master, &two->made->generation, 1);
    ck_assert_int_eq(two->children[1].acceptor, 0);
    two->children[1].ready = false;
    ck_assert_int_eq(channel_send(two->worker_end, &(struct channel_message){.kind = CHANNEL_READY, .fd = -1}), 0);
    child_read(&two->made->master, &two->made->generation, &two->children[1]);
    ck_assert_int_eq(two->children[1].acceptor, -1);
}

static void two_workers_free(struct two_workers *two)
{
    child_channel_close(&two->children[0]);
    child_channel_close(&two->children[1]);
    for (size_t i = 0; i < 8; i++)
        close(two->fds[i]);
    close(two->worker_end);
    two->made->child.channel_fd = -1;
    list_init(&two->made->child.queued);
    kill(two->made->child.pid, SIGKILL);
    ck_assert_int_eq(one_worker_end(two->made), SIGKILL);
    ck_assert_str_eq(two->made->log, "");
    one_worker_free(two->made);
}

static size_t queue_length(const struct child *child)
{
    size_t count = 0;

    for (const struct list *link = child->queued.next; link != &child->queued; link = link->next)
        count++;
    return count;
}

/* Reads all messages of number 0. Returns the number of sockets from which it accepts for number 1 afterwards. */
static int borrowed_sockets(struct two_workers *two)
{
    struct channel_message message;
    int count = 0, result;
    bool more;

    do {
        child_write(&two->made->master, &two->children[0]);
        more = queue_length(&two->children[0]) > 0;
        while ((result = channel_receive(two->made->worker_end, &message)) == 1) {
            count = message.kind == CHANNEL_UNLISTEN ? 0 : count + 1;
            if (message.fd >= 0)
                close(message.fd);
        }
        ck_assert_int_eq(result, -EAGAIN);
    } while (more);
    return count;
}

START_TEST(queue_of_a_worker_that_does_not_read_is_bounded)
{
    struct two_workers two;

    two_workers_start(&two);
    for (int i = 0; i < 5000; i++) {
        replace_second(&two);
        ck_assert_uint_le(queue_length(&two.children[0]), 5);
    }
    ck_assert_uint_gt(queue_length(&two.children[0]), 0); /* the channel is full */
    child_reassign_sockets(&two.made->master, &two.made->generation, 1);
    ck_assert_uint_eq(queue_length(&two.children[0]), 5); /* CHANNEL_UNLISTEN, and one for each socket */
    ck_assert_int_eq(borrowed_sockets(&two), 4);
    replace_second(&two);
    ck_assert_int_eq(borrowed_sockets(&two), 0);
    two_workers_free(&two);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("children");
    TCase *all = tcase_create("all");
    SRunner *runner;

    tcase_set_timeout(all, 60);
    tcase_add_test(all, ready_worker_is_kept);
    tcase_add_test(all, worker_that_reports_a_failure_exits_by_itself);
    tcase_add_loop_test(all, worker_that_sends_a_malformed_message_is_killed, 0,
                        sizeof(malformed) / sizeof(malformed[0]));
    tcase_add_test(all, worker_that_floods_its_channel_is_killed);
    tcase_add_test(all, queue_of_a_worker_that_does_not_read_is_bounded);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
