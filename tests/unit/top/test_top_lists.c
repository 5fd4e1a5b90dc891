/* The lists on the screen of `sluice top`: locations, zones, caches. */
#include "screen_fixture.h"

static const char locations[] =
    "{\"requests_total\": 1, \"sent_bytes_total\": {\"plain\": 1}, \"location_zones\": ["
    LOCATION("b.test /", "10", "1", "10", "10", "0.5") ", " LOCATION("a.test /api/", "4", "0", "0", "4", "3") ", "
    LOCATION("c\\u001b[2J", "20", "9", "20", "20", "0.25") ", {\"zone\": \"d\"}],"
    "\"upstreams\": [{\"upstream\": \"u\", \"server\": \"s\"}]}";

START_TEST(locations_are_shown)
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
        assert_line(10 + i, expected[i]);
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

START_TEST(locations_are_sorted_by_each_column)
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
START_TEST(short_screen_shows_each_table)
{
    load(before, locations);
    compose(TOP_BY_REQUESTS, 80, 18, false);
    assert_line(8, "plain                                   1 B   100.0%            0");
    ck_assert(strncmp(bed.screen.lines[10].text, "LOCATION ", 9) == 0);
    ck_assert(strncmp(bed.screen.lines[11].text, "c\\x1b", 5) == 0);
    assert_line(12, "and 3 more");
    ck_assert(strncmp(bed.screen.lines[14].text, "UPSTREAM ", 9) == 0);
    ck_assert(strncmp(bed.screen.lines[15].text, "u ", 2) == 0);
    top_monitor_finish(&bed.monitor);
}
END_TEST

#define ZONE_HEADING(name, unit) name "                                 " unit "    5XX/S   ACTIVE        P99"

START_TEST(each_list_is_shown)
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
            assert_line(10 + i, expected[list][i]);
    }
    compose_list(TOP_LIST_CACHES, TOP_BY_FAILURES, 80, 24, false);
    assert_line(11, expected[TOP_LIST_CACHES][2]);
    top_monitor_finish(&bed.monitor);
}
END_TEST

static const char *const headings[TOP_LISTS] = {"LOCATION ", "SERVER ZONE ", "STREAM ZONE ", "CACHE "};

/* The heading alone: there are none. */
START_TEST(empty_list_has_a_heading)
{
    load(before, page);
    for (enum top_list list = TOP_LIST_SERVERS; list < TOP_LISTS; list++) {
        compose_list(list, TOP_BY_REQUESTS, 80, 24, false);
        ck_assert(strncmp(bed.screen.lines[11].text, headings[list], strlen(headings[list])) == 0);
        assert_line(12, "");
        assert_line(13, lines[11]);
    }
    top_monitor_finish(&bed.monitor);
}
END_TEST

/* Without a terminal, all lists that are not empty. */
START_TEST(all_lists_are_shown_without_a_terminal)
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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, locations_are_shown);
    tcase_add_loop_test(tcase, locations_are_sorted_by_each_column, 0, TOP_SORTS);
    tcase_add_test(tcase, short_screen_shows_each_table);
    tcase_add_test(tcase, each_list_is_shown);
    tcase_add_test(tcase, empty_list_has_a_heading);
    tcase_add_test(tcase, all_lists_are_shown_without_a_terminal);
}

int main(void)
{
    return run_suite("top_lists", add_tests);
}
