/*
 * The exporter with a collector in this process: the flush at its end, and what is dropped. The process itself, and its
 * repetitions, are tested by tests/http/test_otel_export.py.
 */
#include "otlp/otlp_exporter.h"

#include "../runner.h"

#include "otlp/span_ring.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct collector {
    int listener, port;
    struct otlp otlp;
    struct otlp_counters *counters; /* shared with the exporter */
    char url[64];
};

static struct otlp_counters shared_counters;

static void open_collector(struct collector *collector)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    shared_counters = (struct otlp_counters){0};
    *collector = (struct collector){.counters = &shared_counters};
    collector->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(collector->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(collector->listener, 8), 0);
    ck_assert_int_eq(getsockname(collector->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(collector->url, sizeof(collector->url), "http://127.0.0.1:%d/x", ntohs(address.sin_port));
    collector->otlp = (struct otlp){.interval_ms = 1000, .batch_size = 2, .batch_count = 2, .service_name = STR("s")};
    ck_assert_int_eq(otlp_endpoint_parse(str_from(collector->url), &collector->otlp.endpoint), 0);
    ck_assert_int_eq(span_zone_open(1, 4, 2, collector->counters, &collector->otlp.zone), 0);
}

static void close_collector(struct collector *collector)
{
    span_zone_close(collector->otlp.zone);
    if (collector->listener >= 0)
        close(collector->listener);
}

static void put_spans(struct collector *collector, unsigned count)
{
    while (count-- > 0) {
        struct span *span = span_ring_reserve(collector->otlp.zone, 0);

        span->trace_id[0] = span->span_id[0] = 1;
        span_set_name(span, STR("/"));
        span_ring_commit(collector->otlp.zone, 0);
    }
}

static void no_line(void *owner, enum log_level level, struct str line)
{
    unsigned *lines = owner;

    *lines += level <= LOG_WARN;
}

/* Runs an exporter whose channel is closed: it flushes, and ends. Returns the number of lines about dropped spans. */
static unsigned flush(struct collector *collector)
{
    unsigned lines = 0;
    struct log log = {.level = LOG_WARN, .sink = no_line, .owner = &lines};
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[0]);
    ck_assert_int_eq(otlp_exporter_run(&(struct otlp_exporter){&collector->otlp, ends[1], &log}), EXIT_SUCCESS);
    close(ends[1]);
    return lines;
}

/* In another process: responds to `count` requests. */
static pid_t respond(const struct collector *collector, unsigned count, const char *response)
{
    char bytes[4096];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    while (count-- > 0) {
        int fd = accept(collector->listener, NULL, NULL);

        if (read(fd, bytes, sizeof(bytes)) < 7 || memcmp(bytes, "POST /x", 7) != 0 ||
            write(fd, response, strlen(response)) < 0)
            _exit(1);
        close(fd);
    }
    _exit(0);
}

static void check_exit(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(an_ending_exporter_sends_what_is_left)
{
    struct collector collector;
    pid_t pid;

    open_collector(&collector);
    put_spans(&collector, 3);
    pid = respond(&collector, 2, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ck_assert_uint_eq(flush(&collector), 0);
    check_exit(pid);
    ck_assert_uint_eq(collector.counters->sent, 3);
    ck_assert_uint_eq(collector.counters->dropped_failed, 0);
    close_collector(&collector);
}
END_TEST

START_TEST(a_rejected_batch_is_dropped)
{
    struct collector collector;
    pid_t pid;

    open_collector(&collector);
    put_spans(&collector, 2);
    pid = respond(&collector, 1, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    ck_assert_uint_eq(flush(&collector), 1);
    check_exit(pid);
    ck_assert_uint_eq(collector.counters->sent, 0);
    ck_assert_uint_eq(collector.counters->dropped_failed, 2);
    close_collector(&collector);
}
END_TEST

START_TEST(a_partial_success_is_counted)
{
    struct collector collector;
    pid_t pid;

    open_collector(&collector);
    put_spans(&collector, 2);
    pid = respond(&collector, 1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x01");
    ck_assert_uint_eq(flush(&collector), 1);
    check_exit(pid);
    ck_assert_uint_eq(collector.counters->sent, 1);
    ck_assert_uint_eq(collector.counters->dropped_failed, 1);
    close_collector(&collector);
}
END_TEST

/* In another process: responds to one request if it has the text. */
static pid_t respond_if(const struct collector *collector, const char *text)
{
    static char bytes[32768];
    size_t length = 0;
    ssize_t part = 1;
    pid_t pid = fork();
    int fd;

    if (pid != 0)
        return pid;
    fd = accept(collector->listener, NULL, NULL);
    while (part > 0 && !strstr(bytes, "\r\n\r\n")) {
        part = read(fd, bytes + length, sizeof(bytes) - 1 - length);
        length += part > 0 ? (size_t)part : 0;
    }
    if (!strstr(bytes, text) || write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38) != 38)
        _exit(1);
    close(fd);
    _exit(0);
}

START_TEST(fields_are_sent)
{
    static char longest[LIMIT_OTLP_FIELDS - 20];
    const struct otlp_pair fields[] = {{STR("a"), STR("b c")}, {STR("d"), str_of(longest, sizeof(longest))}};
    struct collector collector;
    pid_t pid;

    memset(longest, 'x', sizeof(longest));
    open_collector(&collector);
    collector.otlp.fields = fields;
    collector.otlp.field_count = 2;
    put_spans(&collector, 1);
    pid = respond_if(&collector, "\r\na: b c\r\nd: xxx");
    ck_assert_uint_eq(flush(&collector), 0);
    check_exit(pid);
    ck_assert_uint_eq(collector.counters->sent, 1);
    close_collector(&collector);
}
END_TEST

/* The first batch is dropped; the others stay in the ring. */
START_TEST(an_ending_exporter_tries_once)
{
    struct collector collector;

    open_collector(&collector);
    close(collector.listener);
    collector.listener = -1;
    put_spans(&collector, 4);
    ck_assert_uint_eq(flush(&collector), 1);
    ck_assert_uint_eq(collector.counters->dropped_failed, 2);
    ck_assert_uint_eq(span_zone_waiting(collector.otlp.zone), 2);
    close_collector(&collector);
}
END_TEST

START_TEST(invalid_and_lost_spans_are_counted)
{
    struct collector collector;
    pid_t pid;

    open_collector(&collector);
    put_spans(&collector, 1);
    span_set_name(span_ring_reserve(collector.otlp.zone, 0), STR("without ids"));
    span_ring_commit(collector.otlp.zone, 0);
    span_zone_set_taken(collector.otlp.zone, 5); /* by an exporter that was killed */
    pid = respond(&collector, 1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ck_assert_uint_eq(flush(&collector), 1);
    check_exit(pid);
    ck_assert_uint_eq(collector.counters->sent, 1);
    ck_assert_uint_eq(collector.counters->dropped_failed, 6);
    close_collector(&collector);
}
END_TEST

START_TEST(delays_double)
{
    ck_assert_uint_eq(otlp_backoff_ms(1, 0), LIMIT_OTLP_BACKOFF_MS);
    ck_assert_uint_eq(otlp_backoff_ms(LIMIT_OTLP_ATTEMPTS, 0), LIMIT_OTLP_BACKOFF_MS << (LIMIT_OTLP_ATTEMPTS - 1));
    ck_assert_uint_eq(otlp_backoff_ms(1, 9000), 9000);
    ck_assert_uint_eq(otlp_backoff_ms(3, 1), 4 * LIMIT_OTLP_BACKOFF_MS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_ending_exporter_sends_what_is_left, a_rejected_batch_is_dropped,
                                  a_partial_success_is_counted, an_ending_exporter_tries_once,
                                  invalid_and_lost_spans_are_counted, fields_are_sent, delays_double, NULL};

    return run_tests("otlp_exporter", tests);
}
