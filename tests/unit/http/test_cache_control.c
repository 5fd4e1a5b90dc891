#include "http/cache_control.h"

#include "base/limits.h"
#include "suite.h"

#include <errno.h>
#include <stdio.h>

/* Parses lines "Name: value", separated by '|'. */
static struct headers fields(struct arena *arena, const char *text)
{
    struct headers headers = {0};
    struct str rest = str_from(text);

    while (rest.data && rest.length) {
        struct str value = str_cut(&rest, '|');
        struct str name = str_cut(&value, ':');

        ck_assert_int_eq(headers_add(&headers, arena, str_trim(name), str_trim(value)), 0);
    }
    return headers;
}

#define NONE DELTA_NONE

START_TEST(response_directives_are_parsed)
{
    static const struct {
        const char *fields;
        int64_t max_age, s_maxage, swr, sie;
        /* s no-store, c no-cache, p private, P public, m must-revalidate, x proxy-revalidate, u must-understand */
        const char *words;
    } cases[] = {
        {"X: y", NONE, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=60", 60, NONE, NONE, NONE, ""},
        {"cache-control: MAX-AGE=60, PUBLIC", 60, NONE, NONE, NONE, "P"},
        {"Cache-Control: max-age=\"60\"", 60, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=0", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=0060", 60, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=2147483648", DELTA_MAX, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=99999999999", DELTA_MAX, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=99999999999999999999999999", DELTA_MAX, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=-1", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=+1", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=1.5", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=1s", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=0x10", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age= 60", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age='60'", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=\"60", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=\"\\6\\0\"", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=60, max-age=60", 60, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=60, max-age=10", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=10|Cache-Control: max-age=60", 0, NONE, NONE, NONE, ""},
        {"Cache-Control: s-maxage=1, s-maxage=2", NONE, 0, NONE, NONE, ""},
        {"Cache-Control: max-age=60, s-maxage=5", 60, 5, NONE, NONE, ""},
        {"Cache-Control: s-maxage", NONE, 0, NONE, NONE, ""},
        {"Cache-Control: xmax-age=60, max-agex=70, max_age=80", NONE, NONE, NONE, NONE, ""},
        {"Cache-Control: x=\"max-age=60\", y=\"no-store, private\"", NONE, NONE, NONE, NONE, ""},
        {"Cache-Control: x=\"a\\\", no-store\"", NONE, NONE, NONE, NONE, ""},
        {"Cache-Control: no-store", NONE, NONE, NONE, NONE, "s"},
        {"Cache-Control: max-age=60|Cache-Control: no-store", 60, NONE, NONE, NONE, "s"},
        {"Cache-Control: ,, no-store ,,", NONE, NONE, NONE, NONE, "s"},
        {"Cache-Control: no-store=1", NONE, NONE, NONE, NONE, "s"},
        {"Cache-Control: no-cache", NONE, NONE, NONE, NONE, "c"},
        {"Cache-Control: no-cache=\"Set-Cookie, X\"", NONE, NONE, NONE, NONE, "c"},
        {"Cache-Control: private=\"Set-Cookie\", max-age=1", 1, NONE, NONE, NONE, "p"},
        {"Cache-Control: private=\"unterminated, max-age=1", NONE, NONE, NONE, NONE, "p"},
        {"Cache-Control: must-revalidate,proxy-revalidate\t,must-understand", NONE, NONE, NONE, NONE, "mxu"},
        {"Cache-Control: stale-while-revalidate=30, stale-if-error=\"60\"", NONE, NONE, 30, 60, ""},
        {"Cache-Control: stale-while-revalidate=30, stale-while-revalidate=20", NONE, NONE, 20, NONE, ""},
        {"Cache-Control: stale-if-error=x", NONE, NONE, NONE, 0, ""},
        {"Pragma: no-cache", NONE, NONE, NONE, NONE, ""},
        {"Cache-Control: max-stale=5, min-fresh=5, only-if-cached", NONE, NONE, NONE, NONE, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control seen;
        struct arena arena;
        struct headers headers;
        char words[8];

        arena_init(&arena, NULL, 0);
        headers = fields(&arena, cases[i].fields);
        cache_control_read(&headers, CACHE_OF_RESPONSE, &seen);
        snprintf(words, sizeof(words), "%s%s%s%s%s%s%s", seen.no_store ? "s" : "", seen.no_cache ? "c" : "",
                 seen.is_private ? "p" : "", seen.is_public ? "P" : "", seen.must_revalidate ? "m" : "",
                 seen.proxy_revalidate ? "x" : "", seen.must_understand ? "u" : "");
        ck_assert_msg(seen.max_age == cases[i].max_age && seen.s_maxage == cases[i].s_maxage &&
                          seen.stale_while_revalidate == cases[i].swr && seen.stale_if_error == cases[i].sie &&
                          strcmp(words, cases[i].words) == 0,
                      "row %zu: %lld %lld %lld %lld %s", i, (long long)seen.max_age, (long long)seen.s_maxage,
                      (long long)seen.stale_while_revalidate, (long long)seen.stale_if_error, words);
        ck_assert(seen.max_stale == NONE && seen.min_fresh == NONE && !seen.only_if_cached);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(malformed_cache_control_is_recognized)
{
    static const struct {
        const char *value;
        bool malformed;
    } cases[] = {
        {"max-age=100", false},
        {"", false},
        {" , max-age=100 ,, public", false},
        {"max-age = 100", false},
        {"foo=\"x, no-store\"", false},
        {"foo=\"\"", false},
        {"foo=\"a\\\"b\", max-age=1", false},
        {"foo=\"\\\\\"", false},
        {"max-age=100, foo=\"x, no-store", true},
        {"max-age=100, foo=\"", true},
        {"max-age=100, foo=\"x\\\"", true},
        {"foo=\"x\"y, max-age=100", true},
        {"foo=\"x\" no-store", true},
        {"foo=x\"y, no-store", true},
        {"\"max-age=100\"", true},
        {"max-age=100; no-store", true},
        {"public no-store", true},
        {"max-age=", true},
        {"=100", true},
        {"max-age=100, no(store)", true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct headers headers = {0};
        struct cache_control seen;
        struct arena arena;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(headers_add(&headers, &arena, STR("Cache-Control"), str_from(cases[i].value)), 0);
        cache_control_read(&headers, CACHE_OF_RESPONSE, &seen);
        ck_assert_msg(seen.malformed == cases[i].malformed, "row %zu: %s", i, cases[i].value);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(request_directives_are_parsed)
{
    static const struct {
        const char *fields;
        int64_t max_age, max_stale, min_fresh;
        const char *words; /* s no-store, c no-cache, o only-if-cached */
    } cases[] = {
        {"X: y", NONE, NONE, NONE, ""},
        {"Cache-Control: max-age=0", 0, NONE, NONE, ""},
        {"Cache-Control: max-age=x", 0, NONE, NONE, ""},
        {"Cache-Control: max-age=5, max-age=6", 0, NONE, NONE, ""},
        {"Cache-Control: max-stale", NONE, DELTA_MAX, NONE, ""},
        {"Cache-Control: max-stale=10", NONE, 10, NONE, ""},
        {"Cache-Control: max-stale=", NONE, 0, NONE, ""},
        {"Cache-Control: max-stale, max-stale=3", NONE, 3, NONE, ""},
        {"Cache-Control: min-fresh=10, min-fresh=20", NONE, NONE, 20, ""},
        {"Cache-Control: min-fresh=soon", NONE, NONE, DELTA_MAX, ""},
        {"Cache-Control: no-cache, no-store, only-if-cached", NONE, NONE, NONE, "sco"},
        {"Pragma: no-cache", NONE, NONE, NONE, "c"},
        {"Pragma: x, No-Cache", NONE, NONE, NONE, "c"},
        {"Pragma: no-cache|Cache-Control: max-age=5", 5, NONE, NONE, ""},
        {"Cache-Control: s-maxage=5, private, public, must-revalidate", NONE, NONE, NONE, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control seen;
        struct arena arena;
        struct headers headers;
        char words[8];

        arena_init(&arena, NULL, 0);
        headers = fields(&arena, cases[i].fields);
        cache_control_read(&headers, CACHE_OF_REQUEST, &seen);
        snprintf(words, sizeof(words), "%s%s%s", seen.no_store ? "s" : "", seen.no_cache ? "c" : "",
                 seen.only_if_cached ? "o" : "");
        ck_assert_msg(seen.max_age == cases[i].max_age && seen.max_stale == cases[i].max_stale &&
                          seen.min_fresh == cases[i].min_fresh && strcmp(words, cases[i].words) == 0,
                      "row %zu", i);
        ck_assert(seen.s_maxage == NONE && !seen.is_private && !seen.is_public && !seen.must_revalidate);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(vary_names_are_sorted_and_unique)
{
    static const struct {
        const char *fields;
        const char *names; /* NULL: matches no request (RFC 9111 4.1: "*", or malformed) */
    } cases[] = {
        {"X: y", ""},
        {"Vary:", ""},
        {"Vary: ,", ""},
        {"Vary: Accept-Encoding", "accept-encoding"},
        {"Vary: B, a ,C", "a,b,c"},
        {"Vary: b|Vary: a", "a,b"},
        {"Vary: a, A, a", "a"},
        {"Vary: a, b, a", "a,b"},
        {"Vary: *", NULL},
        {"Vary: * ", NULL},
        {"Vary: *,", NULL},
        {"Vary: ,*", NULL},
        {"Vary: *, a", NULL},
        {"Vary: a, *", NULL},
        {"Vary: a, *, b", NULL},
        {"Vary: *, *", NULL},
        {"Vary: a|Vary: *", NULL},
        {"Vary: *|Vary: a", NULL},
        {"vary: *", NULL},
        {"Vary: \"*\"", NULL},
        {"Vary: a b", NULL},
        {"Vary: a;q=1", NULL},
        {"Vary: \"a\"", NULL},
        {"Vary: a/b", NULL},
        {"Vary: **", "**"}, /* a field name, not the wildcard */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena;
        struct headers headers;
        struct str names = STR("untouched");
        int error;

        arena_init(&arena, NULL, 0);
        headers = fields(&arena, cases[i].fields);
        error = vary_read(&headers, &arena, &names);
        ck_assert_msg(error == (cases[i].names ? 0 : -ENOTSUP), "row %zu: %d", i, error);
        ck_assert_text(names, cases[i].names ? cases[i].names : "untouched");
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(vary_above_the_field_limit_is_rejected)
{
    struct arena arena;
    struct headers headers = {0};
    struct str names;

    arena_init(&arena, NULL, 0);
    for (unsigned i = 0; i < LIMIT_VARY_FIELDS; i++)
        ck_assert_int_eq(headers_add(&headers, &arena, STR("Vary"), arena_printf(&arena, "x%u", i)), 0);
    ck_assert_int_eq(vary_read(&headers, &arena, &names), 0);
    ck_assert_int_eq(headers_add(&headers, &arena, STR("Vary"), STR("one-more")), 0);
    ck_assert_int_eq(vary_read(&headers, &arena, &names), -ENOTSUP);
    arena_reset(&arena);
}
END_TEST

START_TEST(requests_match_if_their_varying_fields_are_equal)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"A: 1", "A: 1", true},
        {"A: 1|X: 2", "X: 3|A: 1", true},
        {"A: 1", "A: 2", false},
        {"A: 1", "A: 1|B: 1", false},
        {"A: 1", "", false},
        {"A:", "", false},
        {"A: 1, 2", "A: 1|A: 2", true},
        {"A: 1,2", "A: 1 , 2", true},
        {"A: 1,,2", "A: 1,2", true},
        {"A: 2, 1", "A: 1, 2", false},
        {"a: x", "A: x", true},
        {"A: x", "A: X", false},
        {"A: 1|B: 2", "A: 2|B: 1", false},
        {"A: \"1, 2\"", "A: \"1,2\"", false},
        {"A: -", "B: 1", false},
        {"A: =", "A:", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena;
        struct headers a, b;

        arena_init(&arena, NULL, 0);
        a = fields(&arena, cases[i].a);
        b = fields(&arena, cases[i].b);
        ck_assert_msg(str_equal(vary_text(STR("a,b"), &a, &arena), vary_text(STR("a,b"), &b, &arena)) ==
                          cases[i].same,
                      "row %zu", i);
        ck_assert_text(vary_text(STR(""), &a, &arena), "");
        arena_reset(&arena);
    }
}
END_TEST

/* All members share one copy of the text, so memory depends on its length and not on their number. */
START_TEST(memory_of_vary_depends_on_the_length_only)
{
    struct arena arena;
    struct headers request_headers = {0};
    struct str text;
    size_t before;

    arena_init(&arena, NULL, 0);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(headers_add(&request_headers, &arena, STR("A"), STR("0,1,2,3,4")), 0);
    before = arena.size;
    text = vary_text(STR("a,b"), &request_headers, &arena);
    ck_assert_uint_eq(text.length, strlen("a=\nb-\n") + 1000 * 10 - 1);
    ck_assert_uint_lt(arena.size - before, 2 * text.length);
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {response_directives_are_parsed, malformed_cache_control_is_recognized,
                                  request_directives_are_parsed, vary_names_are_sorted_and_unique,
                                  vary_above_the_field_limit_is_rejected,
                                  requests_match_if_their_varying_fields_are_equal,
                                  memory_of_vary_depends_on_the_length_only};

    return suite_run("cache_control", tests, COUNT(tests));
}
