#include "http/cache_control.h"

#include "base/limits.h"
#include "suite.h"

#include <errno.h>

#define NONE DELTA_NONE

START_TEST(targeted_field_is_parsed_as_a_dictionary)
{
    static const struct {
        const char *lines[2];
        int result;
        int64_t max_age;
        bool no_store, no_cache, is_private, must_revalidate;
    } cases[] = {
        {{NULL}, -ENOENT, NONE, false, false, false, false},
        {{""}, -ENOENT, NONE, false, false, false, false},
        {{"  ", ""}, -ENOENT, NONE, false, false, false, false},
        {{"max-age=60"}, 0, 60, false, false, false, false},
        {{" max-age=60 \t,  must-revalidate "}, 0, 60, false, false, false, true},
        {{"max-age=60", "no-store"}, 0, 60, true, false, false, false},
        {{"max-age=60, max-age=10"}, 0, 10, false, false, false, false},
        {{"no-store, no-store=?0, max-age=1"}, 0, 1, false, false, false, false},
        {{"no-store=?1"}, 0, NONE, true, false, false, false},
        {{"max-age=60;x;y=1;z=\"a,b\", private"}, 0, 60, false, false, true, false},
        {{"no-cache=(\"a\" \"b\");q=1, max-age=5"}, 0, 5, false, true, false, false},
        {{"x=\"no-store, \\\"\\\\\", max-age=7"}, 0, 7, false, false, false, false},
        {{"x=:aGk=:, y=1.5, z=tok/en:1, *a=-3, max-age=8"}, 0, 8, false, false, false, false},
        {{"x=(), max-age=8"}, 0, 8, false, false, false, false},
        {{"max-age=999999999999999"}, 0, DELTA_MAX, false, false, false, false},
        {{"max-age=\"60\""}, 0, 0, false, false, false, false},
        {{"max-age=-1"}, 0, 0, false, false, false, false},
        {{"max-age=1.5"}, 0, 0, false, false, false, false},
        {{"max-age"}, 0, 0, false, false, false, false},
        {{"max-age=60,"}, -EINVAL, NONE, false, false, false, false},
        {{",max-age=60"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60,,no-store"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60 no-store"}, -EINVAL, NONE, false, false, false, false},
        {{"Max-Age=60"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age =60"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age= 60"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age="}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=1000000000000000"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=\"open"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=\"a\\b\""}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=\"\xc3\xa4\""}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=?2"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=:a"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=(1"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=(1\"a\")"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60;"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60;A"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=1."}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=1.2345"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60, x=-"}, -EINVAL, NONE, false, false, false, false},
        {{"max-age=60", "no-store,"}, -EINVAL, NONE, false, false, false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cache_control seen = {.max_age = NONE};
        struct headers headers = {0};
        struct arena arena;
        int result;

        arena_init(&arena, NULL, 0);
        ck_assert_int_eq(headers_add(&headers, &arena, STR("Cache-Control"), STR("max-age=1000, no-store")), 0);
        for (size_t k = 0; k < 2 && cases[i].lines[k]; k++)
            ck_assert_int_eq(headers_add(&headers, &arena, STR("CDN-Cache-Control"), str_from(cases[i].lines[k])), 0);
        result = cache_control_read_targeted(&headers, STR("cdn-cache-control"), &seen);
        ck_assert_msg(result == cases[i].result, "row %zu: %d", i, result);
        ck_assert_msg(seen.max_age == cases[i].max_age && seen.no_store == cases[i].no_store &&
                          seen.no_cache == cases[i].no_cache && seen.is_private == cases[i].is_private &&
                          seen.must_revalidate == cases[i].must_revalidate,
                      "row %zu: %lld", i, (long long)seen.max_age);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(members_above_the_limit_are_rejected)
{
    struct cache_control seen;
    struct headers headers = {0};
    struct arena arena;
    struct str value = STR("a0");

    arena_init(&arena, NULL, 0);
    for (unsigned i = 1; i < LIMIT_TARGETED_MEMBERS; i++)
        value = arena_printf(&arena, STR_FMT ",a%u", STR_ARG(value), i);
    ck_assert_int_eq(headers_add(&headers, &arena, STR("X"), value), 0);
    ck_assert_int_eq(cache_control_read_targeted(&headers, STR("X"), &seen), 0);
    ck_assert_int_eq(headers_add(&headers, &arena, STR("X"), STR("b")), 0);
    ck_assert_int_eq(cache_control_read_targeted(&headers, STR("X"), &seen), -EINVAL);
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {targeted_field_is_parsed_as_a_dictionary, members_above_the_limit_are_rejected};

    return suite_run("targeted", tests, COUNT(tests));
}
