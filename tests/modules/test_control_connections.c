/*
 * The list of connections and the end of one, as resources of the control socket. The test is the master, and a second
 * worker that responds or does not.
 */
#include "../unit/skipped_clock.h"
#include "loopback.h"

#include "master/channel.h"
#include "server/worker_query.h"

#include <sys/socket.h>
#include <unistd.h>

static struct loopback server;

static struct {
    int channel_fd;                 /* its end of the worker's channel */
    uint64_t workers;               /* that it reports */
    struct query_response extra;    /* of the second worker */
    size_t extra_length;            /* 0: it does not respond */
} master;

/* Forwards a query. Both workers respond. */
static void forward_query(bool begins)
{
    struct channel_message query;
    int pair[2];

    if (begins || channel_receive(master.channel_fd, &query) != 1)
        return;
    ck_assert_int_eq(query.kind, CHANNEL_QUERY);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (master.extra_length > 0)
        ck_assert_int_eq(send(pair[1], &master.extra, master.extra_length, 0), (ssize_t)master.extra_length);
    worker_query_responses(&server.worker, query.index, master.workers, pair[0]);
    connection_query_respond(&server.worker, query.number, 10, pair[1]);
}

static void open_server(void)
{
    loopback_open(&server, "control: unix:/nonexistent/control.sock\n"
                           "http: {server: {listen: 8080, server_name: 'a\"b'}}");
    server.endpoint = 1;
    server.server_code_runs = forward_query;
    master.workers = 1;
    master.extra_length = 0;
    master.extra = (struct query_response){.pid = 42, .connections = 5, .row_count = 1};
    master.extra.rows[0] = (struct connection_row){.number = UINT64_MAX, .path = "/\"\\\n", .method = "GET",
                                                   .protocol = "h2", .tls = "TLSv1.3", .requests = 3};
    ck_assert_int_eq(channel_open(&master.channel_fd, &server.worker.channel_fd), 0);
}

static void close_server(void)
{
    server.server_code_runs = NULL;
    close(master.channel_fd);
    close(server.worker.channel_fd);
    server.worker.channel_fd = -1;
    loopback_close(&server);
}

static void expect(const char *head, int status, const char *part)
{
    loopback_request(&server, head);
    ck_assert_msg(server.status == status && str_search(server.body, str_from(part)) >= 0, "%s: %d " STR_FMT, head,
                  server.status, STR_ARG(server.body));
}

#define CLOSE(id)                                                                                                      \
    "POST /v1/connections/close HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{\"id\": " id "}"

/* As expect, for a request with a body. */
static void expect_close(const char *request, int status, const char *part)
{
    loopback_request_raw(&server, str_from(request));
    ck_assert_msg(server.status == status && str_search(server.body, str_from(part)) >= 0, "%s: %d " STR_FMT, request,
                  server.status, STR_ARG(server.body));
}

START_TEST(connections_of_all_workers_are_listed)
{
    int fd;

    open_server();
    expect("GET /v1/connections HTTP/1.0", 200, "{\"connections\": [], \"omitted\": 0, \"silent\": 0}\n");
    fd = loopback_connect_at(&server, 0);
    loopback_turn(&server, 5);
    master.workers = 3;
    master.extra_length = query_response_size(1);
    expect("GET /v1/connections HTTP/1.0", 200, "], \"omitted\": 4, \"silent\": 1}\n");
    ck_assert(str_search(server.body, STR("\"client\": \"127.0.0.1:4711\", \"listen\": \"0.0.0.0:8080\", "
                                          "\"server\": \"a\\\"b\", \"protocol\": \"http/1.1\", \"tls\": null, "
                                          "\"tls_path\": null, \"state\": \"waiting\", \"requests\": 0, ")) > 0);
    ck_assert(str_search(server.body, STR("\"method\": null, \"path\": null},\n"
                                          "  {\"id\": 18446744073709551615, \"worker\": 42, ")) > 0);
    ck_assert(str_search(server.body, STR("\"method\": \"GET\", \"path\": \"/\\\"\\\\\\n\"}\n]")) > 0);
    expect("GET /v1/connections?format=table HTTP/1.0", 200,
           "\n\nconnections that are not listed: 4\n\nworkers without a response: 1\n");
    ck_assert(str_search(server.body, STR("\tGET\t/\"\\?\n")) > 0);
    close(fd);
    close_server();
}
END_TEST

START_TEST(counts_of_other_workers_do_not_overflow)
{
    open_server();
    master.extra.connections = UINT64_MAX;
    master.extra_length = query_response_size(1);
    expect("GET /v1/connections HTTP/1.0", 200, "\"omitted\": 18446744073709551614, \"silent\": 0}");
    master.extra.connections = 0;
    expect("GET /v1/connections HTTP/1.0", 200, "\"omitted\": 0, \"silent\": 0}");
    close_server();
}
END_TEST

START_TEST(malformed_rows_are_not_listed)
{
    open_server();
    master.workers = 2;
    master.extra.rows[0].state = CONNECTION_STATES;
    master.extra_length = query_response_size(1);
    expect("GET /v1/connections HTTP/1.0", 200, "{\"connections\": [], \"omitted\": 0, \"silent\": 1}");
    close_server();
}
END_TEST

START_TEST(one_connection_is_closed)
{
    char byte;
    int fd;

    open_server();
    fd = loopback_connect_at(&server, 0);
    loopback_turn(&server, 5);
    expect_close(CLOSE("1"), 200, "{\"closed\": [\n  {\"id\": 1}\n]}");
    loopback_turn(&server, 5);
    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
    expect_close(CLOSE("1"), 404, "there is no connection 1; GET /v1/connections lists them");
    expect_close(CLOSE("2"), 404, "there is no connection 2"); /* of the control socket */
    expect_close(CLOSE("0"), 400, "the field \\\"id\\\" is a number from 1 to");
    master.extra.closed = 1;
    master.extra_length = query_response_size(1);
    expect_close(CLOSE("9"), 200, "{\"id\": 9}");
    master.extra_length = 0;
    master.workers = 2;
    expect_close(CLOSE("9"), 503, "workers without a response: 1; the others do not have connection 9");
    close(fd);
    close_server();
}
END_TEST

static void pass_time(bool yes)
{
    clock_skip(yes ? 100 : 0);
}

START_TEST(master_that_does_not_respond)
{
    int channel;

    open_server();
    server.server_code_runs = pass_time;
    expect("GET /v1/connections HTTP/1.0", 503, "the master did not respond within 3000 ms");
    channel = server.worker.channel_fd;
    server.worker.channel_fd = -1;
    expect("GET /v1/connections HTTP/1.0", 503, "the query cannot be sent");
    server.worker.channel_fd = channel;
    close_server();
}
END_TEST

/* The client of the control socket closes the connection while its query is in progress. */
START_TEST(query_is_cancelled_with_its_request)
{
    open_server();
    server.server_code_runs = NULL;
    loopback_disconnect(&server, "GET /v1/connections HTTP/1.0", 5);
    for (int i = 0; i < 200 && server.worker.connections > 0; i++)
        loopback_turn(&server, 5);
    ck_assert_ptr_null(server.worker.queries);
    server.server_code_runs = forward_query;
    expect("GET /v1/connections HTTP/1.0", 200, "{\"connections\": []");
    close_server();
}
END_TEST

int main(void)
{
    return loopback_run("control_connections", (const TTest *const[]){
            connections_of_all_workers_are_listed, counts_of_other_workers_do_not_overflow,
            malformed_rows_are_not_listed, one_connection_is_closed, master_that_does_not_respond,
            query_is_cancelled_with_its_request, NULL});
}
