/*
 * The whole path of a request, as in server/connection.c, with modules that the test defines; and every end of a
 * connection by a timeout, by the client or by the worker.
 */
#include "loopback.h"

#include "base/limits.h"
#include "http/h1_session.h"
#include "server/connection.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

/* The memory of an idle HTTPS connection except OpenSSL's SSL object. */
#define ON_THE_HEAP(type) ((sizeof(type) + 8 + 15) / 16 * 16)
_Static_assert(ON_THE_HEAP(struct connection) + ON_THE_HEAP(struct tls_session) +
                       ON_THE_HEAP(struct h1_session) + LIMIT_EPOLL_SLOT <=
                   LIMIT_IDLE_CONNECTION,
               "an idle connection has grown");

static struct loopback server;

static struct {
    struct exchange *pending; /* the exchange whose module returned PENDING */
    unsigned requested, cancelled, finished, shaped;
} seen;

enum { BIG = 3 * 1024 * 1024 };

static enum outcome answer_text(struct exchange *x, size_t length)
{
    char *text = arena_alloc(&x->arena, length);

    ck_assert_ptr_nonnull(text);
    memset(text, 'n', length);
    x->response.status = 200;
    x->response.body = body_bytes(&x->arena, str_of(text, length));
    return OUTCOME_RESPONDED;
}

static enum outcome maker_handler(struct exchange *x, const void *conf, void *state)
{
    struct str path = x->request.path;

    seen.requested++;
    if (str_equal(path, STR("/now")) || str_equal(path, STR("/badly-shaped")))
        return answer_text(x, 3);
    if (str_equal(path, STR("/big")))
        return answer_text(x, BIG);
    if (str_equal(path, STR("/moved")))
        return exchange_internal_redirect(x, STR("/now"), STR(""));
    if (str_equal(path, STR("/round")))
        return exchange_internal_redirect(x, STR("/round"), STR(""));
    if (str_equal(path, STR("/cut")))
        return exchange_close_without_response(x);
    if (str_equal(path, STR("/later"))) {
        seen.pending = x;
        return OUTCOME_PENDING;
    }
    return str_equal(path, STR("/allowed")) ? OUTCOME_ALLOWED : OUTCOME_DECLINED;
}

static int maker_shape(struct exchange *x, const void *conf)
{
    seen.shaped++;
    return str_equal(x->request.path, STR("/badly-shaped")) ? -ENOMEM : 0;
}

static void maker_finish(struct exchange *x, const void *conf)
{
    seen.finished++;
}

static void maker_cancel(struct exchange *x, void *state)
{
    ck_assert_ptr_eq(x, seen.pending);
    seen.cancelled++;
    seen.pending = NULL;
}

/* Runs after the first module; its response shows that the modules ran in this order. */
static enum outcome last_handler(struct exchange *x, const void *conf, void *state)
{
    if (!str_equal(x->request.path, STR("/allowed")))
        return OUTCOME_DECLINED;
    x->response.status = 204;
    return OUTCOME_RESPONDED;
}

static const struct module maker = {.name = "maker",
                                    .handler = maker_handler,
                                    .filter = maker_shape,
                                    .finish = maker_finish,
                                    .cancel = maker_cancel};
static const struct module last = {.name = "last", .handler = last_handler};
const struct module *const module_table[] = {&maker, &last, NULL};

#define TIMEOUTS                                                                                             \
    "http: {keepalive_timeout: 80ms, client_header_timeout: 120ms, client_body_timeout: 100ms, "             \
    "send_timeout: 150ms, "                                                                                  \
    "lingering_timeout: 60ms, server: {listen: 8080}}"
#define PATIENT "http: {server: {listen: 8080}}"

static void set_up(const char *configuration)
{
    memset(&seen, 0, sizeof seen);
    loopback_make_directory(&server);
    loopback_open(&server, configuration);
}

/* Checks that all gauges are zero and that each exchange that began has finished. */
static void tear_down(void)
{
    const struct counters *counters = &server.shared->workers[0].counters;
    uint64_t ended = 0;

    for (int i = 0; i < 200 && server.worker.connections > 0; i++)
        loopback_turn(&server, 5);
    ck_assert_uint_eq(server.worker.connections, 0);
    for (unsigned state = 0; state < CONNECTION_STATES; state++)
        ck_assert_uint_eq(counters->connections[state], 0);
    ck_assert_uint_eq(seen.finished, counters->requests);
    for (unsigned status = 0; status < COUNTERS_STATUSES; status++)
        ended += counters->status[status];
    ck_assert_uint_eq(seen.finished, ended);
    for (unsigned bucket = 0; bucket <= LATENCY_BOUNDS; bucket++)
        ended -= counters->latency.counts[bucket];
    ck_assert_uint_eq(ended, 0);
    ck_assert_uint_eq(server.worker.wires.output_bytes, 0);
    loopback_close(&server);
}

static void send_text(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void wait_until_pending(void)
{
    for (int i = 0; i < 1000 && !seen.pending; i++)
        loopback_turn(&server, 1);
    ck_assert_ptr_nonnull(seen.pending);
}

/* Returns the number of bytes received so far, 0 at the end of the stream, or -EAGAIN. */
static ssize_t receive_text(int fd, char *into, size_t size)
{
    ssize_t count = recv(fd, into, size - 1, MSG_DONTWAIT);

    into[count > 0 ? count : 0] = '\0';
    return count < 0 ? -errno : count;
}

static ssize_t wait_and_receive(int fd, char *into, size_t size)
{
    ssize_t count = -EAGAIN;

    for (int i = 0; i < 1000 && count == -EAGAIN; i++) {
        loopback_turn(&server, 5);
        count = receive_text(fd, into, size);
    }
    return count;
}

static const struct {
    const char *path;
    int status;
} answers[] = {
    {"/now", 200},     {"/moved", 200},        {"/round", 500}, {"/nothing", 404},
    {"/allowed", 204}, {"/badly-shaped", 500}, {"/cut", 0},
};

START_TEST(each_outcome_has_its_response)
{
    char head[64];

    set_up(PATIENT);
    snprintf(head, sizeof head, "GET %s HTTP/1.1", answers[_i].path);
    loopback_request(&server, head);
    ck_assert_int_eq(server.status, answers[_i].status);
    if (server.status == 0)
        ck_assert_uint_eq(server.text.length, 0);
    tear_down();
}
END_TEST

START_TEST(invalid_head_is_rejected)
{
    set_up(PATIENT);
    loopback_request_raw(&server, STR("GET / HTTP/1.1\r\nno colon\r\n\r\n"));
    ck_assert_int_eq(server.status, 400);
    ck_assert_uint_eq(seen.requested, 0);
    tear_down();
}
END_TEST

static const struct {
    enum outcome outcome;
    int status;
} resumed[] = {{OUTCOME_RESPONDED, 201}, {OUTCOME_DECLINED, 404}, {OUTCOME_ALLOWED, 404}};

START_TEST(pending_is_resumed)
{
    char text[4096];
    int fd;

    set_up(TIMEOUTS);
    fd = loopback_connect(&server);
    send_text(fd, "GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    wait_until_pending();
    loopback_skip_and_turn(&server, 300); /* no timeout applies while a module works */
    ck_assert_int_eq(receive_text(fd, text, sizeof text), -EAGAIN);
    if (resumed[_i].outcome == OUTCOME_RESPONDED)
        seen.pending->response.status = resumed[_i].status;
    exchange_resume(seen.pending, resumed[_i].outcome);
    ck_assert_int_gt(wait_and_receive(fd, text, sizeof text), 12);
    ck_assert_int_eq(atoi(text + 9), resumed[_i].status);
    close(fd);
    ck_assert_uint_eq(seen.cancelled, 0);
    tear_down();
}
END_TEST

/*
 * The client closes while a module works: the exchange is cancelled once, whether the client sent more or not, and
 * whether the module resumes it or not.
 */
START_TEST(pending_is_cancelled)
{
    struct linger now = {.l_onoff = 1};
    int fd;

    set_up(PATIENT);
    fd = loopback_connect(&server);
    send_text(fd, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    if (_i & 1)
        send_text(fd, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until_pending();
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
    if (_i & 2) {
        exchange_resume(seen.pending, OUTCOME_DECLINED);
        seen.pending = NULL;
        tear_down();
        ck_assert_uint_eq(seen.cancelled, 0);
        return;
    }
    for (int i = 0; i < 1000 && !seen.finished; i++)
        loopback_turn(&server, 1);
    ck_assert_uint_eq(seen.cancelled, 1);
    ck_assert_uint_eq(seen.finished, 1);
    tear_down();
}
END_TEST

START_TEST(pipelined_requests_are_answered_in_order)
{
    static const char three[] = "GET /now HTTP/1.1\r\nHost: a\r\n\r\nGET /big HTTP/1.1\r\nHost: a\r\n\r\n"
                                "GET /allowed HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    struct str text;
    ssize_t at;

    set_up(PATIENT);
    loopback_request_raw(&server, str_from(three));
    text = buffer_str(&server.text);
    ck_assert(str_starts(text, STR("HTTP/1.1 200")));
    ck_assert_uint_gt(text.length, BIG);
    at = str_search(str_skip(text, BIG), STR("HTTP/1.1 204"));
    ck_assert_int_ge(at, 0);
    ck_assert_uint_eq(server.shared->workers[0].counters.requests, 3);
    tear_down();
}
END_TEST

/* The client sends nothing, in each phase in which the server waits for it. */
static const struct {
    const char *expected;
    const char *heard; /* beginning of the last response; empty: the connection ends without one */
} silences[] = {
    {"", ""},
    {"GET /now HT", "HTTP/1.1 408"},
    {"GET /now HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200"},
    {"POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 "},
};

START_TEST(idle_clients_time_out)
{
    char text[4096];
    ssize_t count;
    int fd;

    set_up(TIMEOUTS);
    fd = loopback_connect(&server);
    if (silences[_i].expected[0])
        send_text(fd, silences[_i].expected);
    count = wait_and_receive(fd, text, sizeof text);
    if (silences[_i].heard[0]) {
        ck_assert_int_gt(count, 0);
        ck_assert_int_eq(strncmp(text, silences[_i].heard, strlen(silences[_i].heard)), 0);
        count = wait_and_receive(fd, text, sizeof text);
    }
    ck_assert_int_eq(count, 0);
    /* The client does not close its side; lingering_timeout ends the connection. */
    tear_down();
    close(fd);
}
END_TEST

/* The timeout of the next head applies even if the head began while the response before it was still being sent. */
START_TEST(header_timeout_runs_during_a_response)
{
    char text[4096];
    ssize_t count;
    int fd;

    set_up("http: {client_header_timeout: 100ms, lingering_timeout: 60ms, server: {listen: 8080}}");
    fd = loopback_connect(&server);
    send_text(fd, "GET /now HTTP/1.1\r\nHost: a\r\n\r\nGET /no");
    do
        count = wait_and_receive(fd, text, sizeof text);
    while (count > 0 && !strstr(text, "HTTP/1.1 408"));
    ck_assert_int_gt(count, 0);
    tear_down();
    close(fd);
}
END_TEST

/* A client that does not read is disconnected. A client that reads slowly is not. */
START_TEST(send_timeout_ends_stalled_responses)
{
    static char text[65536];
    size_t got = 0;
    int fd, size = 4096;

    set_up("http: {send_timeout: 2s, server: {listen: 8080}}");
    fd = loopback_connect(&server);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    send_text(fd, "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 25; i++) { /* in total longer than send_timeout */
        ssize_t count;

        loopback_skip(&server, 100);
        count = wait_and_receive(fd, text, sizeof text);
        ck_assert_int_gt(count, 0);
        got += (size_t)count;
    }
    ck_assert_uint_lt(got, BIG);
    for (int i = 0; i < 100 && server.worker.connections; i++) /* at most 10 s, as the socket's buffers may be filled */
        loopback_skip(&server, 100);
    ck_assert_uint_eq(server.worker.connections, 0);
    tear_down();
    close(fd);
}
END_TEST

START_TEST(draining_completes_responses)
{
    char text[4096];
    int idle, busy;

    set_up(PATIENT);
    idle = loopback_connect(&server);
    busy = loopback_connect(&server);
    send_text(idle, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    send_text(busy, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_gt(wait_and_receive(idle, text, sizeof text), 0);
    wait_until_pending();
    server.worker.draining = true;
    connection_drain_all(&server.worker);
    ck_assert_int_eq(wait_and_receive(idle, text, sizeof text), 0);
    close(idle);
    loopback_turn(&server, 20);
    ck_assert_uint_eq(server.worker.connections, 1);
    exchange_resume(seen.pending, OUTCOME_DECLINED);
    ck_assert_int_gt(wait_and_receive(busy, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 404"));
    ck_assert_ptr_nonnull(strstr(text, "close"));
    ck_assert_int_eq(wait_and_receive(busy, text, sizeof text), 0);
    close(busy);
    tear_down();
}
END_TEST

START_TEST(aborting_ends_everything)
{
    char text[4096];
    int fds[4];

    set_up(PATIENT);
    for (int i = 0; i < 4; i++)
        fds[i] = loopback_connect(&server);
    send_text(fds[1], "GET /la");
    send_text(fds[2], "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    send_text(fds[3], "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until_pending();
    connection_abort_all(&server.worker);
    ck_assert_uint_eq(server.worker.connections, 4); /* connections end later, never inside this call */
    loopback_turn(&server, 20);
    ck_assert_uint_eq(server.worker.connections, 0);
    ck_assert_uint_eq(seen.cancelled, 1);
    for (int i = 0; i < 4; i++) {
        while (receive_text(fds[i], text, sizeof text) > 0)
            ;
        close(fds[i]);
    }
    tear_down();
}
END_TEST

static void stopped(void *owner, struct listener *listener)
{
}

/* At worker_connections accepting pauses; it resumes when a connection has closed. */
START_TEST(accepting_pauses_at_worker_connections)
{
    struct listener *listener;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    int fds[3];

    set_up("{events: {worker_connections: 2}, http: {server: {listen: 8080}}}");
    listener = &server.worker.listeners[0].listener;
    server.worker.listener_count = 1;
    listener->loop = &server.worker.loop;
    listener->log = server.worker.log;
    listener->accept_failures = &server.worker.log_limits.accept;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener->fd, (struct sockaddr *)&here, length), 0);
    ck_assert_int_eq(listen(listener->fd, 16), 0);
    listener->accepted = connection_accept;
    listener->stopped = stopped;
    listener->owner = &server.worker;
    ck_assert_int_ge(listener->fd, 0);
    ck_assert_int_eq(getsockname(listener->fd, (struct sockaddr *)&here, &length), 0);
    listener_start(listener);
    for (int i = 0; i < 3; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(fds[i], (struct sockaddr *)&here, length), 0);
    }
    loopback_turn(&server, 30);
    ck_assert_uint_eq(server.worker.connections, 2);
    ck_assert(server.worker.paused);
    ck_assert(loopback_logged(&server, "accepting is paused"));
    close(fds[0]);
    loopback_turn(&server, 50);
    ck_assert_uint_eq(server.worker.connections, 2);
    close(fds[1]);
    close(fds[2]);
    loopback_turn(&server, 50);
    ck_assert(!server.worker.paused);
    listener_stop(listener);
    loopback_turn(&server, 20);
    loop_close_fd(&server.worker.loop, listener->fd);
    server.worker.listener_count = 0;
    tear_down();
}
END_TEST

START_TEST(plain_http_to_a_tls_port)
{
    set_up("http: {server: {listen: 8443 ssl, ssl_certificate: self-signed}}");
    loopback_request_raw(&server, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ck_assert_int_eq(server.status, 400);
    ck_assert_text(server.body, "The plain HTTP request was sent to HTTPS port\n");
    ck_assert_uint_eq((size_t)atoi(loopback_field(&server, "Content-Length").data), server.body.length);
    tear_down();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connection");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, each_outcome_has_its_response, 0, sizeof answers / sizeof answers[0]);
    tcase_add_test(all, invalid_head_is_rejected);
    tcase_add_loop_test(all, pending_is_resumed, 0, sizeof resumed / sizeof resumed[0]);
    tcase_add_loop_test(all, pending_is_cancelled, 0, 4);
    tcase_add_test(all, pipelined_requests_are_answered_in_order);
    tcase_add_loop_test(all, idle_clients_time_out, 0, sizeof silences / sizeof silences[0]);
    tcase_add_test(all, header_timeout_runs_during_a_response);
    tcase_add_test(all, send_timeout_ends_stalled_responses);
    tcase_add_test(all, draining_completes_responses);
    tcase_add_test(all, aborting_ends_everything);
    tcase_add_test(all, accepting_pauses_at_worker_connections);
    tcase_add_test(all, plain_http_to_a_tls_port);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
