/*
 * The response of a worker to a query of the control socket: rows of its connections, the end of one, and the check of
 * packets that another worker wrote.
 */
#include "loopback.h"

#include "server/connection_query.h"
#include "server/module.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loopback server;
static struct exchange *pending;

/* Keeps each request pending. */
static enum outcome hold_handler(struct exchange *x, const void *conf, void *state)
{
    pending = x;
    return OUTCOME_PENDING;
}

static void hold_cancel(struct exchange *x, void *state)
{
    pending = NULL;
}

static const struct module hold = {.name = "hold", .handler = hold_handler, .cancel = hold_cancel};
const struct module *const module_table[] = {&hold, NULL};

static void open_server(void)
{
    pending = NULL;
    loopback_open(&server, "http: {server: {listen: 8080, server_name: a.example}}");
}

/* Opens a connection and sends bytes. Returns the client's end. */
static int connect_and_send(const char *bytes)
{
    int fd = loopback_connect(&server);

    ck_assert_int_eq(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
    for (int i = 0; i < 5; i++)
        loopback_turn_once(&server, 1);
    return fd;
}

/* What the worker wrote to the socket. */
struct received {
    unsigned packets;
    unsigned count;
    uint64_t connections;
    uint32_t closed;
    struct connection_row rows[2 * LIMIT_CONTROL_CONNECTIONS];
};

static void read_packets(int fd, struct received *out)
{
    struct query_response response;
    ssize_t length;

    *out = (struct received){0};
    while ((length = recv(fd, &response, sizeof(response), MSG_DONTWAIT)) > 0) {
        ck_assert(query_response_valid(&response, (size_t)length));
        ck_assert_uint_eq(response.pid, (uint64_t)getpid());
        memcpy(&out->rows[out->count], response.rows, response.row_count * sizeof(response.rows[0]));
        out->count += response.row_count;
        out->packets++;
        out->connections += response.connections;
        out->closed += response.closed;
    }
    ck_assert_int_eq(length, 0); /* the other end is closed */
    close(fd);
}

static void query(uint64_t number, uint32_t rows, struct received *out)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    connection_query_respond(&server.worker, number, rows, pair[1]);
    read_packets(pair[0], out);
}

START_TEST(rows_describe_connections)
{
    static struct received got;
    int fds[3];

    open_server();
    fds[0] = connect_and_send("");
    fds[1] = connect_and_send("GET /half HTTP/1.1\r\n");
    fds[2] = connect_and_send("GET /a\"\\\xc3\xa4?token=secret HTTP/1.1\r\nHost: a\r\n\r\n");
    query(0, 10, &got);
    ck_assert_uint_eq(got.count, 3);
    ck_assert_uint_eq(got.packets, 1);
    ck_assert_uint_eq(got.connections, 3);
    for (unsigned i = 0; i < 3; i++) {
        const struct connection_row *row = &got.rows[i];
        bool holds = row->state == CONNECTION_WRITING;

        ck_assert_str_eq(row->protocol, "http/1.1");
        ck_assert_str_eq(row->client, "127.0.0.1:4711");
        ck_assert_str_eq(row->listen, "0.0.0.0:8080");
        ck_assert_str_eq(row->server, "a.example");
        ck_assert_str_eq(row->tls, "");
        ck_assert_str_eq(row->method, holds ? "GET" : "");
        ck_assert_str_eq(row->path, holds ? "/a\"\\%C3%A4" : "");
        ck_assert_uint_eq(row->requests, holds);
        ck_assert_uint_eq(row->sent, 0);
        ck_assert_int_eq(row->received > 0, row->state != CONNECTION_WAITING);
    }
    ck_assert_uint_eq(got.rows[0].state + got.rows[1].state + got.rows[2].state,
                      CONNECTION_WAITING + CONNECTION_READING + CONNECTION_WRITING);
    for (unsigned i = 0; i < 3; i++)
        close(fds[i]);
    loopback_close(&server);
}
END_TEST

START_TEST(long_texts_are_cut)
{
    static struct received got;
    char head[2048] = "OTHERMETHODTHATISLONG /";
    int fd;

    open_server();
    memset(head + strlen(head), '\xff', 1000);
    strcat(head, " HTTP/1.1\r\nHost: a\r\n\r\n");
    fd = connect_and_send(head);
    query(0, 10, &got);
    ck_assert_uint_eq(got.count, 1);
    ck_assert_str_eq(got.rows[0].method, "OTHERMETHODTHAT");
    ck_assert_uint_eq(strlen(got.rows[0].path), 1 + 84 * 3);
    ck_assert_str_eq(got.rows[0].path + strlen(got.rows[0].path) - 3, "%FF");
    close(fd);
    loopback_close(&server);
}
END_TEST

START_TEST(rows_are_bounded_and_all_connections_counted)
{
    static struct received got;
    int fds[2 * QUERY_ROWS + 1];

    open_server();
    for (unsigned i = 0; i < 2 * QUERY_ROWS + 1; i++)
        fds[i] = connect_and_send("");
    query(0, 2 * QUERY_ROWS, &got);
    ck_assert_uint_eq(got.count, 2 * QUERY_ROWS);
    ck_assert_uint_eq(got.packets, 3); /* the last one has no rows */
    ck_assert_uint_eq(got.connections, 2 * QUERY_ROWS + 1);
    query(0, 1, &got);
    ck_assert_uint_eq(got.count, 1);
    ck_assert_uint_eq(got.connections, 2 * QUERY_ROWS + 1);
    for (unsigned i = 0; i < 2 * QUERY_ROWS + 1; i++)
        close(fds[i]);
    loopback_close(&server);
}
END_TEST

START_TEST(idle_connections_come_last)
{
    static struct received got;
    int fds[3];

    open_server();
    fds[0] = connect_and_send("");
    fds[1] = connect_and_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    fds[2] = connect_and_send("");
    query(0, 1, &got);
    ck_assert_uint_eq(got.count, 1);
    ck_assert_str_eq(got.rows[0].path, "/");
    query(0, 2, &got);
    ck_assert_uint_eq(got.count, 2);
    ck_assert_int_eq(got.rows[1].state, CONNECTION_WAITING);
    for (unsigned i = 0; i < 3; i++)
        close(fds[i]);
    loopback_close(&server);
}
END_TEST

/* The worker continues without waiting. */
START_TEST(socket_without_room_or_reader)
{
    static struct received got;
    char byte = 0;
    int pair[2], fd;

    open_server();
    fd = connect_and_send("");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    while (send(pair[1], &byte, 1, MSG_DONTWAIT) == 1) {
    }
    ck_assert_int_eq(errno, EAGAIN);
    connection_query_respond(&server.worker, 0, 10, pair[1]);
    ck_assert_int_eq(fcntl(pair[1], F_GETFD), -1);
    close(pair[0]);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[0]);
    connection_query_respond(&server.worker, 0, 10, pair[1]);
    ck_assert_int_eq(fcntl(pair[1], F_GETFD), -1);
    query(0, 10, &got);
    ck_assert_uint_eq(got.count, 1);
    close(fd);
    loopback_close(&server);
}
END_TEST

START_TEST(one_connection_is_closed)
{
    static struct received got;
    uint64_t number;
    int closed, other;
    char byte;

    open_server();
    other = connect_and_send("");
    closed = connect_and_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    query(0, 10, &got);
    ck_assert_uint_eq(got.count, 2);
    number = got.rows[got.rows[0].requests == 1 ? 0 : 1].number;
    ck_assert_ptr_nonnull(pending);
    query(number + 100, 0, &got);
    ck_assert_uint_eq(got.closed, 0);
    query(number, 0, &got);
    ck_assert_uint_eq(got.closed, 1);
    ck_assert_uint_eq(got.count, 0);
    query(number, 0, &got); /* it is being closed */
    ck_assert_uint_eq(got.closed, 0);
    for (int i = 0; i < 200 && server.worker.connections > 1; i++)
        loopback_turn(&server, 5);
    ck_assert_ptr_null(pending);
    ck_assert_int_le(recv(closed, &byte, 1, 0), 0);
    ck_assert_int_ne(errno, EAGAIN);
    ck_assert_int_eq(recv(other, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert(loopback_logged(&server, "control: the connection is closed"));
    query(0, 10, &got);
    ck_assert_uint_eq(got.connections, 1);
    close(closed);
    close(other);
    loopback_close(&server);
}
END_TEST

/* Packets that a compromised worker may write. */
START_TEST(malformed_packets_are_detected)
{
    static struct query_response response;
    char *const texts[] = {response.rows[0].protocol, response.rows[0].tls,    response.rows[0].client,
                           response.rows[0].listen,   response.rows[0].server, response.rows[0].method,
                           response.rows[0].path};
    const size_t sizes[] = {sizeof(response.rows[0].protocol), sizeof(response.rows[0].tls),
                            sizeof(response.rows[0].client),   sizeof(response.rows[0].listen),
                            sizeof(response.rows[0].server),   sizeof(response.rows[0].method),
                            sizeof(response.rows[0].path)};
    size_t one = query_response_size(1);

    ck_assert(query_response_valid(&response, query_response_size(0)));
    ck_assert(!query_response_valid(&response, query_response_size(0) - 1));
    ck_assert(!query_response_valid(&response, query_response_size(0) + 1));
    ck_assert(!query_response_valid(&response, 0));
    response.row_count = 1;
    ck_assert(query_response_valid(&response, one));
    ck_assert(!query_response_valid(&response, one - 1));
    ck_assert(!query_response_valid(&response, sizeof(response)));
    response.rows[0].state = CONNECTION_STATES;
    ck_assert(!query_response_valid(&response, one));
    response.rows[0].state = CONNECTION_STATES - 1;
    response.rows[0].tls_path = PATH_COUNT;
    ck_assert(!query_response_valid(&response, one));
    response.rows[0].tls_path = PATH_COUNT - 1;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(texts[i], '\x1b', sizes[i]);
        ck_assert(!query_response_valid(&response, one));
        texts[i][sizes[i] - 1] = '\0';
        ck_assert(query_response_valid(&response, one));
    }
    response.closed = 2;
    ck_assert(!query_response_valid(&response, one));
    response.closed = 1;
    response.row_count = QUERY_ROWS;
    ck_assert(query_response_valid(&response, sizeof(response)));
    response.rows[QUERY_ROWS - 1].state = 255;
    ck_assert(!query_response_valid(&response, sizeof(response)));
    response.row_count = QUERY_ROWS + 1;
    ck_assert(!query_response_valid(&response, query_response_size(QUERY_ROWS + 1)));
    response.row_count = UINT32_MAX;
    ck_assert(!query_response_valid(&response, sizeof(response)));
}
END_TEST

int main(void)
{
    return loopback_run("connection_query", (const TTest *const[]){
            rows_describe_connections, long_texts_are_cut, rows_are_bounded_and_all_connections_counted,
            idle_connections_come_last, socket_without_room_or_reader, one_connection_is_closed,
            malformed_packets_are_detected, NULL});
}
