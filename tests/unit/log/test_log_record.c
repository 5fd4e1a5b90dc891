#include "log/log_record.h"

#include "base/limits.h"

#include "../runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct clock clock_2024 = {.wall_ms = 1704164645067};

static char room[LIMIT_LOG_RECORD];

static struct buffer empty_line(void)
{
    setenv("TZ", "XXX-1", 1);
    tzset();
    return (struct buffer){.data = room, .capacity = sizeof(room), .max = sizeof(room)};
}

static void check_json(const struct log_record *record, const char *after_pid)
{
    struct buffer line = empty_line();
    char expected[2048];

    ck_assert_int_eq(log_record_json(record, &line), 0);
    snprintf(expected, sizeof(expected),
             "{\"time\":\"2024-01-02T04:04:05.067+01:00\",\"level\":\"warn\",\"pid\":%ld%s}",
             (long)getpid(), after_pid);
    ck_assert_msg(str_equal(buffer_str(&line), str_from(expected)), STR_FMT, STR_ARG(buffer_str(&line)));
}

START_TEST(json_has_the_fields_of_the_record)
{
    struct log_fields fields = {.connection = 5, .client = STR("127.0.0.1"), .host = STR(""), .upstream = STR("u:1")};
    struct log_record record = {.level = LOG_WARN, .clock = &clock_2024, .message = STR("text")};

    check_json(&record, ",\"message\":\"text\"");
    record.fields = &fields;
    check_json(&record,
               ",\"connection\":5,\"message\":\"text\",\"client\":\"127.0.0.1\",\"host\":\"\",\"upstream\":\"u:1\"");
    fields = (struct log_fields){.server = STR("s"), .request = STR("GET / HTTP/1.1"), .request_id = STR("ab")};
    check_json(&record, ",\"message\":\"text\",\"server\":\"s\",\"request\":\"GET / HTTP/1.1\",\"request_id\":\"ab\"");
}
END_TEST

START_TEST(json_escapes_every_byte)
{
    struct log_fields fields = {.request = STR("\"},{\"level\":\"emerg\n\\")};
    struct log_record record = {.level = LOG_WARN, .clock = &clock_2024, .fields = &fields};

    record.message = STR("a\"b\\c\n\r\t\b\f\x01\x1f\x7f/ \xc3\xa9 \xff \xc3");
    check_json(&record, ",\"message\":\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001F\\u007F/ \xc3\xa9 \\ufffd \\ufffd\","
                        "\"request\":\"\\\"},{\\\"level\\\":\\\"emerg\\n\\\\\"");
    record.message = str_of("\0\xed\xa0\x80", 4); /* NUL, and a surrogate */
    fields.request.data = NULL;
    check_json(&record, ",\"message\":\"\\u0000\\ufffd\\ufffd\\ufffd\"");
}
END_TEST

START_TEST(journal_has_lines_and_lengths)
{
    struct log_fields fields = {.connection = 7, .client = STR("::1"), .host = STR(""),
                                .request = STR("a=b\nPRIORITY=0")};
    struct log_record record = {.level = LOG_WARN, .clock = &clock_2024, .message = STR("text"), .fields = &fields};
    struct buffer line = empty_line();
    static const char expected[] = "SLUICE_CONNECTION=7\nSLUICE_CLIENT=::1\n"
                                   "SLUICE_REQUEST\n\x0e\0\0\0\0\0\0\0a=b\nPRIORITY=0\nSLUICE_HOST=\n";

    ck_assert_int_eq(log_record_journal(&record, &line), 0);
    ck_assert(str_equal(buffer_str(&line), str_of(expected, sizeof(expected) - 1)));
    line.length = 0;
    fields = (struct log_fields){.request_id = STR("x"), .upstream = STR("y"), .server = STR("z")};
    ck_assert_int_eq(log_record_journal(&record, &line), 0);
    ck_assert(str_equal(buffer_str(&line), STR("SLUICE_SERVER=z\nSLUICE_REQUEST_ID=x\nSLUICE_UPSTREAM=y\n")));
    line.length = 0;
    record.fields = NULL;
    ck_assert_int_eq(log_record_journal(&record, &line), 0);
    ck_assert_uint_eq(line.length, 0);
}
END_TEST

START_TEST(longest_record_fits)
{
    static char bytes[100000];
    struct str longest = str_of(bytes, sizeof(bytes));
    struct log_fields fields = {UINT64_MAX, longest, longest, longest, longest, longest, longest};
    struct log_record record = {.level = LOG_NOTICE, .clock = &clock_2024, .fields = &fields};
    struct buffer line = empty_line();
    size_t zeros = 0;

    record.message = str_of(bytes, LIMIT_LOG_LINE);
    ck_assert_int_eq(log_record_json(&record, &line), 0);
    for (size_t i = 0; i + 6 <= line.length; i++)
        zeros += str_starts(str_skip(buffer_str(&line), i), STR("\\u0000"));
    ck_assert_uint_eq(zeros, LIMIT_LOG_LINE + LOG_FIELD_COUNT * LIMIT_LOG_FIELD);
    line.max = line.capacity = line.length - 1;
    line.length = 0;
    ck_assert_int_eq(log_record_json(&record, &line), -ENOBUFS);
    line.length = 0;
    line.max = line.capacity = 2000;
    ck_assert_int_eq(log_record_journal(&record, &line), -ENOBUFS);
}
END_TEST

int main(void)
{
    return run_tests("log_record", (const TTest *const[]){json_has_the_fields_of_the_record, json_escapes_every_byte,
                                                          journal_has_lines_and_lengths, longest_record_fits, NULL});
}
