#include "loopback.h"

#include "log/access_log.h"
#include "log/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct loopback server;
static char seen[400000];

static struct str file_text(const char *name)
{
    int fd = open(loopback_path(&server, name), O_RDONLY | O_NONBLOCK);
    ssize_t length;

    ck_assert_int_ge(fd, 0);
    length = read(fd, seen, sizeof(seen));
    close(fd);
    return str_of(seen, length > 0 ? (size_t)length : 0);
}

/* Runs the loop until the file has content. */
static struct str awaited(const char *name)
{
    for (int i = 0; i < 500 && file_text(name).length == 0; i++)
        loopback_skip_and_turn(&server, 20);
    return file_text(name);
}

START_TEST(lines_are_buffered)
{
    struct str text;

    loopback_open(&server,
                  "http:\n"
                  "  access_log: '@/main.log'\n"
                  "  log_format:\n"
                  "    short: '$status $uri $http_none $sent_http_x_own'\n"
                  "    pieces: [a, $status, ' b']\n"
                  "    raw: {escape: none, format: '$arg_a|$arg_b'}\n"
                  "  server:\n"
                  "    listen: 8080\n"
                  "    location:\n"
                  "      /: {return: 200 ok}\n"
                  "      /short: {return: 200 ok, access_log: ['@/short.log short', "
                  "{path: '@/json.log', format: json}, "
                  "'@/pieces.log pieces'], add_header: X-Own mine}\n"
                  "      /raw: {return: 200 ok, access_log: '@/raw.log raw'}\n"
                  "      /off: {return: 200 ok, access_log: off}\n");
    loopback_request(&server, "GET /\" HTTP/1.1\nUser-Agent: a\"b\\c");
    loopback_request(&server, "GET /short HTTP/1.1\nUser-Agent: a\"b\\c");
    loopback_request(&server, "GET /off HTTP/1.1");
    loopback_request(&server, "GET /raw?a=\"x HTTP/1.1");
    ck_assert_uint_eq(file_text("main.log").length, 0);
    text = awaited("main.log");
    ck_assert(str_starts(text, STR("127.0.0.1 - - [")));
    ck_assert_int_ge(str_search(text, STR("\"GET /\\x22 HTTP/1.1\" 200 2 \"-\" \"a\\x22b\\x5Cc\" plain ")),
                     0);
    ck_assert_int_lt(str_search(text, STR("/off")), 0);
    ck_assert_int_lt(str_search(text, STR("/short")), 0);
    ck_assert_text(awaited("short.log"), "200 /short - mine\n");
    ck_assert_text(awaited("pieces.log"), "a200 b\n");
    ck_assert_text(awaited("raw.log"), "\"x|\n");
    text = awaited("json.log");
    ck_assert(str_starts(text, STR("{\"time\":\"")));
    ck_assert_int_ge(str_search(text, STR("\"status\":200,\"body_bytes_sent\":2,")), 0);
    ck_assert_int_ge(str_search(text, STR("\"user_agent\":\"a\\\"b\\\\c\"")), 0);
    ck_assert(str_ends(text, STR("}\n")));
    loopback_close(&server);
}
END_TEST

/* The log has the header fields that were sent, including those that the session adds. */
START_TEST(sent_fields_are_logged_as_sent)
{
    static const struct {
        const char *request;
        const char *line; /* after the length that the client received */
    } rows[] = {
        {"GET /ok HTTP/1.1", "|-|text/plain; charset=utf-8|close|-|sluice\n"},
        {"HEAD /ok HTTP/1.1", "|-|text/plain; charset=utf-8|close|-|sluice\n"},
        {"GET /moved HTTP/1.1", "|-|text/html; charset=utf-8|close|/ok|sluice\n"},
        {"GET /none HTTP/1.1", "|-|-|close|-|sluice\n"},
        {"GET /own HTTP/1.1", "|-|text/plain; charset=utf-8|close|-|mine\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct str line, length;

        loopback_open(&server, "http:\n"
                               "  log_format: {f: '$sent_http_content_length|$sent_http_transfer_encoding|"
                               "$sent_http_content_type|$sent_http_connection|$sent_http_location|$sent_http_server'}\n"
                               "  access_log: '@/f.log f flush=10ms'\n"
                               "  server:\n"
                               "    listen: 8080\n"
                               "    location:\n"
                               "      /ok: {return: 200 ok}\n"
                               "      /moved: {return: 301 /ok}\n"
                               "      /none: {return: 204}\n"
                               "      /own: {return: 200 ok, add_header: {Server: mine}}\n");
        loopback_request(&server, rows[i].request);
        line = awaited("f.log");
        length = loopback_field(&server, "Content-Length");
        length = str_empty(length) ? STR("-") : length;
        ck_assert_msg(str_starts(line, length) && str_equal(str_skip(line, length.length), str_from(rows[i].line)),
                      "%s: " STR_FMT, rows[i].request, STR_ARG(line));
        loopback_close(&server);
    }
}
END_TEST

/* If two directives give one file different flush times, the shorter one applies. */
START_TEST(shortest_flush_time_applies)
{
    struct str text;

    loopback_open(&server, "http:\n"
                           "  log_format: {uri: $uri}\n"
                           "  access_log: '@/late.log uri buffer=64k flush=10m'\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    location:\n"
                           "      /: {return: 200 ok}\n"
                           "      /mixed: {return: 200 ok, access_log: ['@/mixed.log uri flush=10m', "
                           "{path: '@/mixed.log', format: uri, flush: 0s}]}\n");
    loopback_request(&server, "GET /late HTTP/1.1");
    loopback_request(&server, "GET /mixed HTTP/1.1");
    text = awaited("mixed.log");
    ck_assert_text(text, "/mixed\n/mixed\n");
    ck_assert_uint_eq(file_text("late.log").length, 0);
    loopback_close(&server);
}
END_TEST

START_TEST(buffer_is_written_at_exit)
{
    int fd;
    char path[128];

    loopback_open(&server, "http: {server: {listen: 8080, return: 200 ok, access_log: '@/a.log'}}");
    loopback_request(&server, "GET /last HTTP/1.1");
    snprintf(path, sizeof(path), "%s", loopback_path(&server, "a.log"));
    fd = open(path, O_RDONLY);
    loopback_close(&server);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, seen, sizeof(seen)), 0);
    close(fd);
}
END_TEST

START_TEST(later_lines_go_to_the_reopened_log)
{
    int fd;

    loopback_open(&server, "http: {server: {listen: 8080, return: 200 ok, access_log: '@/a.log'}}");
    loopback_request(&server, "GET /one HTTP/1.1"); /* this line is still in the buffer */
    ck_assert_int_eq(rename(loopback_path(&server, "a.log"), loopback_path(&server, "a.old")), 0);
    fd = log_file_open(str_from(loopback_path(&server, "a.log")));
    ck_assert_int_ge(fd, 0);
    server.configuration->access_logs[0]->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    access_log_replace(server.worker.access_log, 0, fd);
    loopback_request(&server, "GET /two HTTP/1.1");
    ck_assert_int_ge(str_search(awaited("a.old"), STR("/one")), 0);
    ck_assert_int_ge(str_search(awaited("a.log"), STR("/two")), 0);
    loopback_close(&server);
}
END_TEST

/* The client closes in the middle of a file: the log has the bytes that were sent. */
START_TEST(aborted_response_logs_sent_bytes)
{
    static const char request[] = "GET /file HTTP/1.1\r\nHost: a\r\n\r\n";
    struct str text;
    char begin[8192]; /* longer than the head */
    uint64_t sent = 0;
    int fd;

    loopback_open(&server, "http: {log_format: {sent: $body_bytes_sent}, server: {listen: 8080, root: @/, "
                           "access_log: '@/a.log sent flush=10ms'}}");
    loopback_write(&server, "file", STR(""));
    ck_assert_int_eq(truncate(loopback_path(&server, "file"), 64 << 20), 0);
    fd = loopback_connect(&server);
    ck_assert_int_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
    for (int i = 0; i < 1000 && recv(fd, begin, sizeof(begin), MSG_DONTWAIT | MSG_PEEK) < (ssize_t)sizeof(begin); i++)
        loopback_turn(&server, 2);
    loopback_turn(&server, 20);
    close(fd);
    text = awaited("a.log");
    ck_assert_msg(str_to_u64(str_cut(&text, '\n'), &sent) == 0, "%s", seen);
    ck_assert_uint_gt(sent, 0);
    ck_assert_uint_lt(sent, 64 << 20);
    loopback_close(&server);
}
END_TEST

static uint64_t count_lines(struct str text)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/*
 * The FIFO has no reader. The log keeps the lines that fit the FIFO and the batch, drops the rest as whole lines,
 * counts them and reports the number.
 */
START_TEST(full_pipe_drops_whole_lines)
{
    const unsigned requests = 700;
    static char request[2048];
    uint64_t dropped;
    uint64_t lines = 0;

    memset(request, 'a', sizeof(request) - 1);
    memcpy(request, "GET /", 5);
    memcpy(request + sizeof(request) - 10, " HTTP/1.1", 10);
    loopback_make_directory(&server);
    ck_assert_int_eq(mkfifo(loopback_path(&server, "fifo"), 0600), 0);
    loopback_open(
        &server,
        "http: {large_client_header_buffers: 4 16k, server: {listen: 8080, return: 200 ok, access_log: "
        "'@/fifo short', error_page: 404 /x}, log_format: {short: '$status $uri.'}}");
    for (unsigned i = 0; i < requests; i++)
        loopback_request(&server, request);
    dropped = server.worker.counters->log_lines_dropped;
    ck_assert_uint_gt(dropped, 0);
    ck_assert(loopback_logged(&server, "lines dropped"));
    for (int turn = 0; turn < 1000 && lines + dropped < requests; turn++) {
        struct str rest = file_text("fifo");

        lines += count_lines(rest);
        while (rest.length) {
            struct str line = str_cut(&rest, '\n');

            ck_assert(str_starts(line, STR("200 /a")) && str_ends(line, STR("a.")));
        }
        loopback_skip_and_turn(&server, 10);
    }
    ck_assert_uint_eq(lines + dropped, requests);
    ck_assert_uint_eq(file_text("fifo").length, 0);
    loopback_close(&server);
}
END_TEST

/* Access log and error log share a FIFO. While it is full, the report of dropped lines cannot be written either. */
START_TEST(report_of_dropped_lines_is_repeated_until_it_is_written)
{
    static char request[2048];
    static const char filler[4096];
    const unsigned requests = 600;
    char expected[64];
    uint64_t lines = 0, dropped;
    ssize_t length;
    int fifo;

    memset(request, 'a', sizeof(request) - 1);
    memcpy(request, "GET /", 5);
    memcpy(request + sizeof(request) - 10, " HTTP/1.1", 10);
    loopback_make_directory(&server);
    ck_assert_int_eq(mkfifo(loopback_path(&server, "fifo"), 0600), 0);
    fifo = open(loopback_path(&server, "fifo"), O_RDWR | O_NONBLOCK);
    ck_assert_int_ge(fifo, 0);
    loopback_open(&server, "http: {large_client_header_buffers: 4 16k, server: {listen: 8080, return: 200 ok, "
                           "access_log: '@/fifo short'}, log_format: {short: '$status $uri.'}}");
    ck_assert_int_eq(error_log_open(&server.error_log, str_from(loopback_path(&server, "fifo")), LOG_ERROR), 0);
    while (write(fifo, filler, sizeof(filler)) > 0 || write(fifo, filler, 1) > 0)
        continue;
    for (unsigned i = 0; i < requests; i++)
        loopback_request(&server, request);
    dropped = server.worker.counters->log_lines_dropped;
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_gt(server.error_log.log.lost, 0);
    snprintf(expected, sizeof(expected), ": %llu lines dropped: the batch was full", (unsigned long long)dropped);
    for (int turn = 0; turn < 1000 && lines + dropped < requests; turn++) {
        while ((length = read(fifo, seen, sizeof(seen))) > 0)
            lines += count_lines(str_of(seen, (size_t)length));
        loopback_skip_and_turn(&server, 10);
    }
    ck_assert_uint_eq(lines + dropped, requests);
    access_log_destroy(server.worker.access_log);
    server.worker.access_log = NULL;
    ck_assert_int_ge(str_search(file_text("fifo"), str_from(expected)), 0);
    loopback_close(&server);
    error_log_finish(&server.error_log);
    close(fifo);
}
END_TEST

START_TEST(invalid_configurations_are_rejected)
{
    loopback_configuration_rejected("access_log: {format: main}", "needs a path");
    loopback_configuration_rejected("access_log: a.log nothing", "no log format \"nothing\"");
    loopback_configuration_rejected("access_log: a.log main gzip", "has no parameter \"gzip\"");
    loopback_configuration_rejected("access_log: a.log main flush=5", "unit");
    loopback_configuration_rejected("access_log: {path: a.log, flush: soon}", "soon");
    loopback_configuration_rejected("access_log: {path: a.log, formta: main}", "no key \"formta\"");
    loopback_configuration_rejected("access_log: 'syslog:server=unix:'", "is not a parameter of syslog");
}
END_TEST

/* `if` and `sample`; the rows that locations inherit have one counter. */
START_TEST(selected_requests_are_logged)
{
    static const struct {
        const char *name;
        const char *lines;
    } rows[] = {
        {"if.log", "log=1&n=1\nlog=2&n=2\nlog=3&n=3\nlog=4&n=4\nlog=5&n=5\nlog=00\n"},
        {"sample.log", "log=0&n=0\nlog=3&n=3\nlog=\n"},
        {"both.log", "log=1&n=1\nlog=3&n=3\nlog=5&n=5\n"},
    };
    int fds[3];

    loopback_open(&server, "http:\n"
                           "  log_format: {args: '$args'}\n"
                           "  access_log: ['@/if.log args flush=0s if=$arg_log', "
                           "{path: '@/sample.log', format: args, flush: 0s, sample: 1/3}, "
                           "'@/both.log args flush=0s if=$arg_log sample=0.5']\n"
                           "  server:\n"
                           "    listen: 8080\n"
                           "    location:\n"
                           "      /: {return: 200 ok}\n"
                           "      /b: {return: 200 ok}\n");
    for (int i = 0; i < 6; i++) {
        char line[64];

        snprintf(line, sizeof(line), "GET /%s?log=%d&n=%d HTTP/1.1", i % 2 ? "b" : "", i, i);
        loopback_request(&server, line);
    }
    loopback_request(&server, "GET /?log= HTTP/1.1");
    loopback_request(&server, "GET / HTTP/1.1");
    loopback_request(&server, "GET /?log=00 HTTP/1.1");
    for (int i = 0; i < 3; i++)
        fds[i] = open(loopback_path(&server, rows[i].name), O_RDONLY);
    loopback_close(&server);
    for (int i = 0; i < 3; i++) {
        ssize_t length = read(fds[i], seen, sizeof(seen));

        ck_assert_int_ge(length, 0);
        ck_assert_text(str_of(seen, (size_t)length), rows[i].lines);
        close(fds[i]);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lines_are_buffered, sent_fields_are_logged_as_sent, selected_requests_are_logged, shortest_flush_time_applies,
        buffer_is_written_at_exit, later_lines_go_to_the_reopened_log, aborted_response_logs_sent_bytes,
        full_pipe_drops_whole_lines, report_of_dropped_lines_is_repeated_until_it_is_written,
        invalid_configurations_are_rejected, NULL,
    };

    return loopback_run("access_log", tests);
}
