/* The master forwards queries of workers for all workers: neither it nor another worker waits for a compromised one. */
#include "children.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

/* The end of a worker that is sent no signal. */
static void free_worker(struct one_worker *made)
{
    kill(made->child.pid, SIGUSR1);
    ck_assert_int_eq(one_worker_end(made), SIGUSR1);
    one_worker_free(made);
}

static struct one_worker *start_worker(const char *control)
{
    struct one_worker *made = one_worker_start(NULL);

    made->main.control.text = str_from(control);
    made->child.ready = true;
    return made;
}

static void send_query(const struct one_worker *made, uint32_t index, uint64_t number)
{
    const struct channel_message query = {.kind = CHANNEL_QUERY, .index = index, .fd = -1, .number = number};

    ck_assert_int_eq(channel_send(made->worker_end, &query), 0);
}

static void read_messages(struct one_worker *made)
{
    child_read(&made->master, &made->generation, &made->child);
}

/* Receives all messages, and closes their descriptors. Returns their number. */
static unsigned count_messages(int fd)
{
    struct channel_message message;
    unsigned count = 0;
    int result;

    while ((result = channel_receive(fd, &message)) == 1) {
        ck_assert_int_ge(message.fd, 0);
        close(message.fd);
        count++;
    }
    ck_assert_int_eq(result, -EAGAIN);
    return count;
}

static void assert_killed(struct one_worker *made)
{
    ck_assert_int_eq(made->child.channel_fd, -1);
    ck_assert_int_eq(one_worker_end(made), SIGKILL);
    ck_assert_uint_eq(count_text(made->log, "sent a malformed message: it is killed"), 1);
    one_worker_free(made);
}

START_TEST(query_is_forwarded_with_a_socket_pair)
{
    struct one_worker *made = start_worker("unix:/a");
    struct channel_message responses, query;
    int lowest = dup(0);
    char byte;

    close(lowest);
    send_query(made, 77, 123456789012345);
    read_messages(made);
    ck_assert_int_eq(fcntl(lowest, F_GETFD), -1); /* the master keeps neither end */
    ck_assert_int_eq(channel_receive(made->worker_end, &responses), 1);
    ck_assert_int_eq(channel_receive(made->worker_end, &query), 1);
    ck_assert_int_eq(responses.kind, CHANNEL_RESPONSES);
    ck_assert_uint_eq(responses.index, 77);
    ck_assert_uint_eq(responses.number, 1); /* the number of workers */
    ck_assert_int_eq(query.kind, CHANNEL_RESPOND);
    ck_assert_uint_eq(query.index, LIMIT_CONTROL_CONNECTIONS);
    ck_assert_uint_eq(query.number, 123456789012345);
    if (!has_passrights())
        report_skipped("descriptors in responses", "this kernel has no SO_PASSRIGHTS (Linux 6.16)");
    else
        ck_assert_int_eq(channel_send(query.fd, &(struct channel_message){.kind = CHANNEL_LISTEN, .fd = 0}), -EPERM);
    ck_assert_int_eq(send(query.fd, "x", 1, MSG_DONTWAIT), 1);
    ck_assert_int_eq(recv(responses.fd, &byte, 1, MSG_DONTWAIT), 1);
    ck_assert_int_eq(recv(responses.fd, &byte, 1, MSG_DONTWAIT), -1);
    close(query.fd);
    ck_assert_int_eq(recv(responses.fd, &byte, 1, MSG_DONTWAIT), 0); /* no other process has the other end */
    close(responses.fd);
    ck_assert_uint_eq(count_messages(made->worker_end), 0);
    ck_assert_str_eq(made->log, "");
    free_worker(made);
}
END_TEST

START_TEST(worker_without_control_socket_is_killed)
{
    struct one_worker *made = start_worker("");

    send_query(made, 1, 0);
    read_messages(made);
    assert_killed(made);
}
END_TEST

START_TEST(worker_that_is_not_ready_is_killed)
{
    struct one_worker *made = start_worker("unix:/a");

    made->child.ready = false;
    send_query(made, 1, 0);
    read_messages(made);
    assert_killed(made);
}
END_TEST

START_TEST(queries_above_the_rate_are_dropped)
{
    struct one_worker *made = start_worker("unix:/a");
    unsigned count = 0;

    for (unsigned i = 0; i < 10 * LIMIT_CONTROL_QUERIES; i++) {
        send_query(made, i, 0);
        read_messages(made);
        count += count_messages(made->worker_end);
    }
    ck_assert_uint_eq(count, 2 * 2 * LIMIT_CONTROL_QUERIES); /* two messages for each */
    made->master.clock.monotonic_ms += LIMIT_CONTROL_PERIOD_MS;
    send_query(made, 1, 0);
    read_messages(made);
    ck_assert_uint_eq(count_messages(made->worker_end), 2);
    ck_assert_str_eq(made->log, "");
    free_worker(made);
}
END_TEST

START_TEST(worker_that_sends_far_too_many_is_killed)
{
    struct one_worker *made = start_worker("unix:/a");

    for (unsigned i = 0; i < LIMIT_CONTROL_FLOOD; i++) {
        send_query(made, i, 0);
        read_messages(made);
        count_messages(made->worker_end);
    }
    ck_assert_int_ge(made->child.channel_fd, 0);
    send_query(made, 0, 0);
    read_messages(made);
    assert_killed(made);
}
END_TEST

/* Nothing is queued for a worker that does not read; few descriptors are in flight, and the master keeps none. */
START_TEST(worker_that_does_not_read)
{
    struct one_worker *made = start_worker("unix:/a");
    unsigned unread;
    int lowest;

    for (unsigned i = 0; i < 1000; i++) {
        made->master.clock.monotonic_ms += LIMIT_CONTROL_PERIOD_MS;
        send_query(made, i, 0);
        read_messages(made);
    }
    lowest = dup(0);
    close(lowest);
    ck_assert_int_lt(lowest, 32);
    ck_assert(list_empty(&made->child.queued));
    ck_assert_int_ge(made->child.channel_fd, 0);
    unread = count_messages(made->worker_end);
    ck_assert(unread > 2 && unread < 100);
    send_query(made, 1, 0);
    read_messages(made);
    ck_assert_uint_eq(count_messages(made->worker_end), 2);
    free_worker(made);
}
END_TEST

/* Workers of all generations get a query; those that start, hang or have queued messages do not. */
START_TEST(only_workers_that_can_respond_get_the_query)
{
    struct one_worker *made = start_worker("unix:/a");
    struct child children[4] = {
        {.pid = 1}, {.pid = 1, .ready = true, .kill_ms = 1}, {.pid = 1, .ready = true}, {.pid = 0}};
    struct generation former = {.configuration = &made->configuration, .children = children, .child_count = 4};
    int ends[4];

    for (unsigned i = 0; i < 4; i++) {
        list_init(&children[i].queued);
        ck_assert_int_eq(channel_open(&children[i].channel_fd, &ends[i]), 0);
    }
    list_push(&made->master.generations, &former.link);
    send_query(made, 1, 5);
    read_messages(made);
    ck_assert_uint_eq(count_messages(made->worker_end), 2);
    ck_assert_uint_eq(count_messages(ends[0]), 0);
    ck_assert_uint_eq(count_messages(ends[1]), 0);
    ck_assert_uint_eq(count_messages(ends[2]), 1);
    ck_assert_uint_eq(count_messages(ends[3]), 0);
    for (unsigned i = 0; i < 4; i++) {
        child_channel_close(&children[i]);
        close(ends[i]);
    }
    list_remove(&former.link);
    free_worker(made);
}
END_TEST

int main(void)
{
    return run_tests("master_queries", (const TTest *const[]){
            query_is_forwarded_with_a_socket_pair, worker_without_control_socket_is_killed,
            worker_that_is_not_ready_is_killed, queries_above_the_rate_are_dropped,
            worker_that_sends_far_too_many_is_killed, worker_that_does_not_read,
            only_workers_that_can_respond_get_the_query, NULL});
}
