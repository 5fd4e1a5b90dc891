/* Requests of a worker that serves the control socket. */
#include "children.h"

#include "../runner.h"
#include "base/limits.h"

#include <errno.h>

static struct one_worker *start_serving(void)
{
    struct one_worker *made = one_worker_start(NULL);

    made->main.control.text = STR("unix:/run/control.sock");
    made->generation.log_level = LOG_INFO;
    made->child.ready = true;
    return made;
}

static void send_request(const struct one_worker *made, enum channel_kind kind, uint32_t index)
{
    const struct channel_message message = {.kind = kind, .index = index, .fd = -1};

    ck_assert_int_eq(channel_send(made->worker_end, &message), 0);
}

static void read_requests(struct one_worker *made)
{
    child_read(&made->master, &made->generation, &made->child);
}

static void expect_message(const struct one_worker *made, enum channel_kind kind, uint32_t index)
{
    struct channel_message got;

    ck_assert_int_eq(channel_receive(made->worker_end, &got), 1);
    ck_assert_int_eq(got.kind, kind);
    ck_assert_uint_eq(got.index, index);
}

static void expect_no_message(const struct one_worker *made)
{
    struct channel_message got;

    ck_assert_int_eq(channel_receive(made->worker_end, &got), -EAGAIN);
}

static void end_worker(struct one_worker *made)
{
    ck_assert_int_ge(made->child.channel_fd, 0);
    kill(made->child.pid, SIGKILL);
    ck_assert_int_eq(one_worker_end(made), SIGKILL);
    one_worker_free(made);
}

static void request_level(struct one_worker *made, enum log_level level)
{
    send_request(made, CHANNEL_LOG_LEVEL, level);
    read_requests(made);
    ck_assert_int_eq(made->master.error_log.log.level, level);
    ck_assert_int_eq(made->generation.log_level, level);
    expect_message(made, CHANNEL_LOG_LEVEL, level);
    expect_message(made, CHANNEL_DONE, made->child.requests);
    expect_no_message(made);
}

START_TEST(level_changes_everywhere)
{
    struct one_worker *made = start_serving();
    struct configuration *configuration = made->generation.configuration;
    struct generation ending = {.configuration = configuration, .log_level = LOG_EMERG};

    list_push(&made->master.generations, &ending.link);
    request_level(made, LOG_DEBUG);
    ck_assert_int_eq(ending.log_level, LOG_DEBUG);
    ck_assert(strstr(made->log, "[notice]") &&
              strstr(made->log, "control: the error log has the level debug, before: info\n"));
    made->master.clock.monotonic_ms += LIMIT_LOG_INTERVAL_MS;
    request_level(made, LOG_EMERG);
    ck_assert(strstr(made->log, "control: the error log has the level emerg, before: debug\n"));
    ck_assert_uint_eq(count_text(made->log, "\n"), 2);
    ck_assert_uint_eq(made->child.requests, 2);
    list_remove(&ending.link);
    end_worker(made);
}
END_TEST

/* The lines of changes within a second are replaced by one, with the last level. */
START_TEST(level_changes_are_logged_once_per_second)
{
    struct one_worker *made = start_serving();

    ck_assert_int_eq(master_control_next_ms(&made->master), -1);
    request_level(made, LOG_DEBUG);
    for (int i = 0; i < 50; i++)
        request_level(made, i % 2 ? LOG_ERROR : LOG_WARN);
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    ck_assert_int_eq(master_control_next_ms(&made->master), LIMIT_LOG_INTERVAL_MS);
    made->master.clock.monotonic_ms += LIMIT_LOG_INTERVAL_MS - 1;
    master_control_check(&made->master);
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    ck_assert_int_eq(master_control_next_ms(&made->master), 1);
    made->master.clock.monotonic_ms++;
    master_control_check(&made->master);
    ck_assert(strstr(made->log, "control: the error log has the level error, before: debug\n"));
    ck_assert_uint_eq(count_text(made->log, "\n"), 2);
    ck_assert_int_eq(made->master.error_log.log.level, LOG_ERROR);
    ck_assert_int_eq(master_control_next_ms(&made->master), -1);
    request_level(made, LOG_DEBUG);
    made->master.error_log.log.level = LOG_INFO; /* a reload */
    made->master.clock.monotonic_ms += LIMIT_LOG_INTERVAL_MS;
    master_control_check(&made->master);
    ck_assert_uint_eq(count_text(made->log, "\n"), 2);
    ck_assert_int_eq(master_control_next_ms(&made->master), -1);
    end_worker(made);
}
END_TEST

START_TEST(same_level_is_not_logged)
{
    struct one_worker *made = start_serving();

    request_level(made, LOG_INFO);
    ck_assert_str_eq(made->log, "");
    end_worker(made);
}
END_TEST

START_TEST(ticket_key_is_replaced)
{
    struct one_worker *made = start_serving();
    const struct ticket_keys *keys = &made->master.shared->tickets;
    struct ticket_key before, previous, current;

    ck_assert_int_eq(ticket_keys_rotate(&made->master.shared->tickets), 0);
    ck_assert(ticket_keys_get(keys, 0, &before));
    send_request(made, CHANNEL_TICKET_KEY, 0);
    read_requests(made);
    expect_message(made, CHANNEL_DONE, 1);
    expect_no_message(made);
    ck_assert(ticket_keys_get(keys, 0, &current) && ticket_keys_get(keys, 1, &previous));
    ck_assert_mem_eq(&previous, &before, sizeof(before));
    ck_assert_mem_ne(current.name, before.name, sizeof(before.name));
    ck_assert_uint_eq(made->master.tickets_generated_ms, made->master.clock.monotonic_ms);
    ck_assert_ptr_nonnull(strstr(made->log, "[notice]"));
    ck_assert_ptr_nonnull(strstr(made->log, "control: session tickets are encrypted with a new key\n"));
    end_worker(made);
}
END_TEST

START_TEST(ticket_keys_are_logged_once_per_second)
{
    struct one_worker *made = start_serving();

    for (unsigned i = 1; i <= 8; i++) {
        send_request(made, CHANNEL_TICKET_KEY, 0);
        read_requests(made);
        expect_message(made, CHANNEL_DONE, i);
    }
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    ck_assert_int_eq(master_control_next_ms(&made->master), LIMIT_LOG_INTERVAL_MS);
    made->master.clock.monotonic_ms += LIMIT_LOG_INTERVAL_MS;
    master_control_check(&made->master);
    ck_assert(strstr(made->log, "control: session tickets are encrypted with a new key, the last of 7\n"));
    ck_assert_uint_eq(count_text(made->log, "\n"), 2);
    end_worker(made);
}
END_TEST

/* One request for each call, so that a worker does not occupy the master. */
START_TEST(requests_are_handled_one_by_one)
{
    struct one_worker *made = start_serving();

    send_request(made, CHANNEL_LOG_LEVEL, LOG_WARN);
    send_request(made, CHANNEL_LOG_LEVEL, LOG_DEBUG);
    read_requests(made);
    ck_assert_int_eq(made->master.error_log.log.level, LOG_WARN);
    ck_assert_uint_eq(made->child.requests, 1);
    read_requests(made);
    ck_assert_int_eq(made->master.error_log.log.level, LOG_DEBUG);
    ck_assert_uint_eq(made->child.requests, 2);
    read_requests(made);
    ck_assert_uint_eq(made->child.requests, 2);
    end_worker(made);
}
END_TEST

/* A worker that sends requests and reads no answers. */
START_TEST(queue_of_answers_is_bounded)
{
    struct one_worker *made = start_serving();
    struct channel_message last = {.kind = CHANNEL_KINDS};
    int result;

    for (uint32_t i = 0; i < 5000; i++) {
        send_request(made, CHANNEL_LOG_LEVEL, i % 2 ? LOG_ALERT : LOG_CRIT);
        read_requests(made);
    }
    ck_assert(!list_empty(&made->child.queued));
    ck_assert_ptr_eq(made->child.queued.next->next, made->child.queued.previous); /* two messages */
    while ((result = channel_receive(made->worker_end, &last)) == 1)
        child_write(&made->master, &made->child);
    ck_assert_int_eq(result, -EAGAIN);
    ck_assert(list_empty(&made->child.queued));
    ck_assert_int_eq(last.kind, CHANNEL_DONE);
    ck_assert_uint_eq(last.index, 5000);
    end_worker(made);
}
END_TEST

static const struct {
    enum channel_kind kind;
    uint32_t index;
    bool starting;                  /* the worker is not ready */
    bool without_control;
} refused[] = {
    {CHANNEL_LOG_LEVEL, LOG_DEBUG + 1, false, false},
    {CHANNEL_LOG_LEVEL, UINT32_MAX, false, false},
    {CHANNEL_LOG_LEVEL, LOG_DEBUG, true, false},
    {CHANNEL_LOG_LEVEL, LOG_DEBUG, false, true},
    {CHANNEL_TICKET_KEY, 1, false, false},
    {CHANNEL_TICKET_KEY, 0, true, false},
    {CHANNEL_TICKET_KEY, 0, false, true},
    {CHANNEL_DONE, 0, false, false},
    {CHANNEL_READY, 0, false, false},
};

START_TEST(worker_that_sends_an_invalid_request_is_killed)
{
    struct one_worker *made = start_serving();

    made->child.ready = !refused[_i].starting;
    if (refused[_i].without_control)
        made->main.control.text = STR("");
    send_request(made, refused[_i].kind, refused[_i].index);
    read_requests(made);
    ck_assert_int_eq(made->child.channel_fd, -1);
    ck_assert_int_eq(one_worker_end(made), SIGKILL);
    ck_assert_uint_eq(count_text(made->log, "sent a malformed message: it is killed"), 1);
    ck_assert_uint_eq(count_text(made->log, "\n"), 1);
    ck_assert_int_eq(made->master.error_log.log.level, LOG_INFO);
    ck_assert_int_eq(made->generation.log_level, LOG_INFO);
    ck_assert_uint_eq(made->master.shared->tickets.number, 0);
    ck_assert_uint_eq(made->child.requests, 0);
    one_worker_free(made);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, level_changes_everywhere);
    tcase_add_test(tcase, level_changes_are_logged_once_per_second);
    tcase_add_test(tcase, same_level_is_not_logged);
    tcase_add_test(tcase, ticket_key_is_replaced);
    tcase_add_test(tcase, ticket_keys_are_logged_once_per_second);
    tcase_add_test(tcase, requests_are_handled_one_by_one);
    tcase_add_test(tcase, queue_of_answers_is_bounded);
    tcase_add_loop_test(tcase, worker_that_sends_an_invalid_request_is_killed, 0, sizeof(refused) / sizeof(refused[0]));
}

int main(void)
{
    return run_suite("master_control", add_tests);
}
