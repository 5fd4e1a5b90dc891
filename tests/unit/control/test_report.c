#include "control/report.h"

#include "../runner.h"

#include <errno.h>

static const char *const columns[] = {"name", "count", "change", "until", NULL};

static void write_rows(struct report *report)
{
    report_begin(report, "things", columns);
    report_row(report);
    report_text(report, STR("a\t\"b\"\n\x1b[31m\xff"));
    report_number(report, UINT64_MAX);
    report_signed(report, -3);
    report_time(report, 0);
    report_row(report);
    report_text(report, (struct str){NULL, 0});
    report_number(report, 0);
    report_signed(report, INT64_MAX);
    report_time(report, -1);
    report_end(report);
}

static void assert_written(struct report *report, const char *expected)
{
    ck_assert_int_eq(report->error, 0);
    ck_assert_int_eq(buffer_append(&report->out, str_of("", 1)), 0);
    ck_assert_str_eq(report->out.data, expected);
    buffer_finish(&report->out);
}

START_TEST(json_is_escaped)
{
    struct report report = {.table = false};

    write_rows(&report);
    assert_written(&report,
                   "{\"things\": [\n"
                   "  {\"name\": \"a\\t\\\"b\\\"\\n\\u001B[31m\\ufffd\", \"count\": 18446744073709551615, "
                   "\"change\": -3, \"until\": \"1970-01-01T00:00:00Z\"},\n"
                   "  {\"name\": null, \"count\": 0, \"change\": 9223372036854775807, \"until\": null}\n]}\n");
}
END_TEST

START_TEST(table_has_no_control_characters_in_fields)
{
    struct report report = {.table = true};

    write_rows(&report);
    assert_written(&report, "name\tcount\tchange\tuntil\n"
                            "a?\"b\"??[31m?\t18446744073709551615\t-3\t1970-01-01T00:00:00Z\n"
                            "-\t0\t9223372036854775807\t-\n");
}
END_TEST

/* U+0080, CSI and U+009F are replaced; U+00A0, U+00DF and the bytes of longer characters are not. */
START_TEST(table_has_no_c1_and_invalid_characters)
{
    static const char *const one[] = {"name", NULL};
    struct report report = {.table = true};

    report_begin(&report, "things", one);
    report_row(&report);
    report_text(&report, STR("\xc2\x80 \xc2\x9b" "31m \xc2\x9f \xc2\xa0 \xc3\x9f \xe2\x80\x9f \xc2"));
    report_row(&report);
    report_text(&report, STR("\x9b" "1m"));
    report_end(&report);
    assert_written(&report, "name\n?? ??31m ?? \xc2\xa0 \xc3\x9f \xe2\x80\x9f ?\n?1m\n");
}
END_TEST

START_TEST(lists_may_be_empty)
{
    struct report json = {.table = false};
    struct report table = {.table = true};

    report_begin(&json, "things", columns);
    report_end(&json);
    assert_written(&json, "{\"things\": []}\n");
    report_begin(&table, "things", columns);
    report_end(&table);
    assert_written(&table, "name\tcount\tchange\tuntil\n");
}
END_TEST

START_TEST(incomplete_lists_have_notes)
{
    static const struct report_note notes[] = {{"omitted", "things that are not listed", 3},
                                               {"silent", "servers without a response", 0},
                                               {NULL, NULL, 0}};
    static const char *const one[] = {"a", NULL};
    struct report json = {.table = false};
    struct report table = {.table = true};

    report_begin(&json, "things", one);
    report_end_partial(&json, notes);
    assert_written(&json, "{\"things\": [], \"omitted\": 3, \"silent\": 0}\n");
    report_begin(&table, "things", one);
    report_row(&table);
    report_number(&table, 1);
    report_end_partial(&table, notes);
    assert_written(&table, "a\n1\n\nthings that are not listed: 3\n");
}
END_TEST

START_TEST(years_are_bounded)
{
    static const char *const one[] = {"at", NULL};
    struct report report = {.table = true};

    report_begin(&report, "times", one);
    report_row(&report);
    report_time(&report, 253402300799);
    report_row(&report);
    report_time(&report, 253402300800);
    report_row(&report);
    report_time(&report, INT64_MAX);
    report_end(&report);
    assert_written(&report, "at\n9999-12-31T23:59:59Z\n-\n-\n");
}
END_TEST

START_TEST(size_is_bounded)
{
    struct report report = {.out = {.max = 60}};

    write_rows(&report);
    ck_assert_int_eq(report.error, -ENOBUFS);
    ck_assert_uint_le(report.out.length, 60);
    buffer_finish(&report.out);
}
END_TEST

int main(void)
{
    return run_tests("report", (const TTest *const[]){
            json_is_escaped, table_has_no_control_characters_in_fields,
            table_has_no_c1_and_invalid_characters, lists_may_be_empty,
            incomplete_lists_have_notes, years_are_bounded, size_is_bounded, NULL});
}
