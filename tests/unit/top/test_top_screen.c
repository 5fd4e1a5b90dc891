#include "top/top_screen.h"

#include "../runner.h"

#include <stdio.h>

#define KEYS "  l locations  z servers  t streams  c caches  h help"

/* A monitor with two readings, the composed screen, and the page that the second reading has. */
static struct {
    struct top_server server;
    struct top_monitor monitor;
    struct top_screen screen;
} bed;

static const char before[] = "{\"requests_total\": 0, \"start_time_seconds\": 1000}";

static const char page[] =
    "{\"build_info\": {\"version\": \"1.2.3\"}, \"start_time_seconds\": 1000, \"workers\": 4,"
    "\"requests_total\": 12345,"
    "\"connections\": {\"handshake\": 1, \"reading\": 2, \"writing\": 3, \"waiting\": 4},"
    "\"connections_accepted_total\": 7,"
    "\"responses_total\": {\"2xx\": 12000, \"3xx\": 300, \"4xx\": 40, \"5xx\": 5},"
    "\"tls_handshakes_total\": {\"full\": 2, \"resumed\": 3, \"failed\": 1},"
    "\"sent_bytes_total\": {\"plain\": 1024, \"ktls-sendfile\": 3072, \"user\": 0},"
    "\"transfers_total\": {\"plain\": 5, \"ktls-sendfile\": 6, \"user\": 0},"
    "\"request_duration_seconds\": {\"buckets\": {\"0.1\": 50, \"0.2\": 90, \"+Inf\": 100}},"
    "\"upstreams\": [{\"upstream\": \"b\", \"server\": \"one\", \"state\": \"up\", \"requests_total\": 10,"
    " \"failures_total\": 1, \"active\": 3, \"answer_seconds\": 0.25},"
    "{\"upstream\": \"a\", \"server\": \"two\", \"state\": \"unhealthy\", \"requests_total\": 30, \"active\": 1,"
    " \"answer_seconds\": 0.5},"
    "{\"upstream\": \"c\\u001b[2J\", \"server\": \"three\", \"state\": \"resting\", \"requests_total\": 20,"
    " \"failures_total\": 9}]}";

#define LOCATION(zone, requests, failures, fast, all, sum) \
    "{\"zone\": \"" zone "\", \"requests_total\": " requests ", \"responses_total\": {\"5xx\": " failures "}, " \
    "\"request_duration_seconds\": {\"buckets\": {\"0.1\": " fast ", \"1\": " all ", \"+Inf\": " all "}, " \
    "\"sum\": " sum "}}"

static const char locations[] =
    "{\"requests_total\": 1, \"sent_bytes_total\": {\"plain\": 1}, \"location_zones\": ["
    LOCATION("b.test /", "10", "1", "10", "10", "0.5") ", " LOCATION("a.test /api/", "4", "0", "0", "4", "3") ", "
    LOCATION("c\\u001b[2J", "20", "9", "20", "20", "0.25") ", {\"zone\": \"d\"}],"
    "\"upstreams\": [{\"upstream\": \"u\", \"server\": \"s\"}]}";

static const char lists[] =
    "{\"requests_total\": 1, \"sent_bytes_total\": {\"plain\": 1}, \"location_zones\": ["
    LOCATION("a.test /", "10", "1", "10", "10", "0.5") "], \"server_zones\": ["
    LOCATION("b.test", "10", "1", "10", "10", "0.5") ", " LOCATION("a.test", "20", "0", "10", "20", "1") "],"
    "\"stream_zones\": [{\"zone\": \"mail\", \"connections_total\": 2, \"active\": 5, \"sessions_total\": {\"5xx\": 1},"
    " \"session_duration_seconds\": {\"buckets\": {\"0.1\": 2, \"+Inf\": 2}, \"sum\": 0.1}},"
    " {\"zone\": \"dns\", \"connections_total\": 4}],"
    "\"caches\": [{\"cache\": \"two\\u001b[2J\", \"files\": 3, \"bytes\": 2048,"
    "\"responses_total\": {\"HIT\": 30, \"MISS\": 10}},"
    "{\"cache\": \"one\", \"max_bytes\": 1073741824, \"responses_total\": {\"MISS\": 20}}, {\"cache\": \"idle\"}],"
    "\"upstreams\": [{\"upstream\": \"u\", \"server\": \"s\"}]}";

static void load(const char *first, const char *second)
{
    memset(&bed, 0, sizeof(bed));
    snprintf(bed.server.url.text, sizeof(bed.server.url.text), "http://127.0.0.1/status");
    top_monitor_init(&bed.monitor, &bed.server, 1);
    ck_assert_int_eq(top_sample_parse(str_from(first), &bed.monitor.samples[0]), 0);
    ck_assert_int_eq(top_sample_parse(str_from(second), &bed.monitor.samples[1]), 0);
    bed.monitor.samples[1].read_us = 1000000;
    ck_assert_int_eq(top_rates_compute(&bed.monitor.samples[0], &bed.monitor.samples[1], &bed.monitor.rates), 0);
    bed.monitor.latest = 1;
    bed.monitor.readings = 2;
}

static void compose_list(enum top_list list, enum top_sort sort, unsigned columns, unsigned rows, bool help)
{
    const struct top_content content = {.monitor = &bed.monitor,
                                        .wall_s = 1061,
                                        .list = list,
                                        .sort = sort,
                                        .help = help,
                                        .interactive = list < TOP_LISTS};

    top_screen_compose(&bed.screen, &content, columns, rows);
}

static void compose(enum top_sort sort, unsigned columns, unsigned rows, bool help)
{
    compose_list(TOP_LIST_LOCATIONS, sort, columns, rows, help);
}

static void is_line(unsigned i, const char *text)
{
    ck_assert_str_eq(bed.screen.lines[i].text, text);
}

static const char *const lines[] = {
    "sluice 1.2.3  http://127.0.0.1/status  up 00:01:01  workers 4",
    "Requests        12.3k/s   2xx 12.0k  3xx 300  4xx 40  5xx 5  other 0",
    "Sent         4.00 KiB/s",
    "Connections        10     new 7/s  handshake 1  reading 2  writing 3  waiting 4",
    "Handshakes          6/s   full 2  resumed 3  failed 1",
    "Latency p50    100 ms     p90 200 ms  p99 > 200 ms",
    "",
    "SEND PATH                           BYTES/S    SHARE  RESPONSES/S",
    "ktls-sendfile                      3.00 KiB    75.0%            6",
    "plain                              1.00 KiB    25.0%            5",
    "",
    "UPSTREAM           SERVER              STATE       REQ/S  FAIL/S ACTIVE     TIME",
    "a                  two                 unhealthy      30       0      1   500 ms",
    "c\\x1b[2J           three               resting        20       9      0     0 us",
    "b                  one                 up             10       1      3   250 ms",
};

START_TEST(all_lines)
{
    load(before, page);
    compose(TOP_BY_REQUESTS, 80, 24, false);
    ck_assert_uint_eq(bed.screen.used, 24);
    for (unsigned i = 0; i < 23; i++)
        is_line(i, i < sizeof(lines) / sizeof(lines[0]) ? lines[i] : "");
    is_line(23, "q quit  s sort: requests" KEYS);
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

START_TEST(sorted_columns)
{
    char order[4] = "", keys[81];

    load(before, page);
    compose(sorts[_i].sort, 80, 24, false);
    for (unsigned i = 0; i < 3; i++)
        order[i] = bed.screen.lines[12 + i].text[0];
    ck_assert_str_eq(order, sorts[_i].order);
    snprintf(keys, sizeof(keys), "q quit  s sort: %s" KEYS, sorts[_i].name);
    is_line(23, keys);
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(every_size)
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
START_TEST(few_rows)
{
    load(before, page);
    compose(TOP_BY_REQUESTS, 80, 15, false);
    is_line(7, lines[7]);
    is_line(8, lines[8]);
    is_line(9, lines[9]);
    is_line(11, lines[11]);
    is_line(12, lines[12]);
    is_line(13, "and 2 more");
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(location_lines)
{
    static const char *const expected[] = {
        "LOCATION                                     REQ/S    5XX/S   ACTIVE        P99",
        "c\\x1b[2J                                        20        9     0.25    99.0 ms",
        "b.test /                                        10        1     0.50    99.0 ms",
        "a.test /api/                                     4        0        3     991 ms",
        "d                                                0        0        0          -",
        "",
        "UPSTREAM           SERVER              STATE       REQ/S  FAIL/S ACTIVE     TIME",
    };

    load(before, locations);
    compose(TOP_BY_REQUESTS, 80, 24, false);
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        is_line(10 + i, expected[i]);
    ck_assert_int_eq(bed.screen.lines[10].style, TOP_HEADING);
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* The first letters of the locations, in order. */
static const struct {
    enum top_sort sort;
    const char *order;
} location_sorts[] = {
    {TOP_BY_REQUESTS, "cbad"}, {TOP_BY_FAILURES, "cbad"}, {TOP_BY_ACTIVE, "abcd"}, {TOP_BY_TIME, "abcd"},
    {TOP_BY_NAME, "abcd"},
};

START_TEST(sorted_locations)
{
    char order[5] = "";

    load(before, locations);
    compose(location_sorts[_i].sort, 80, 24, false);
    for (unsigned i = 0; i < 4; i++)
        order[i] = bed.screen.lines[11 + i].text[0];
    ck_assert_str_eq(order, location_sorts[_i].order);
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* Each table has its heading and at least one row; the locations that are left out are counted. */
START_TEST(few_rows_for_three_tables)
{
    load(before, locations);
    compose(TOP_BY_REQUESTS, 80, 18, false);
    is_line(8, "plain                                   1 B   100.0%            0");
    ck_assert(strncmp(bed.screen.lines[10].text, "LOCATION ", 9) == 0);
    ck_assert(strncmp(bed.screen.lines[11].text, "c\\x1b", 5) == 0);
    is_line(12, "and 3 more");
    ck_assert(strncmp(bed.screen.lines[14].text, "UPSTREAM ", 9) == 0);
    ck_assert(strncmp(bed.screen.lines[15].text, "u ", 2) == 0);
    top_monitor_finish(&bed.monitor);
}
END_TEST

#define ZONE_HEADING(name, unit) name "                                 " unit "    5XX/S   ACTIVE        P99"

START_TEST(lists_by_keys)
{
    static const char *const expected[TOP_LISTS][4] = {
        {ZONE_HEADING("LOCATION   ", " REQ/S"),
         "a.test /                                        10        1     0.50    99.0 ms", "",
         "UPSTREAM           SERVER              STATE       REQ/S  FAIL/S ACTIVE     TIME"},
        {ZONE_HEADING("SERVER ZONE", " REQ/S"),
         "a.test                                          20        0        1     982 ms",
         "b.test                                          10        1     0.50    99.0 ms", ""},
        {ZONE_HEADING("STREAM ZONE", "CONN/S"),
         "dns                                              4        0        0          -",
         "mail                                             2        1        5    99.0 ms", ""},
        {"CACHE                   RESP/S    HIT/S     HITS    FILES      BYTES        MAX",
         "two\\x1b[2J                  40       30    75.0%        3   2.00 KiB          -",
         "one                         20        0     0.0%        0        0 B   1.00 GiB",
         "idle                         0        0        -        0        0 B          -"},
    };

    load(before, lists);
    for (enum top_list list = 0; list < TOP_LISTS; list++) {
        compose_list(list, TOP_BY_REQUESTS, 80, 24, false);
        for (unsigned i = 0; i < 4; i++)
            is_line(10 + i, expected[list][i]);
    }
    compose_list(TOP_LIST_CACHES, TOP_BY_FAILURES, 80, 24, false);
    is_line(11, expected[TOP_LIST_CACHES][2]);
    top_monitor_finish(&bed.monitor);
}
END_TEST

static const char *const headings[TOP_LISTS] = {"LOCATION ", "SERVER ZONE ", "STREAM ZONE ", "CACHE "};

/* The heading alone: there are none. */
START_TEST(empty_lists)
{
    load(before, page);
    for (enum top_list list = TOP_LIST_SERVERS; list < TOP_LISTS; list++) {
        compose_list(list, TOP_BY_REQUESTS, 80, 24, false);
        ck_assert(strncmp(bed.screen.lines[11].text, headings[list], strlen(headings[list])) == 0);
        is_line(12, "");
        is_line(13, lines[11]);
    }
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* Without a terminal, all lists that are not empty. */
START_TEST(all_lists)
{
    unsigned at = 0;

    load(before, lists);
    compose_list(TOP_LISTS, TOP_BY_REQUESTS, 80, LIMIT_TOP_ROWS, false);
    for (unsigned i = 0; i < bed.screen.used && at < TOP_LISTS; i++)
        at += strncmp(bed.screen.lines[i].text, headings[at], strlen(headings[at])) == 0;
    ck_assert_uint_eq(at, TOP_LISTS);
    ck_assert(strncmp(bed.screen.lines[bed.screen.used - 2].text, "UPSTREAM ", 9) == 0);
    ck_assert_uint_eq(bed.screen.used, 28);
    top_monitor_finish(&bed.monitor);
    load(before, page);
    compose_list(TOP_LISTS, TOP_BY_REQUESTS, 80, LIMIT_TOP_ROWS, false);
    ck_assert_uint_eq(bed.screen.used, sizeof(lines) / sizeof(lines[0]));
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(help_and_restart)
{
    load("{\"requests_total\": 0, \"start_time_seconds\": 2}", page);
    compose(TOP_BY_REQUESTS, 80, 24, true);
    is_line(6, "The server has restarted.");
    is_line(7, "q                quit");
    is_line(20, "");
    is_line(23, "q quit  s sort: requests" KEYS);
    top_monitor_finish(&bed.monitor);
}
END_TEST

START_TEST(before_the_second_reading)
{
    load(before, page);
    bed.monitor.readings = 0;
    snprintf(bed.monitor.fault, sizeof(bed.monitor.fault), "cannot connect to \033host");
    compose(TOP_BY_REQUESTS, 80, 24, false);
    is_line(0, "sluice  http://127.0.0.1/status");
    is_line(1, "");
    is_line(23, "cannot connect to \\x1bhost");
    ck_assert_int_eq(bed.screen.lines[23].style, TOP_FAULT);
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* Values and texts at their limits, in each width: no line is longer than the screen or has a control character. */
START_TEST(hostile_pages)
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
    tcase_add_test(tcase, all_lines);
    tcase_add_loop_test(tcase, sorted_columns, 0, TOP_SORTS);
    tcase_add_loop_test(tcase, every_size, 0, 2);
    tcase_add_test(tcase, few_rows);
    tcase_add_test(tcase, location_lines);
    tcase_add_loop_test(tcase, sorted_locations, 0, TOP_SORTS);
    tcase_add_test(tcase, few_rows_for_three_tables);
    tcase_add_test(tcase, lists_by_keys);
    tcase_add_test(tcase, empty_lists);
    tcase_add_test(tcase, all_lists);
    tcase_add_test(tcase, help_and_restart);
    tcase_add_test(tcase, before_the_second_reading);
    tcase_add_test(tcase, hostile_pages);
}

int main(void)
{
    return run_suite("top_screen", add_tests);
}
