#include "base/limits.h"
#include "base/log.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct recorded {
    char line[2 * LIMIT_LOG_LINE];
    size_t length;
    int count;
};

static void record_line(void *owner, enum log_level level, struct str line)
{
    struct recorded *recorded = owner;

    memcpy(recorded->line, line.data, line.length);
    recorded->line[line.length] = '\0';
    recorded->length = line.length;
    recorded->count++;
}

START_TEST(lines_have_the_format_of_nginx)
{
    struct clock clock = {.wall_ms = 1795190701999};
    struct recorded recorded = {.count = 0};
    struct log log = {.level = LOG_NOTICE, .clock = &clock, .sink = record_line, .owner = &recorded};
    char want[128];

    setenv("TZ", "UTC", 1);
    tzset();
    snprintf(want, sizeof(want), "2026/11/20 16:05:01 [warn] %ld#0: hello 7\n", (long)getpid());
    log_write(&log, LOG_WARN, "hello %d", 7);
    ck_assert_str_eq(recorded.line, want);
    log_write(&log, LOG_INFO, "dropped");
    ck_assert_int_eq(recorded.count, 1);
    log.clock = NULL;
    log_write(&log, LOG_NOTICE, "now");
    ck_assert_int_eq(recorded.count, 2);
    ck_assert_ptr_null(strstr(recorded.line, "1970/"));
}
END_TEST

START_TEST(control_bytes_cannot_forge_a_line)
{
    struct recorded recorded = {.count = 0};
    struct log log = {.level = LOG_DEBUG, .sink = record_line, .owner = &recorded};

    log_write(&log, LOG_ERROR, "a\n2026 [emerg] forged\x1b[2J\x7f\r \xc3\xa9");
    ck_assert_ptr_nonnull(strstr(recorded.line, "a\\x0a2026 [emerg] forged\\x1b[2J\\x7f\\x0d \xc3\xa9\n"));
    ck_assert_ptr_eq(strchr(recorded.line, '\n'), recorded.line + recorded.length - 1);
}
END_TEST

START_TEST(fields_follow_the_text)
{
    struct recorded recorded = {.count = 0};
    struct log log = {.level = LOG_WARN, .sink = record_line, .owner = &recorded};
    struct log_fields fields = {.connection = 18446744073709551615u, .client = STR("c"), .server = STR(""),
                                .request = STR("\"\n"), .host = STR("h"), .request_id = STR("i"), .upstream = STR("u")};

    log_write_fields(&log, LOG_WARN, &fields, "text %d", 1);
    ck_assert_str_eq(strstr(recorded.line, "#0: "),
                     "#0: *18446744073709551615 text 1, client: c, server: , request: \"\"\\x0a\", host: \"h\", id: i, "
                     "upstream: \"u\"\n");
    fields = (struct log_fields){.connection = 0};
    log_write_fields(&log, LOG_WARN, &fields, "text");
    ck_assert_str_eq(strstr(recorded.line, "#0: "), "#0: text\n");
    log_write_fields(&log, LOG_NOTICE, &fields, "dropped");
    ck_assert_int_eq(recorded.count, 2);
}
END_TEST

static void keep_record(void *owner, const struct log_record *record)
{
    char line[LIMIT_LOG_LINE];

    ck_assert_ptr_nonnull(record->clock);
    ck_assert(str_equal(record->message, STR("a\nb")));
    record_line(owner, record->level, log_record_text(record, true, line));
}

START_TEST(records_have_the_raw_text)
{
    struct recorded recorded = {.count = 0};
    struct log log = {.level = LOG_WARN, .write = keep_record, .owner = &recorded};

    log_write_fields(&log, LOG_WARN, &(struct log_fields){.connection = 2}, "a\nb");
    ck_assert_str_eq(recorded.line, "*2 a\\x0ab");
}
END_TEST

START_TEST(long_lines_are_truncated)
{
    struct recorded recorded = {.count = 0};
    struct log log = {.level = LOG_DEBUG, .sink = record_line, .owner = &recorded};
    char text[3 * LIMIT_LOG_LINE];

    memset(text, '\1', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    log_write(&log, LOG_ERROR, "%s", text);
    ck_assert_uint_le(recorded.length, LIMIT_LOG_LINE);
    ck_assert_uint_gt(recorded.length, LIMIT_LOG_LINE - 8);
    ck_assert_int_eq(recorded.line[recorded.length - 1], '\n');
}
END_TEST

START_TEST(log_without_a_sink_is_silent)
{
    struct recorded recorded = {.count = 0};
    struct log log = {.level = LOG_DEBUG, .owner = &recorded};

    log_write(&log, LOG_ERROR, "nowhere");
    log_write(NULL, LOG_ERROR, "nowhere");
    ck_assert_int_eq(recorded.count, 0);
    log.sink = record_line;
    log_write(&log, LOG_ERROR, "somewhere");
    ck_assert_int_eq(recorded.count, 1);
    ck_assert_ptr_nonnull(strstr(recorded.line, "somewhere"));
}
END_TEST

START_TEST(each_level_is_parsed_from_its_name)
{
    enum log_level level = LOG_EMERG;

    for (int i = LOG_EMERG; i <= LOG_DEBUG; i++) {
        ck_assert_int_eq(log_level_parse(str_from(log_level_name((enum log_level)i)), &level), 0);
        ck_assert_int_eq((int)level, i);
    }
    ck_assert_int_eq(log_level_parse(STR("warning"), &level), -EINVAL);
    ck_assert_int_eq(log_level_parse(STR(""), &level), -EINVAL);
    ck_assert_int_eq((int)level, LOG_DEBUG);
}
END_TEST

START_TEST(one_line_per_second)
{
    struct log_limit limit = {0};
    unsigned allowed = 0;

    for (uint64_t now_ms = 1; now_ms <= 10000; now_ms++)
        allowed += log_limit_allows(&limit, now_ms);
    ck_assert_uint_eq(allowed, 10);
    ck_assert(log_limit_allows(&limit, UINT64_MAX));
    ck_assert(!log_limit_allows(&limit, UINT64_MAX));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, lines_have_the_format_of_nginx);
    tcase_add_test(tcase, control_bytes_cannot_forge_a_line);
    tcase_add_test(tcase, fields_follow_the_text);
    tcase_add_test(tcase, records_have_the_raw_text);
    tcase_add_test(tcase, long_lines_are_truncated);
    tcase_add_test(tcase, log_without_a_sink_is_silent);
    tcase_add_test(tcase, each_level_is_parsed_from_its_name);
    tcase_add_test(tcase, one_line_per_second);
}

int main(void)
{
    return run_suite("log", add_tests);
}
