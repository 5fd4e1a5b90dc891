#include "conf/template.h"

#include "../runner.h"

#include <errno.h>

static const struct {
    const char *value;
    const char *log;
    const char *json;
} cases[] = {
    {"", "", ""},
    {"GET / HTTP/1.1", "GET / HTTP/1.1", "GET / HTTP/1.1"},
    {"a\"b\\c", "a\\x22b\\x5Cc", "a\\\"b\\\\c"},
    {"\n\r\t\b\f", "\\x0A\\x0D\\x09\\x08\\x0C", "\\n\\r\\t\\b\\f"},
    {"\x1b[31m\x7f", "\\x1B[31m\\x7F", "\\u001B[31m\\u007F"},
    {"\xc3\xa4x", "\\xC3\\xA4x", "\xc3\xa4x"},
    {"\xe2\x82\xac\xf0\x9f\x98\x80", "\\xE2\\x82\\xAC\\xF0\\x9F\\x98\\x80", "\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"\xc3", "\\xC3", "\\ufffd"},
    {"\xc0\xaf", "\\xC0\\xAF", "\\ufffd\\ufffd"},
    {"\xed\xa0\x80", "\\xED\\xA0\\x80", "\\ufffd\\ufffd\\ufffd"},
    {"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
    {"\xf0\x82\x82\xacz", "\\xF0\\x82\\x82\\xACz", "\\ufffd\\ufffd\\ufffd\\ufffdz"},
    {"\xff", "\\xFF", "\\ufffd"},
};

START_TEST(each_byte_has_its_escape_in_log_and_json)
{
    struct buffer log = {0};
    struct buffer json = {0};

    ck_assert_int_eq(template_escape_log(&log, str_from(cases[_i].value)), 0);
    ck_assert_int_eq(template_escape_json(&json, str_from(cases[_i].value)), 0);
    ck_assert_msg(str_equal(buffer_str(&log), str_from(cases[_i].log)), "log: " STR_FMT,
                  STR_ARG(buffer_str(&log)));
    ck_assert_msg(str_equal(buffer_str(&json), str_from(cases[_i].json)), "json: " STR_FMT,
                  STR_ARG(buffer_str(&json)));
    buffer_finish(&log);
    buffer_finish(&json);
}
END_TEST

START_TEST(nul_byte_is_escaped_in_json)
{
    struct buffer json = {0};

    ck_assert_int_eq(template_escape_json(&json, str_of("a\0b", 3)), 0);
    ck_assert(str_equal(buffer_str(&json), STR("a\\u0000b")));
    buffer_finish(&json);
}
END_TEST

START_TEST(incomplete_escapes_write_nothing)
{
    struct buffer small = {.max = 4};

    ck_assert_int_eq(template_escape_log(&small, STR("a\"b")), -ENOBUFS);
    ck_assert_uint_eq(small.length, 0);
    ck_assert_int_eq(template_escape_json(&small, STR("ab\"c\"")), -ENOBUFS);
    ck_assert_uint_eq(small.length, 0);
    buffer_finish(&small);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_byte_has_its_escape_in_log_and_json, 0, (int)(sizeof(cases) / sizeof(cases[0])));
    tcase_add_test(tcase, nul_byte_is_escaped_in_json);
    tcase_add_test(tcase, incomplete_escapes_write_nothing);
}

int main(void)
{
    return run_suite("escape", add_tests);
}
