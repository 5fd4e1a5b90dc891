/* The control socket: verbs that the master carries out. */
#include "loopback.h"

#include "server/worker_request.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct loopback server;

#define JSON  "application/json"
#define TABLE "text/tab-separated-values; charset=utf-8"

static void open_server(void)
{
    loopback_open(&server, "control: unix:/nonexistent/control.sock\n"
                           "http: {server: {listen: 8080 ssl, ssl_certificate: self-signed}}\n");
    server.endpoint = 1;
}

static void expect(const char *head, int status, const char *type, const char *body)
{
    loopback_request(&server, head);
    ck_assert_msg(server.status == status, "%s: %d " STR_FMT, head, server.status, STR_ARG(server.body));
    ck_assert_text(loopback_field(&server, "Content-Type"), type);
    ck_assert_text(server.body, body);
}

static void send_body(const char *method, const char *path, const char *body)
{
    char request[512];

    snprintf(request, sizeof(request), "%s %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", method, path, strlen(body),
             body);
    loopback_request_raw(&server, str_from(request));
}

static void patch(const char *path, const char *body, int status, const char *expected)
{
    send_body("PATCH", path, body);
    ck_assert_msg(server.status == status && str_search(server.body, str_from(expected)) >= 0, "%s: %d " STR_FMT, body,
                  server.status, STR_ARG(server.body));
}

static void expect_post(const char *path, const char *body, int status, const char *expected)
{
    send_body("POST", path, body);
    ck_assert_msg(server.status == status, "%s: %d " STR_FMT, body, server.status, STR_ARG(server.body));
    ck_assert_text(server.body, expected);
}

static int master_end;
static unsigned messages;           /* that the worker sent */
static struct channel_message received; /* the last one */
static void (*answer)(uint32_t number); /* as the master */

/* After the server's code has run, the master handles the requests. */
static void run_master(bool server_code_runs)
{
    while (!server_code_runs && channel_receive(master_end, &received) == 1) {
        messages++;
        if (answer)
            answer(messages);
    }
}

static void answer_level(uint32_t number)
{
    ck_assert_int_eq(received.kind, CHANNEL_LOG_LEVEL);
    worker_change_log_level(&server.worker, received.index);
    worker_requests_done(&server.worker, number);
}

static void open_master(void (*answering)(uint32_t number))
{
    ck_assert_int_eq(channel_open(&master_end, &server.worker.channel_fd), 0);
    server.server_code_runs = run_master;
    answer = answering;
    messages = 0;
}

static void close_master(void)
{
    close(master_end);
    close(server.worker.channel_fd);
    server.worker.channel_fd = -1;
    server.server_code_runs = NULL;
}

START_TEST(log_level_is_changed_by_the_master)
{
    open_server();
    expect("GET /v1/log-level HTTP/1.0", 200, JSON,
           "{\"log_level\": [\n  {\"level\": \"info\", \"configured\": \"notice\"}\n]}\n");
    patch("/v1/log-level", "{\"level\": \"debug\"}", 503,
          "the master process does not take requests (32: Broken pipe); repeat the command");
    open_master(answer_level);
    patch("/v1/log-level", "{\"level\": \"debug\"}", 200,
          "{\"log_level\": [\n  {\"level\": \"debug\", \"configured\": \"notice\"}\n]}\n");
    expect("GET /v1/log-level?format=table HTTP/1.0", 200, TABLE, "level\tconfigured\ndebug\tnotice\n");
    patch("/v1/log-level?format=table", "{\"level\": \"emerg\"}", 200, "level\tconfigured\nemerg\tnotice\n");
    ck_assert_int_eq(server.worker.log->level, LOG_EMERG);
    ck_assert_uint_eq(messages, 2);
    close_master();
    loopback_close(&server);
}
END_TEST

START_TEST(wrong_log_levels_are_refused)
{
    open_server();
    open_master(answer_level);
    patch("/v1/log-level", "{\"level\": \"verbose\"}", 400,
          "the field \\\"level\\\" is one of emerg, alert, crit, error, warn, notice, info, debug\"}\n");
    patch("/v1/log-level", "{\"level\": 7}", 400, "is one of emerg, ");
    patch("/v1/log-level", "{}", 400, "the field \\\"level\\\" is missing");
    patch("/v1/log-level", "", 400, "the field \\\"level\\\" is missing");
    patch("/v1/log-level", "{\"level\": \"warn\", \"for\": 1}", 400,
          "there is no field \\\"for\\\"; /v1/log-level takes level");
    expect("DELETE /v1/log-level HTTP/1.0", 405, JSON, "{\"error\": \"/v1/log-level takes GET and PATCH\"}\n");
    ck_assert_text(loopback_field(&server, "Allow"), "GET, HEAD, PATCH");
    ck_assert_uint_eq(messages, 0);
    close_master();
    loopback_close(&server);
}
END_TEST

/* The client closes its connection before the master answers. */
START_TEST(client_that_does_not_wait_for_the_master)
{
    static const char body[] = "{\"level\": \"warn\"}";
    char request[256];
    int fd;

    open_server();
    open_master(NULL);
    fd = loopback_connect(&server);
    snprintf(request, sizeof(request), "PATCH /v1/log-level HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    for (unsigned i = 0; i < 1000 && messages == 0; i++)
        loopback_turn(&server, 1);
    ck_assert_uint_eq(messages, 1);
    ck_assert(!list_empty(&server.worker.requests));
    close(fd);
    for (unsigned i = 0; i < 1000 && !list_empty(&server.worker.requests); i++)
        loopback_turn(&server, 1);
    ck_assert(list_empty(&server.worker.requests));
    worker_requests_done(&server.worker, 1);
    close_master();
    loopback_close(&server);
}
END_TEST

static void rotate_key(uint32_t number)
{
    ck_assert_int_eq(received.kind, CHANNEL_TICKET_KEY);
    ck_assert_uint_eq(received.index, 0);
    ck_assert_int_eq(ticket_keys_rotate(&server.shared->tickets), 0);
    worker_requests_done(&server.worker, number);
}

static void fail_to_rotate(uint32_t number)
{
    worker_requests_done(&server.worker, number);
}

/* The line of a key in a table. */
static const char *key_row(unsigned age, const char *state)
{
    static char rows[2][64];
    struct ticket_key key;
    size_t length = 0;

    ck_assert(ticket_keys_get(&server.shared->tickets, age, &key));
    for (size_t i = 0; i < sizeof(key.name); i++)
        length += (size_t)snprintf(rows[age] + length, sizeof(rows[age]) - length, "%02x", key.name[i]);
    snprintf(rows[age] + length, sizeof(rows[age]) - length, "\t%s\n", state);
    return rows[age];
}

START_TEST(ticket_keys_are_rotated_by_the_master)
{
    char expected[256];

    open_server();
    open_master(rotate_key);
    expect("GET /v1/ticket-keys HTTP/1.0", 200, JSON, "{\"ticket_keys\": []}\n");
    for (unsigned number = 1; number <= 3; number++) {
        loopback_request_raw(&server, STR("POST /v1/ticket-keys/rotate?format=table HTTP/1.0\r\n\r\n"));
        ck_assert_int_eq(server.status, 200);
        ck_assert_uint_eq(server.shared->tickets.number, number);
        snprintf(expected, sizeof(expected), "key\tstate\n%s%s", key_row(0, "current"),
                 number > 1 ? key_row(1, "previous") : "");
        ck_assert_text(server.body, expected);
    }
    expect("GET /v1/ticket-keys?format=table HTTP/1.0", 200, TABLE, expected);
    answer = fail_to_rotate;
    expect_post("/v1/ticket-keys/rotate", "{}", 500,
                "{\"error\": \"no key could be generated; the error log has the cause\"}\n");
    ck_assert_uint_eq(messages, 4);
    expect_post("/v1/ticket-keys/rotate", "{\"now\": true}", 400,
                "{\"error\": \"there is no field \\\"now\\\"; /v1/ticket-keys/rotate takes none\"}\n");
    expect("GET /v1/ticket-keys/rotate HTTP/1.0", 405, JSON, "{\"error\": \"/v1/ticket-keys/rotate takes POST\"}\n");
    ck_assert_uint_eq(messages, 4);
    close_master();
    loopback_close(&server);
}
END_TEST

/* No request is sent to the master. */
static void refuse_rotation(const char *lines, const char *error)
{
    char text[1024];

    snprintf(text, sizeof(text), "control: unix:/nonexistent/control.sock\nhttp:\n  server:\n    listen: 8080%s\n",
             lines);
    loopback_open(&server, text);
    server.endpoint = 1;
    open_master(rotate_key);
    ck_assert_int_eq(ticket_keys_rotate(&server.shared->tickets), 0);
    expect_post("/v1/ticket-keys/rotate", "{}", 409, error);
    expect("GET /v1/ticket-keys HTTP/1.0", 200, JSON, "{\"ticket_keys\": []}\n");
    ck_assert_uint_eq(messages, 0);
    close_master();
    loopback_close(&server);
}

#define WITHOUT_TICKETS                                                                                                \
    "{\"error\": \"no server has session tickets: none listens with ssl, or ssl_session_tickets is off\"}\n"

START_TEST(keys_that_are_not_generated_are_not_rotated)
{
    char bytes[80] = "a key of a file";

    refuse_rotation("", WITHOUT_TICKETS);
    refuse_rotation(" ssl\n    ssl_certificate: self-signed\n    ssl_session_tickets: off", WITHOUT_TICKETS);
    loopback_make_directory(&server);
    loopback_write(&server, "ticket.key", str_of(bytes, sizeof(bytes)));
    refuse_rotation(" ssl\n    ssl_certificate: self-signed\n    ssl_session_ticket_key: @/ticket.key",
                    "{\"error\": \"the ticket keys are files of ssl_session_ticket_key: write a new one (openssl rand "
                    "80 > FILE), name it first in this directive, keep the former one as the second, and reload\"}\n");
}
END_TEST

int main(void)
{
    return loopback_run("control_master", (const TTest *const[]){
            log_level_is_changed_by_the_master, wrong_log_levels_are_refused, client_that_does_not_wait_for_the_master,
            ticket_keys_are_rotated_by_the_master, keys_that_are_not_generated_are_not_rotated, NULL});
}
