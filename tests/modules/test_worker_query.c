/*
 * A query of a worker for all workers. The test is the master, and the workers that respond.
 */
#include "loopback.h"

#include "master/channel.h"
#include "server/worker_query.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loopback server;
static int master_end;              /* of the worker's channel */

const struct module *const module_table[] = {NULL};

/* What a query reported. */
struct seen {
    unsigned responses, rows, ended;
    uint64_t workers, responded;
};

static void seen_response(void *owner, const struct query_response *response)
{
    struct seen *seen = owner;

    ck_assert_uint_eq(seen->ended, 0);
    seen->responses++;
    seen->rows += response->row_count;
}

static void seen_ended(void *owner, uint64_t workers, uint64_t responded)
{
    struct seen *seen = owner;

    seen->ended++;
    seen->workers = workers;
    seen->responded = responded;
}

static const struct query_events events = {.response = seen_response, .ended = seen_ended};

static void open_server(void)
{
    loopback_open(&server, "http: {server: {listen: 8080}}");
    ck_assert_int_eq(channel_open(&master_end, &server.worker.channel_fd), 0);
}

static void close_server(void)
{
    loopback_turn(&server, 5); /* cancelled operations end */
    ck_assert_ptr_null(server.worker.queries);
    close(master_end);
    close(server.worker.channel_fd);
    server.worker.channel_fd = -1;
    loopback_close(&server);
}

/* Reads a query as the master does. Returns its index. */
static uint32_t forwarded(uint64_t number)
{
    struct channel_message message;

    ck_assert_int_eq(channel_receive(master_end, &message), 1);
    ck_assert_int_eq(message.kind, CHANNEL_QUERY);
    ck_assert_uint_eq(message.number, number);
    return message.index;
}

/* Gives the query its socket, as the master does. Returns the end for the responses. */
static int give_socket(uint32_t index, uint64_t workers)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    worker_query_responses(&server.worker, index, workers, pair[0]);
    return pair[1];
}

/* Opens the server and lists connections. Returns the end for the responses. */
static int open_query(struct seen *seen)
{
    open_server();
    ck_assert_ptr_nonnull(worker_query_start(&server.worker, 0, &events, seen));
    return give_socket(forwarded(0), 1);
}

static bool write_packet(int fd, const void *packet, size_t length)
{
    return send(fd, packet, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length;
}

START_TEST(responses_are_passed_on)
{
    static struct query_response response;
    struct seen seen = {0};
    int fd;

    open_server();
    ck_assert_ptr_nonnull(worker_query_start(&server.worker, 7, &events, &seen));
    fd = give_socket(forwarded(7), 2);
    response.row_count = QUERY_ROWS;
    ck_assert(write_packet(fd, &response, sizeof(response)));
    loopback_turn(&server, 5);
    ck_assert_uint_eq(seen.responses, 1);
    response.row_count = 1;
    ck_assert(write_packet(fd, &response, query_response_size(1)));
    response.row_count = 0;
    ck_assert(write_packet(fd, &response, query_response_size(0)));
    loopback_turn(&server, 5);
    ck_assert_uint_eq(seen.ended, 0);
    close(fd);
    loopback_turn(&server, 5);
    ck_assert_uint_eq(seen.ended, 1);
    ck_assert_uint_eq(seen.rows, QUERY_ROWS + 1);
    ck_assert_uint_eq(seen.workers, 2);
    ck_assert_uint_eq(seen.responded, 2);
    close_server();
}
END_TEST

START_TEST(malformed_packets_are_ignored)
{
    static struct query_response response;
    struct seen seen = {0};
    int fd = open_query(&seen);

    ck_assert(write_packet(fd, "x", 1));
    response.row_count = UINT32_MAX;
    ck_assert(write_packet(fd, &response, sizeof(response)));
    memset(&response, 0xff, sizeof(response));
    response.row_count = 1;
    ck_assert(write_packet(fd, &response, query_response_size(1)));
    loopback_turn(&server, 5);
    close(fd);
    loopback_turn(&server, 5);
    ck_assert_uint_eq(seen.responses, 0);
    ck_assert_uint_eq(seen.ended, 1);
    ck_assert_uint_eq(seen.responded, 0);
    close_server();
}
END_TEST

/* A worker that responds without end affects only the list. */
START_TEST(endless_packets_end_the_query)
{
    static struct query_response response;
    struct seen seen = {0};
    int fd = open_query(&seen);

    while (seen.ended == 0) {
        while (write_packet(fd, &response, query_response_size(0))) {
        }
        loopback_turn_once(&server, 1);
    }
    ck_assert_uint_eq(seen.responses, LIMIT_CONTROL_PACKETS);
    loopback_turn(&server, 5);
    ck_assert(!write_packet(fd, &response, query_response_size(0)));
    close(fd);
    close_server();
}
END_TEST

START_TEST(descriptors_of_packets_are_not_received)
{
    struct seen seen = {0};
    int fd = open_query(&seen);
    int lowest = dup(0);

    close(lowest);
    ck_assert_int_eq(channel_send(fd, &(struct channel_message){.kind = CHANNEL_ERROR_LOG, .fd = fd}), 0);
    loopback_turn(&server, 5);
    ck_assert_int_eq(fcntl(lowest, F_GETFD), -1);
    close(fd);
    loopback_turn(&server, 5);
    ck_assert_uint_eq(seen.ended, 1);
    close_server();
}
END_TEST

/* The master does not forward the query, or a worker keeps its descriptor: the query ends after a time. */
START_TEST(silence_ends_the_query)
{
    struct seen dropped = {0}, kept = {0};
    uint32_t index;
    int fd;

    open_server();
    ck_assert_ptr_nonnull(worker_query_start(&server.worker, 0, &events, &dropped));
    index = forwarded(0);
    ck_assert_ptr_nonnull(worker_query_start(&server.worker, 0, &events, &kept));
    fd = give_socket(forwarded(0), 3);
    while (!dropped.ended || !kept.ended)
        loopback_skip(&server, 1000);
    ck_assert_uint_eq(dropped.workers, 0);
    ck_assert_uint_eq(kept.workers, 3);
    ck_assert_uint_eq(kept.responded, 0);
    close(fd);
    fd = give_socket(index, 3); /* too late */
    loopback_turn(&server, 5);
    ck_assert(!write_packet(fd, "x", 1));
    close(fd);
    close_server();
}
END_TEST

START_TEST(cancelled_query_has_no_events)
{
    struct seen seen = {0};
    struct worker_query *query;
    int fd;

    open_server();
    query = worker_query_start(&server.worker, 0, &events, &seen);
    worker_query_cancel(query);
    fd = give_socket(forwarded(0), 1);
    ck_assert(!write_packet(fd, "x", 1));
    close(fd);
    query = worker_query_start(&server.worker, 0, &events, &seen);
    fd = give_socket(forwarded(0), 1);
    loopback_turn(&server, 5);
    worker_query_cancel(query);
    loopback_turn(&server, 5);
    ck_assert(!write_packet(fd, "x", 1));
    close(fd);
    ck_assert_uint_eq(seen.responses + seen.ended, 0);
    close_server();
}
END_TEST

/* A second descriptor for a query, and one for a query that does not exist. */
START_TEST(unexpected_descriptors_are_closed)
{
    struct seen seen = {0};
    uint32_t index;
    int first, second;

    open_server();
    ck_assert_ptr_nonnull(worker_query_start(&server.worker, 0, &events, &seen));
    index = forwarded(0);
    first = give_socket(index, 1);
    second = give_socket(index, 1);
    ck_assert(!write_packet(second, "x", 1));
    close(second);
    second = give_socket(index + 1, 1);
    ck_assert(!write_packet(second, "x", 1));
    close(second);
    close(first);
    loopback_turn(&server, 5);
    ck_assert_uint_eq(seen.ended, 1);
    close_server();
}
END_TEST

START_TEST(queries_are_limited)
{
    struct seen seen = {0};
    struct worker_query *queries[LIMIT_CONTROL_PENDING];

    open_server();
    for (unsigned i = 0; i < LIMIT_CONTROL_PENDING; i++)
        ck_assert_ptr_nonnull(queries[i] = worker_query_start(&server.worker, 0, &events, &seen));
    ck_assert_ptr_null(worker_query_start(&server.worker, 0, &events, &seen));
    for (unsigned i = 0; i < LIMIT_CONTROL_PENDING; i++)
        worker_query_cancel(queries[i]);
    close_server();
}
END_TEST

static unsigned count_forwarded(void)
{
    struct channel_message message;
    unsigned count = 0;

    while (channel_receive(master_end, &message) == 1)
        count++;
    return count;
}

/* Queries above the rate are sent in the next period, also if some are cancelled meanwhile. */
START_TEST(queries_above_the_rate_wait)
{
    struct seen seen = {0};
    struct worker_query *waiting, *cancelled;

    open_server();
    for (unsigned i = 0; i < LIMIT_CONTROL_QUERIES; i++)
        worker_query_cancel(worker_query_start(&server.worker, 0, &events, &seen));
    ck_assert_uint_eq(count_forwarded(), LIMIT_CONTROL_QUERIES);
    ck_assert_ptr_nonnull(waiting = worker_query_start(&server.worker, 8, &events, &seen));
    ck_assert_ptr_nonnull(cancelled = worker_query_start(&server.worker, 9, &events, &seen));
    worker_query_cancel(cancelled);
    ck_assert_uint_eq(count_forwarded(), 0);
    while (server.worker.queries_sent == LIMIT_CONTROL_QUERIES)
        loopback_skip(&server, 1000);
    ck_assert_uint_eq(server.worker.queries_sent, 1);
    forwarded(8);
    ck_assert_uint_eq(seen.ended, 0);
    worker_query_cancel(waiting);
    close_server();
}
END_TEST

START_TEST(master_that_cannot_be_reached)
{
    struct seen seen = {0};

    open_server();
    close(master_end);
    master_end = -1;
    ck_assert_ptr_null(worker_query_start(&server.worker, 0, &events, &seen));
    close_server();
}
END_TEST

int main(void)
{
    return loopback_run("worker_query", (const TTest *const[]){
            responses_are_passed_on, malformed_packets_are_ignored, endless_packets_end_the_query,
            descriptors_of_packets_are_not_received, silence_ends_the_query, cancelled_query_has_no_events,
            unexpected_descriptors_are_closed, queries_are_limited,
            queries_above_the_rate_wait, master_that_cannot_be_reached, NULL});
}
