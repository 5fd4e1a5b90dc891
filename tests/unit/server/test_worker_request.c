/* Requests of a worker to the master. */
#include "server/worker_request.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static struct worker *worker;
static struct log log_of_worker;
static int master_end;
static unsigned handled;            /* the numbers of the requests that were handled, as decimal digits */

static void setup(void)
{
    worker = calloc(1, sizeof(*worker));
    ck_assert_ptr_nonnull(worker);
    worker->log = &log_of_worker;
    list_init(&worker->requests);
    list_init(&worker->connection_list);
    ck_assert_int_eq(channel_open(&master_end, &worker->channel_fd), 0);
}

static void note_handled(struct worker_request *request)
{
    handled = handled * 10 + request->number;
}

static void send_requests(struct worker_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        requests[i].done = note_handled;
        ck_assert_int_eq(worker_request_send(worker, &requests[i], CHANNEL_LOG_LEVEL, LOG_WARN), 0);
    }
}

START_TEST(requests_are_handled_in_order)
{
    struct worker_request requests[5] = {0};
    struct channel_message got;

    setup();
    send_requests(requests, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(channel_receive(master_end, &got), 1);
    ck_assert_int_eq(got.kind, CHANNEL_LOG_LEVEL);
    ck_assert_uint_eq(got.index, LOG_WARN);
    ck_assert_int_eq(got.fd, -1);
    worker_requests_done(worker, 0);
    ck_assert_uint_eq(handled, 0);
    worker_requests_done(worker, 1);
    ck_assert_uint_eq(handled, 1);
    worker_request_cancel(&requests[2]);
    worker_requests_done(worker, 4);
    ck_assert_uint_eq(handled, 124);
    worker_requests_done(worker, 4);
    ck_assert_uint_eq(handled, 124);
    worker_requests_done(worker, 5);
    ck_assert_uint_eq(handled, 1245);
    ck_assert(list_empty(&worker->requests));
}
END_TEST

START_TEST(numbers_wrap)
{
    struct worker_request requests[3] = {0};

    setup();
    worker->request_number = UINT32_MAX - 1;
    send_requests(requests, 3);
    ck_assert_uint_eq(requests[0].number, UINT32_MAX);
    ck_assert_uint_eq(requests[2].number, 1);
    worker_requests_done(worker, UINT32_MAX - 1);
    ck_assert(!list_empty(&worker->requests));
    worker_requests_done(worker, 0);
    ck_assert_ptr_eq(worker->requests.next, &requests[2].link);
    worker_requests_done(worker, 1);
    ck_assert(list_empty(&worker->requests));
}
END_TEST

static struct worker_request second;

static void send_second(struct worker_request *request)
{
    note_handled(request);
    send_requests(&second, 1);
}

START_TEST(handled_request_may_send_another)
{
    struct worker_request first = {.done = send_second};

    setup();
    ck_assert_int_eq(worker_request_send(worker, &first, CHANNEL_TICKET_KEY, 0), 0);
    worker_requests_done(worker, 1);
    ck_assert_uint_eq(handled, 1);
    ck_assert_ptr_eq(worker->requests.next, &second.link);
    worker_requests_done(worker, 2);
    ck_assert_uint_eq(handled, 12);
}
END_TEST

START_TEST(request_that_cannot_be_sent_does_not_wait)
{
    struct worker_request request = {.done = note_handled};
    struct worker_request *sent = calloc(100000, sizeof(*sent));
    size_t count = 0;
    int result = 0;

    setup();
    while (count < 100000 && (result = worker_request_send(worker, &sent[count], CHANNEL_TICKET_KEY, 0)) == 0)
        count++;
    ck_assert_int_eq(result, -EAGAIN);
    ck_assert_uint_eq(worker->request_number, count);
    list_init(&worker->requests);
    close(master_end);
    /* It has unread messages. */
    ck_assert_int_eq(worker_request_send(worker, &request, CHANNEL_TICKET_KEY, 0), -ECONNRESET);
    worker->channel_fd = -1;
    ck_assert_int_eq(worker_request_send(worker, &request, CHANNEL_TICKET_KEY, 0), -EPIPE);
    ck_assert(list_empty(&worker->requests));
    free(sent);
}
END_TEST

START_TEST(level_of_the_master_is_applied)
{
    setup();
    worker_change_log_level(worker, LOG_DEBUG);
    ck_assert_int_eq(log_of_worker.level, LOG_DEBUG);
    worker_change_log_level(worker, LOG_DEBUG + 1);
    ck_assert_int_eq(log_of_worker.level, LOG_DEBUG);
    worker_change_log_level(worker, LOG_EMERG);
    ck_assert_int_eq(log_of_worker.level, LOG_EMERG);
}
END_TEST

int main(void)
{
    return run_tests("worker_request", (const TTest *const[]){
            requests_are_handled_in_order, numbers_wrap, handled_request_may_send_another,
            request_that_cannot_be_sent_does_not_wait, level_of_the_master_is_applied, NULL});
}
