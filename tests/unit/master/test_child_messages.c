/* The queue of messages to a worker whose channel is full. */
#include "children.h"

#include "../runner.h"

#include <errno.h>
#include <sys/resource.h>

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

enum { IN_FLIGHT = 30, MESSAGES = 100 };

/* The limit applies to users without CAP_SYS_RESOURCE and CAP_SYS_ADMIN. */
static void limit_descriptors(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(setuid(65534), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){IN_FLIGHT, IN_FLIGHT}), 0);
}

START_TEST(descriptors_in_flight_are_limited)
{
    struct one_worker *made = one_worker_start(NULL);
    struct channel_message message;
    int received = 0, result;

    limit_descriptors();
    for (uint32_t i = 0; i < MESSAGES; i++)
        child_send(&made->master, &made->generation, &made->child, CHANNEL_ERROR_LOG, 0, STDERR_FILENO);
    ck_assert(made->child.delayed && !list_empty(&made->child.queued));
    while ((result = channel_receive(made->worker_end, &message)) == 1) {
        close(message.fd);
        received++;
    }
    ck_assert_int_le(received, MESSAGES - 1);
    child_write(&made->master, &made->child);
    ck_assert(!made->child.delayed && list_empty(&made->child.queued));
    ck_assert_int_eq(channel_receive(made->worker_end, &message), 1);
    ck_assert_int_eq(message.kind, CHANNEL_ERROR_LOG);
    ck_assert_str_eq(made->log, "");
    one_worker_free(made);
}
END_TEST

/* Neither is a number free for the duplicate of its descriptor. */
START_TEST(message_that_cannot_be_queued_ends_the_delay)
{
    struct one_worker *made = one_worker_start(NULL);

    limit_descriptors();
    while (dup(STDERR_FILENO) >= 0)
        continue;
    for (uint32_t i = 0; i < MESSAGES && !made->child.delayed; i++)
        child_send(&made->master, &made->generation, &made->child, CHANNEL_ERROR_LOG, 0, STDERR_FILENO);
    ck_assert(made->child.delayed && list_empty(&made->child.queued));
    ck_assert_uint_eq(count_text(made->log, "sending to worker process"), 1);
    child_write(&made->master, &made->child);
    ck_assert(!made->child.delayed);
    one_worker_free(made);
}
END_TEST

int main(void)
{
    return run_tests("child_messages", (const TTest *const[]){queue_of_a_worker_that_does_not_read_is_bounded,
                                                             descriptors_in_flight_are_limited,
                                                             message_that_cannot_be_queued_ends_the_delay, NULL});
}
