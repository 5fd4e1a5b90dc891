/* The screen of `sluice top`: lines, sizes, help, faults. */
#include "screen_fixture.h"

#include <stdio.h>

#define KEYS "  l locations  z servers  t streams  c caches  h help"

START_TEST(whole_page_is_shown)
{
    load(before, page);
    compose(TOP_BY_REQUESTS, 80, 24, false);
    ck_assert_uint_eq(bed.screen.used, 24);
    for (unsigned i = 0; i < 23; i++)
        assert_line(i, i < sizeof(lines) / sizeof(lines[0]) ? lines[i] : "");
    assert_line(23, "q quit  s sort: requests" KEYS);
    ck_assert_int_eq(bed.screen.lines[0].style, TOP_TITLE);
    ck_assert_int_eq(bed.screen.lines[7].style, TOP_HEADING);
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* The first letters of the upstream servers, in order. */
static const struct {
    enum top_sort sort;
    const char *name, *order;
} sorts[] = {
    {TOP_BY_REQUESTS, "requests", "acb"}, {TOP_BY_FAILURES, "failures", "cba"}, {TOP_BY_ACTIVE, "active", "bac"},
    {TOP_BY_TIME, "time", "abc"}, {TOP_BY_NAME, "name", "abc"},
};

START_TEST(servers_are_sorted_by_each_column)
{
    char order[4] = "", keys[81];

    load(before, page);
    compose(sorts[_i].sort, 80, 24, false);
    for (unsigned i = 0; i < 3; i++)
        order[i] = bed.screen.lines[12 + i].text[0];
    ck_assert_str_eq(order, sorts[_i].order);
    snprintf(keys, sizeof(keys), "q quit  s sort: %s" KEYS, sorts[_i].name);
    assert_line(23, keys);
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(screen_fits_each_size)
{
    load(before, _i ? lists : page);
    for (unsigned columns = 0; columns < 300; columns += columns < 4 ? 1 : 19) {
        for (unsigned rows = 0; rows < 300; rows += rows < 40 ? 1 : 31) {
            compose_list(columns % TOP_LISTS, TOP_BY_NAME, columns, rows, rows % 2);
            ck_assert_uint_eq(bed.screen.used, rows < LIMIT_TOP_ROWS ? rows : LIMIT_TOP_ROWS);
            for (unsigned i = 0; i < bed.screen.used; i++)
                ck_assert_uint_le(strlen(bed.screen.lines[i].text), bed.screen.columns);
            ck_assert_uint_eq(bed.screen.columns, columns < LIMIT_TOP_COLUMNS ? columns : LIMIT_TOP_COLUMNS);
        }
    }
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* A short terminal shows a part of both tables, and the number of the servers that are left out. */
START_TEST(short_screen_counts_omitted_servers)
{
    load(before, page);
    compose(TOP_BY_REQUESTS, 80, 15, false);
    assert_line(7, lines[7]);
    assert_line(8, lines[8]);
    assert_line(9, lines[9]);
    assert_line(11, lines[11]);
    assert_line(12, lines[12]);
    assert_line(13, "and 2 more");
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(help_and_restart_are_shown)
{
    load("{\"requests_total\": 0, \"start_time_seconds\": 2}", page);
    compose(TOP_BY_REQUESTS, 80, 24, true);
    assert_line(6, "The server has restarted.");
    assert_line(7, "q                quit");
    assert_line(20, "");
    assert_line(23, "q quit  s sort: requests" KEYS);
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(fault_is_shown_before_the_second_reading)
{
    load(before, page);
    bed.monitor.readings = 0;
    snprintf(bed.monitor.fault, sizeof(bed.monitor.fault), "cannot connect to \033host");
    compose(TOP_BY_REQUESTS, 80, 24, false);
    assert_line(0, "sluice  http://127.0.0.1/status");
    assert_line(1, "");
    assert_line(23, "cannot connect to \\x1bhost");
    ck_assert_int_eq(bed.screen.lines[23].style, TOP_FAULT);
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* Values and texts at their limits, in each width: no line is longer than the screen or has a control character. */
START_TEST(hostile_values_stay_within_the_screen)
{
    static const char hostile[] =
        "{\"requests_total\": 18446744073709551615, \"start_time_seconds\": 9223372036854775808,"
        "\"workers\": 18446744073709551615,"
        "\"build_info\": {\"version\": \"\\e]0;\\a%s%n\"},"
        "\"connections\": {\"waiting\": 18446744073709551615, \"reading\": 18446744073709551615},"
        "\"sent_bytes_total\": {\"\\e[31m\\\\\": 18446744073709551615, \"b\\r\\n\": 18446744073709551615},"
        "\"location_zones\": [{\"zone\": \"\\e[31m%n\", \"requests_total\": 18446744073709551615,"
        "\"responses_total\": {\"5xx\": 18446744073709551615}, \"request_duration_seconds\": {\"buckets\":"
        "{\"18446744073708\": 1, \"+Inf\": 18446744073709551615}, \"sum\": 18446744073708}}, {}],"
        "\"server_zones\": [{\"zone\": \"\\e[31m%n\"}],"
        "\"caches\": [{\"cache\": \"\\e[31m%n\", \"bytes\": 18446744073709551615,"
        "\"files\": 18446744073709551615, \"max_bytes\": 18446744073709551615,"
        "\"responses_total\": {\"HIT\": 18446744073709551615, \"MISS\": 1}}],"
        "\"upstreams\": [{\"upstream\": \"\\t\\x9b\", \"server\": \"\\u2028\", \"state\": \"\\0\","
        "\"requests_total\": 18446744073709551615,"
        "\"active\": 18446744073709551615, \"answer_seconds\": 18446744073708}, {}]}";

    load("{\"requests_total\": 0}", hostile);
    for (unsigned columns = 1; columns < 260; columns += 3) {
        compose_list(columns % (TOP_LISTS + 1), TOP_BY_TIME, columns, 24, false);
        for (unsigned i = 0; i < bed.screen.used; i++) {
            ck_assert_uint_le(strlen(bed.screen.lines[i].text), columns);
            for (const char *at = bed.screen.lines[i].text; *at; at++)
                ck_assert(*at >= ' ' && *at <= '~');
        }
    }
    top_monitor_finish(&bed.monitor);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, whole_page_is_shown);
    tcase_add_loop_test(tcase, servers_are_sorted_by_each_column, 0, TOP_SORTS);
    tcase_add_loop_test(tcase, screen_fits_each_size, 0, 2);
    tcase_add_test(tcase, short_screen_counts_omitted_servers);
    tcase_add_test(tcase, help_and_restart_are_shown);
    tcase_add_test(tcase, fault_is_shown_before_the_second_reading);
    tcase_add_test(tcase, hostile_values_stay_within_the_screen);
}

int main(void)
{
    return run_suite("top_screen", add_tests);
}
