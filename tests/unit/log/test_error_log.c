#include "log/error_log.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static char path[128];

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/test_error_log.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
}

static void teardown(void)
{
    unlink(path);
    rmdir(directory);
}

static const char *content(int fd)
{
    static char text[65536];
    ssize_t length = read(fd, text, sizeof(text) - 1);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

START_TEST(lines_below_the_level_are_dropped)
{
    struct error_log log;
    int reader;

    setup();
    ck_assert_int_eq(error_log_open(&log, str_from(path), LOG_WARN), 0);
    log_write(&log.log, LOG_WARN, "kept");
    log_write(&log.log, LOG_NOTICE, "not kept");
    reader = open(path, O_RDONLY);
    ck_assert_ptr_nonnull(strstr(content(reader), "[warn] "));
    lseek(reader, 0, SEEK_SET);
    ck_assert_ptr_null(strstr(content(reader), "not kept"));
    error_log_finish(&log);
    error_log_finish(&log);
    teardown();
}
END_TEST

START_TEST(falls_back_to_stderr)
{
    struct error_log log;
    int saved_fd = dup(STDERR_FILENO);
    int pipes[2];

    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    ck_assert_int_eq(error_log_open(&log, STR("/nonexistent/log"), LOG_WARN), -ENOENT);
    log_write(&log.log, LOG_EMERG, "seen");
    dup2(saved_fd, STDERR_FILENO);
    ck_assert_ptr_nonnull(strstr(content(pipes[0]), "seen"));
    error_log_finish(&log);
}
END_TEST

START_TEST(start_errors_also_go_to_stderr)
{
    struct error_log log;
    int saved_fd = dup(STDERR_FILENO);
    int pipes[2];

    setup();
    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    ck_assert_int_eq(error_log_open(&log, str_from(path), LOG_WARN), 0);
    log.echo = true;
    log_write(&log.log, LOG_EMERG, "bind() to %s failed", "x");
    log_write(&log.log, LOG_ERROR, "only in the file");
    log.echo = false;
    log_write(&log.log, LOG_EMERG, "later");
    dup2(saved_fd, STDERR_FILENO);
    ck_assert_str_eq(content(pipes[0]), "sluice: [emerg] bind() to x failed\n");
    error_log_finish(&log);
    teardown();
}
END_TEST

START_TEST(lost_lines_are_counted_and_reported)
{
    struct error_log log;
    const char *text;
    int reader;

    setup();
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(error_log_open(&log, str_from(path), LOG_WARN), 0);
    for (int i = 0; i < 5000; i++)
        log_write(&log.log, LOG_WARN, "line %d of many that fill the pipe, because they are not read", i);
    ck_assert_uint_gt(log.log.lost, 100);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    while (content(reader)[0])
        continue;
    log_write(&log.log, LOG_WARN, "after");
    text = content(reader);
    ck_assert_ptr_nonnull(strstr(text, "lines were lost"));
    ck_assert_ptr_nonnull(strstr(text, "after"));
    ck_assert_uint_eq(log.log.lost, log.lost_reported);
    error_log_finish(&log);
    teardown();
}
END_TEST

START_TEST(log_continues_after_reopening)
{
    struct error_log log;
    int pipes[2];

    setup();
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(error_log_open(&log, str_from(path), LOG_WARN), 0);
    error_log_replace(&log, pipes[1]);
    log_write(&log.log, LOG_WARN, "in the new one");
    ck_assert_ptr_nonnull(strstr(content(pipes[0]), "in the new one"));
    error_log_finish(&log);
    teardown();
}
END_TEST

static const char *received(int fd)
{
    static char text[4096];
    ssize_t length = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* Opens an error log that sends to a new receiver, a socket pair of datagrams. */
static int open_receiver(struct error_log *log, enum syslog_form form)
{
    struct syslog syslog = {.facility = 1, .tag = "t", .form = form};
    int sockets[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
    ck_assert_int_eq(error_log_open(log, STR("stderr"), LOG_INFO), 0);
    error_log_set_destination(log, sockets[0], &syslog, ERROR_LOG_TEXT);
    return sockets[1];
}

START_TEST(each_line_is_a_datagram)
{
    struct error_log log;
    int receiver = open_receiver(&log, SYSLOG_RFC3164);
    const char *text;

    log_write(&log.log, LOG_WARN, "a #0: b\nc");
    text = received(receiver);
    ck_assert(strncmp(text, "<12>", 4) == 0);
    ck_assert_ptr_nonnull(strstr(text, " t: 2"));
    ck_assert_str_eq(strstr(text, " [warn] ") + 8 + strcspn(strstr(text, " [warn] ") + 8, "#"), "#0: a #0: b\\x0ac");
    ck_assert_str_eq(received(receiver), "");
    error_log_finish(&log);
    close(receiver);
    receiver = open_receiver(&log, SYSLOG_RFC5424);
    log_write(&log.log, LOG_EMERG, "a #0: b");
    text = received(receiver);
    ck_assert(strncmp(text, "<8>1 2", 6) == 0);
    ck_assert_str_eq(strstr(text, " - - "), " - - a #0: b");
    log_write(&log.log, LOG_INFO, "%04000d", 0);
    ck_assert_uint_ge(strlen(received(receiver)), 1900);
    error_log_finish(&log);
    close(receiver);
}
END_TEST

START_TEST(lines_are_json)
{
    const struct log_fields fields = {.connection = 3, .client = STR("\n")};
    struct error_log log;
    int receiver = open_receiver(&log, SYSLOG_RFC3164);
    int pipes[2];
    const char *text;

    log.is_json = true;
    log_write_fields(&log.log, LOG_WARN, &fields, "a\"b");
    text = strchr(received(receiver), '{');
    ck_assert_ptr_nonnull(strstr(text, "\"level\":\"warn\""));
    ck_assert_str_eq(strstr(text, ",\"connection\""), ",\"connection\":3,\"message\":\"a\\\"b\",\"client\":\"\\n\"}");
    ck_assert_int_eq(pipe(pipes), 0);
    error_log_set_destination(&log, pipes[1], NULL, ERROR_LOG_JSON);
    log_write(&log.log, LOG_WARN, "in a file");
    text = content(pipes[0]);
    ck_assert_ptr_eq(text, strstr(text, "{\"time\":\"2"));
    ck_assert_str_eq(strstr(text, ",\"message\""), ",\"message\":\"in a file\"}\n");
    error_log_finish(&log);
    close(receiver);
}
END_TEST

START_TEST(journal_gets_fields)
{
    const struct log_fields fields = {.connection = 3, .request = STR("GET")};
    static const char expected[] =
        "SLUICE_CONNECTION=3\nSLUICE_REQUEST=GET\nPRIORITY=4\nSYSLOG_FACILITY=1\nSYSLOG_IDENTIFIER=t\n"
        "MESSAGE\n\x19\0\0\0\0\0\0\0*3 a\\x0ab, request: \"GET\"\n";
    struct error_log log;
    int receiver = open_receiver(&log, SYSLOG_JOURNAL);
    char datagram[512];
    ssize_t length;

    log_write_fields(&log.log, LOG_WARN, &fields, "a\nb");
    length = recv(receiver, datagram, sizeof(datagram), MSG_DONTWAIT);
    ck_assert_int_eq(length, sizeof(expected) - 1);
    ck_assert_mem_eq(datagram, expected, sizeof(expected) - 1);
    error_log_finish(&log);
    close(receiver);
}
END_TEST

/* The number of lost lines is sent at most once per second. */
START_TEST(lost_datagrams_are_counted)
{
    struct clock clock = {.monotonic_ms = 5000, .wall_ms = 1704164645067};
    struct error_log log;
    int receiver = open_receiver(&log, SYSLOG_RFC3164);
    unsigned reports = 0;

    log.log.clock = &clock;
    for (int round = 0; round < 3; round++) {
        while (log.log.lost == log.lost_reported)
            log_write(&log.log, LOG_WARN, "fills the queue of the receiver");
        for (const char *text = received(receiver); *text; text = received(receiver))
            reports += strstr(text, "1 lines were lost") != NULL;
        log_write(&log.log, LOG_WARN, "room");
        for (const char *text = received(receiver); *text; text = received(receiver))
            reports += strstr(text, "error log: 1 lines were lost, because the log could not be written") != NULL;
        if (log.log.lost != log.lost_reported)
            clock.monotonic_ms += 1000;
        log_write(&log.log, LOG_WARN, "later");
    }
    ck_assert_uint_eq(log.log.lost, 3);
    for (const char *text = received(receiver); *text; text = received(receiver))
        reports += strstr(text, "1 lines were lost") != NULL;
    ck_assert_uint_eq(reports, 3);
    ck_assert_uint_eq(log.lost_reported, 3);
    error_log_finish(&log);
    close(receiver);
}
END_TEST

int main(void)
{
    return run_tests("error_log", (const TTest *const[]){
                                      lines_below_the_level_are_dropped, falls_back_to_stderr,
                                      start_errors_also_go_to_stderr, lost_lines_are_counted_and_reported,
                                      log_continues_after_reopening, each_line_is_a_datagram,
                                      lines_are_json, journal_gets_fields, lost_datagrams_are_counted, NULL});
}
