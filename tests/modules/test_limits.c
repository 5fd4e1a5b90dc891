/* `limit_req` and `limit_conn`: rejected and delayed requests, logged messages; no ended request remains counted. */
#include "loopback.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loopback server;

#define SERVER                                                                                                \
    "http:\n"                                                                                                 \
    "  limit_req_zone:\n"                                                                                     \
    "    - $arg_key zone=slow:1m rate=1r/m\n"                                                                 \
    "    - {key: $arg_other, zone: other:1m, rate: 1r/m}\n"                                                   \
    "    - $arg_key zone=quick:1m rate=50r/s\n"                                                               \
    "  limit_conn_zone: [$arg_key zone=open:1m, $arg_other zone=also:1m]\n"                                   \
    "  log_format: {one: '$uri $status $limit_req_status $limit_conn_status'}\n"                             \
    "  access_log: {path: @/log, format: one}\n"                                                             \
    "  server:\n"                                                                                             \
    "    listen: 8080\n"                                                                                      \
    "    limit_conn: open 1\n"                                                                                \
    "    location:\n"                                                                                         \
    "      /slow: {limit_req: zone=slow, return: 200 ok}\n"                                                   \
    "      /burst: {limit_req: {zone: slow, burst: 2, nodelay: on}, return: 200 ok}\n"                        \
    "      /both: {limit_req: [zone=slow burst=5 nodelay, zone=other], return: 200 ok}\n"                     \
    "      /wait: {limit_req: zone=quick burst=5, return: 200 ok}\n"                                          \
    "      /some: {limit_req: zone=quick burst=5 delay=2, return: 200 ok}\n"                                  \
    "      /long: {limit_req: zone=slow burst=5, return: 200 ok}\n"                                           \
    "      /dry: {limit_req: zone=slow, limit_req_dry_run: on, return: 200 ok}\n"                             \
    "      /limited: {limit_req: zone=slow, limit_req_status: 503, limit_req_log_level: info, return: 200 ok}\n" \
    "      /page: {limit_req: zone=slow, error_page: 429 =503 /busy, return: 200 ok}\n"                       \
    "      /busy: {return: 200 busy}\n"                                                                       \
    "      /again: {limit_req: zone=slow, rewrite: ^ /slow last}\n"                                           \
    "      /two: {limit_conn: [open 1, also 1], return: 200 ok}\n"                                            \
    "      /held: {limit_conn: open 1, limit_req: zone=quick burst=9, return: 200 ok}\n"                      \
    "      /shut: {limit_conn: {also: 1}, limit_req: zone=slow burst=5, return: 200 ok}\n"

static int request_status(const char *path)
{
    char head[256];

    snprintf(head, sizeof(head), "GET %s HTTP/1.1", path);
    loopback_request(&server, head);
    return server.status;
}

START_TEST(excess_requests_are_rejected)
{
    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/slow?key=a"), 200);
    ck_assert_int_eq(request_status("/slow?key=a"), 429);
    ck_assert_text(loopback_field(&server, "Retry-After"), "60");
    ck_assert(loopback_logged(&server, "limiting requests, excess: 0.99") ||
              loopback_logged(&server, "limiting requests, excess: 1.000"));
    ck_assert(loopback_logged(&server, " by zone \"slow\", client: 127.0.0.1, server: "));
    ck_assert_int_eq(request_status("/slow?key=b"), 200);
    ck_assert_int_eq(request_status("/slow"), 200); /* without a key a request is not counted */
    ck_assert_int_eq(request_status("/slow"), 200);
    ck_assert_int_eq(request_status("/limited?key=a"), 503);
    ck_assert_int_eq(request_status("/page?key=a"), 503);
    ck_assert_text(server.body, "busy");
    ck_assert_int_gt((int)loopback_field(&server, "Retry-After").length, 0);
    loopback_close(&server);
}
END_TEST

START_TEST(burst_is_permitted)
{
    loopback_open(&server, SERVER);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(request_status("/burst?key=a"), 200);
    ck_assert_int_eq(request_status("/burst?key=a"), 429);
    ck_assert_int_eq(request_status("/dry?key=a"), 200);
    ck_assert(loopback_logged(&server, "limiting requests, dry run, excess: "));
    loopback_close(&server);
}
END_TEST

/* A request that one limit rejects is not counted by the others. */
START_TEST(rejected_request_counts_nowhere)
{
    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/both?key=a&other=a"), 200);
    for (unsigned i = 0; i < 9; i++)
        ck_assert_int_eq(request_status("/both?key=a&other=a"), 429);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(request_status("/both?key=a"), 200);
    ck_assert_int_eq(request_status("/both?key=a"), 429);
    loopback_close(&server);
}
END_TEST

START_TEST(internal_redirect_counts_once)
{
    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/again?key=a"), 200);
    ck_assert_int_eq(request_status("/again?key=a"), 429);
    loopback_close(&server);
}
END_TEST

START_TEST(excess_requests_are_delayed)
{
    uint64_t began;

    loopback_open(&server, SERVER);
    began = server.worker.loop.clock.monotonic_ms;
    ck_assert_int_eq(request_status("/wait?key=a"), 200);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(request_status("/wait?key=a"), 200);
    /* Six requests; the first one is not delayed. */
    ck_assert_uint_ge(server.worker.loop.clock.monotonic_ms - began, 5 * 20 - 5);
    ck_assert(loopback_logged(&server, "delaying request, excess: "));
    ck_assert_int_eq(request_status("/some?key=b"), 200);
    ck_assert_int_eq(request_status("/some?key=b"), 200);
    loopback_close(&server);
}
END_TEST

/* The client closes during the delay: the timer is cancelled, and the connection is released. */
START_TEST(delayed_clients_may_disconnect)
{
    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/long?key=a"), 200);
    loopback_disconnect(&server, "GET /long?key=a HTTP/1.1", 4);
    loopback_turn(&server, 20);
    ck_assert_uint_eq(server.worker.connections, 0);
    ck_assert_int_eq(request_status("/burst?key=zzz"), 200);
    loopback_close(&server); /* with nothing in flight */
}
END_TEST

static void open_request(const char *head)
{
    int fd = loopback_connect(&server);

    ck_assert_int_eq(write(fd, head, strlen(head)), (ssize_t)strlen(head));
    loopback_turn(&server, 20);
}

/* The request for /shut is delayed for a minute, so that others are rejected. It ends with the server. */
START_TEST(open_requests_are_limited)
{
    loopback_open(&server, SERVER);
    ck_assert_int_eq(request_status("/shut?key=a&other=x"), 200);
    open_request("GET /shut?key=a&other=x HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_eq(request_status("/two?key=c&other=x"), 429);
    ck_assert(loopback_logged(&server, "limiting connections by zone \"also\", client: 127.0.0.1"));
    ck_assert_int_eq(request_status("/two?key=c&other=y"), 200);
    ck_assert_int_eq(request_status("/two?key=c&other=y"), 200); /* rejected and completed requests do not count */
    loopback_close(&server);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    static const struct {
        const char *line, *expected;
    } lines[] = {
        {"limit_req: zone=none", "limit_req: there is no limit_req_zone \"none\""},
        {"limit_req: burst=5", "limit_req has no zone"},
        {"limit_req: zone=a brust=5", "limit_req has no parameter \"brust\""},
        {"limit_req: zone=a burst=-1", "number"},
        {"limit_req: zone=a burst=1000001", "1000000"},
        {"limit_req_status: 200", "400"},
        {"limit_conn: none 5", "limit_conn: there is no limit_conn_zone \"none\""},
        {"limit_conn: none 0", "\"0\" is not a number of connections"},
        {"limit_conn: none", "limit_conn takes a zone and a number"},
    };
    static const struct {
        const char *row, *expected;
    } rows[] = {
        {"limit_req_zone: $uri zone=a:1m", "limit_req_zone requires a rate"},
        {"limit_req_zone: $uri zone=a rate=1r/s", "zone takes NAME:SIZE"},
        {"limit_req_zone: $uri zone=a:1k rate=1r/s", "32k to 16g"},
        {"limit_req_zone: $uri zone=a:1m rate=0r/s", "the rate must be"},
        {"limit_req_zone: $uri zone=a:1m rate=5", "the rate must be"},
        {"limit_req_zone: zone=a:1m rate=1r/s", "requires a key"},
        {"limit_req_zone: $nothing zone=a:1m rate=1r/s", "nothing"},
        {"limit_conn_zone: $uri zone=a:1m rate=1r/s", "no parameter \"rate\""},
        {"limit_conn_zone: [$uri zone=a:1m, $uri zone=a:1m]", "already used by another zone"},
        {"limit_req_zone: $uri zone=a:1m rate=1r/s\n  limit_req: [zone=a, zone=a]", "names the zone \"a\" twice"},
        {"limit_conn_zone: $uri zone=a:1m\n  limit_conn: [a 5, a 6]", "names the zone \"a\" twice"},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        loopback_configuration_rejected(lines[i].line, lines[i].expected);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct configuration_source source = {0};
        struct buffer expected = {0};
        struct log log = {.level = LOG_EMERG};
        char text[512];

        snprintf(text, sizeof(text), "http:\n  %s\n  server: {listen: 8080}\n", rows[i].row);
        source.text = str_from(text);
        ck_assert_msg(!configuration_load(&source, &log, &expected), "taken: %s", rows[i].row);
        ck_assert_msg(str_search(buffer_str(&expected), str_from(rows[i].expected)) >= 0, "\"%s\" is not in:\n" STR_FMT,
                      rows[i].expected, STR_ARG(buffer_str(&expected)));
        buffer_finish(&expected);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        excess_requests_are_rejected, burst_is_permitted, rejected_request_counts_nowhere,
        internal_redirect_counts_once,
        excess_requests_are_delayed, delayed_clients_may_disconnect, open_requests_are_limited,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("limits", tests);
}
