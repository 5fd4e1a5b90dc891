/* Accept: the most specific media range decides (RFC 9110 12.5.1); weights; malformed fields. */
#include "http/accept.h"

#include "../runner.h"

static const struct {
    const char *accept; /* NULL: the field is absent */
    unsigned html, json, text;
} rows[] = {
    {NULL, 1000, 1000, 1000},
    {"", 1000, 1000, 1000},
    {"text/html", 1000, 0, 0},
    {"TEXT/HTML ; q=0.5", 500, 0, 0},
    {"*/*", 1000, 1000, 1000},
    {"*/*;q=0.1, text/*;q=0.2, text/html;q=0.3", 300, 100, 200},
    {"text/html;q=0.3, text/*;q=0.2, */*;q=0.1", 300, 100, 200},
    {"text/html;q=0, */*", 0, 1000, 1000},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", 1000, 800, 800},
    {"application/json, text/plain;q=0.001", 0, 1000, 1},
    {"application/json;charset=utf-8;q=0.7", 0, 700, 0},
    {"text/html;q=1.000, application/json;q=1.001", 1000, 1000, 0},
    {"text/html;q=2, application/json;q=, text/plain;q=-1", 1000, 0, 0},
    {"text/html;q=x, application/json;q=0,5", 0, 0, 0},
    {"text, /html, text/, */html, te*t/html, text/htm, text/html5", 0, 0, 0},
    {"application/*", 0, 1000, 0},
    {", ,text/plain,", 0, 0, 1000},
    {"text/html;q=0.5;q=0.9", 500, 0, 0},
    {"text/html;a=\";q=0.1\";q=0.9", 900, 0, 0},
};

START_TEST(most_specific_media_range_gives_the_weight)
{
    struct arena arena;
    struct headers headers = {0};

    arena_init(&arena, NULL, 0);
    if (rows[_i].accept)
        ck_assert_int_eq(headers_add(&headers, &arena, STR("accept"), str_from(rows[_i].accept)), 0);
    ck_assert_uint_eq(accept_weight(&headers, STR("text/html")), rows[_i].html);
    ck_assert_uint_eq(accept_weight(&headers, STR("application/json")), rows[_i].json);
    ck_assert_uint_eq(accept_weight(&headers, STR("text/plain")), rows[_i].text);
    arena_reset(&arena);
}
END_TEST

/* Several field lines form one list. */
START_TEST(field_lines_are_combined)
{
    struct arena arena;
    struct headers headers = {0};

    arena_init(&arena, NULL, 0);
    ck_assert_int_eq(headers_add(&headers, &arena, STR("Accept"), STR("text/html;q=0.2")), 0);
    ck_assert_int_eq(headers_add(&headers, &arena, STR("Accept"), STR("application/json;q=0.4")), 0);
    ck_assert_uint_eq(accept_weight(&headers, STR("text/html")), 200);
    ck_assert_uint_eq(accept_weight(&headers, STR("application/json")), 400);
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, most_specific_media_range_gives_the_weight, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_test(tcase, field_lines_are_combined);
}

int main(void)
{
    return run_suite("accept", add_tests);
}
