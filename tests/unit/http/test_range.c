#include "http/range.h"

#include "suite.h"

#include <errno.h>

START_TEST(ranges_are_limited_unsatisfiable_or_ignored)
{
    static const struct {
        const char *value;
        uint64_t length;
        unsigned max;
        int count;
        struct range ranges[3];
    } cases[] = {
        {"bytes=0-0", 10, 10, 1, {{0, 0}}},
        {"bytes=0-9", 10, 10, 1, {{0, 9}}},
        {"bytes=0-", 10, 10, 1, {{0, 9}}},
        {"bytes=5-", 10, 10, 1, {{5, 9}}},
        {"bytes=-3", 10, 10, 1, {{7, 9}}},
        {"bytes=-10", 10, 10, 1, {{0, 9}}},
        {"bytes=-11", 10, 10, 1, {{0, 9}}},
        {"bytes=9-9", 10, 10, 1, {{9, 9}}},
        {"bytes=0-100", 10, 10, 1, {{0, 9}}},
        {"BYTES=0-1", 10, 10, 1, {{0, 1}}},
        {"bytes=0-1, 4-5 ,-1", 10, 10, 3, {{0, 1}, {4, 5}, {9, 9}}},
        {"bytes=,0-1,,", 10, 10, 1, {{0, 1}}},
        {"bytes=0-1,20-30", 10, 10, 1, {{0, 1}}},
        {"bytes=20-,0-1", 10, 10, 1, {{0, 1}}},
        {"bytes=4-5,0-1", 10, 10, 2, {{4, 5}, {0, 1}}},
        {"bytes=0-1,1-2", 10, 10, 2, {{0, 1}, {1, 2}}},
        {"bytes=0-18446744073709551615", 10, 10, 1, {{0, 9}}},
        {"bytes=0-18446744073709551616", 10, 10, 1, {{0, 9}}},
        {"bytes=-99999999999999999999999", 10, 10, 1, {{0, 9}}},
        {"bytes=00000000000000000000000001-2", 10, 10, 1, {{1, 2}}},
        {"bytes=4294967296-4294967300", 8589934592, 10, 1, {{4294967296, 4294967300}}},
        {"bytes=0-0", 1, 1, 1, {{0, 0}}},
        {"bytes=0-", UINT64_MAX, 1, 1, {{0, UINT64_MAX - 1}}},
        /* not satisfiable */
        {"bytes=10-", 10, 10, -ERANGE, {{0, 0}}},
        {"bytes=10-20,30-", 10, 10, -ERANGE, {{0, 0}}},
        {"bytes=-0", 10, 10, -ERANGE, {{0, 0}}},
        {"bytes=0-", 0, 10, -ERANGE, {{0, 0}}},
        {"bytes=0-0", 0, 10, -ERANGE, {{0, 0}}},
        {"bytes=-0", 0, 10, -ERANGE, {{0, 0}}},
        {"bytes=99999999999999999999999-", 10, 10, -ERANGE, {{0, 0}}},
        /* ignored */
        {"bytes=-1", 0, 10, 0, {{0, 0}}},
        {"bytes=-5", 0, 10, 0, {{0, 0}}},
        {"bytes=0-0,-1", 0, 10, 0, {{0, 0}}},
        {"", 10, 10, 0, {{0, 0}}},
        {"bytes", 10, 10, 0, {{0, 0}}},
        {"bytes=", 10, 10, 0, {{0, 0}}},
        {"bytes=,", 10, 10, 0, {{0, 0}}},
        {"bytes=-", 10, 10, 0, {{0, 0}}},
        {"bytes=5", 10, 10, 0, {{0, 0}}},
        {"bytes=5-4", 10, 10, 0, {{0, 0}}},
        {"bytes=20-10", 10, 10, 0, {{0, 0}}},
        {"bytes=a-b", 10, 10, 0, {{0, 0}}},
        {"bytes=0-1x", 10, 10, 0, {{0, 0}}},
        {"bytes=0x1-2", 10, 10, 0, {{0, 0}}},
        {"bytes=+1-2", 10, 10, 0, {{0, 0}}},
        {"bytes=--1", 10, 10, 0, {{0, 0}}},
        {"bytes=1--1", 10, 10, 0, {{0, 0}}},
        {"bytes=1-2-3", 10, 10, 0, {{0, 0}}},
        {"bytes= =0-1", 10, 10, 0, {{0, 0}}},
        {"bytes =0-1", 10, 10, 0, {{0, 0}}},
        {"byte=0-1", 10, 10, 0, {{0, 0}}},
        {"items=0-1", 10, 10, 0, {{0, 0}}},
        {"bytes=0 -1", 10, 10, 0, {{0, 0}}},
        {"bytes=0-1;2-3", 10, 10, 0, {{0, 0}}},
        {"bytes=0-1,x", 10, 10, 0, {{0, 0}}},
        {"bytes=20-30,x", 10, 10, 0, {{0, 0}}},
        /* too many ranges, or more bytes than the whole representation */
        {"bytes=0-0,1-1", 10, 1, 0, {{0, 0}}},
        {"bytes=0-0", 10, 0, 0, {{0, 0}}},
        {"bytes=20-", 10, 0, 0, {{0, 0}}},
        {"bytes=0-,0-", 10, 10, 0, {{0, 0}}},
        {"bytes=0-8,0-1", 10, 10, 0, {{0, 0}}},
        {"bytes=0-,0-,0-", UINT64_MAX, 3, 0, {{0, 0}}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct range seen[3] = {{0, 0}};
        int count =
            range_parse(str_from(cases[i].value), cases[i].length, seen, cases[i].max > 3 ? 3 : cases[i].max);

        ck_assert_msg(count == cases[i].count, "\"%s\" of %llu gave %d", cases[i].value,
                      (unsigned long long)cases[i].length, count);
        for (int j = 0; j < count; j++) {
            ck_assert_uint_eq(seen[j].first, cases[i].ranges[j].first);
            ck_assert_uint_eq(seen[j].last, cases[i].ranges[j].last);
        }
    }
}
END_TEST

START_TEST(content_range_is_parsed_or_rejected)
{
    static const struct {
        const char *value;
        int result;
        struct range range;
        uint64_t total;
    } cases[] = {
        {"bytes 0-0/1", 0, {0, 0}, 1},
        {"bytes 0-99/1000", 0, {0, 99}, 1000},
        {"BYTES 900-999/1000", 0, {900, 999}, 1000},
        {"bytes 4294967296-4294967300/8589934592", 0, {4294967296, 4294967300}, 8589934592},
        {"bytes 0-9223372036854775806/9223372036854775807", 0, {0, INT64_MAX - 1}, INT64_MAX},
        /* the complete length is unknown */
        {"bytes 0-99/*", -ENOTSUP, {0, 0}, 0},
        {"bytes 18446744073709551615-18446744073709551615/*", -ENOTSUP, {0, 0}, 0},
        /* inconsistent numbers */
        {"bytes 1-0/10", -EINVAL, {0, 0}, 0},
        {"bytes 1-0/*", -EINVAL, {0, 0}, 0},
        {"bytes 0-10/10", -EINVAL, {0, 0}, 0},
        {"bytes 10-10/10", -EINVAL, {0, 0}, 0},
        {"bytes 0-0/0", -EINVAL, {0, 0}, 0},
        {"bytes 0-0/9223372036854775808", -EINVAL, {0, 0}, 0},
        {"bytes 0-18446744073709551615/18446744073709551615", -EINVAL, {0, 0}, 0},
        {"bytes 0-99/18446744073709551616", -EINVAL, {0, 0}, 0},
        {"bytes 0-18446744073709551616/1000", -EINVAL, {0, 0}, 0},
        {"bytes 18446744073709551616-18446744073709551617/1000", -EINVAL, {0, 0}, 0},
        {"bytes 18446744073709551616-18446744073709551617/*", -EINVAL, {0, 0}, 0},
        /* malformed */
        {"", -EINVAL, {0, 0}, 0},
        {"bytes", -EINVAL, {0, 0}, 0},
        {"bytes ", -EINVAL, {0, 0}, 0},
        {"bytes 0", -EINVAL, {0, 0}, 0},
        {"bytes 0-", -EINVAL, {0, 0}, 0},
        {"bytes 0-9", -EINVAL, {0, 0}, 0},
        {"bytes 0-9/", -EINVAL, {0, 0}, 0},
        {"bytes 0/10", -EINVAL, {0, 0}, 0},
        {"bytes /10", -EINVAL, {0, 0}, 0},
        {"bytes -9/10", -EINVAL, {0, 0}, 0},
        {"bytes 0-/10", -EINVAL, {0, 0}, 0},
        {"bytes */10", -EINVAL, {0, 0}, 0},
        {"bytes */*", -EINVAL, {0, 0}, 0},
        {"bytes 0-9/10 ", -EINVAL, {0, 0}, 0},
        {"bytes 0-9/10/10", -EINVAL, {0, 0}, 0},
        {"bytes 0-9-9/10", -EINVAL, {0, 0}, 0},
        {"bytes 0-9/**", -EINVAL, {0, 0}, 0},
        {"bytes  0-9/10", -EINVAL, {0, 0}, 0},
        {"bytes\t0-9/10", -EINVAL, {0, 0}, 0},
        {"bytes=0-9/10", -EINVAL, {0, 0}, 0},
        {"bytes 0-9,20-29/100", -EINVAL, {0, 0}, 0},
        {"bytes +0-9/10", -EINVAL, {0, 0}, 0},
        {"bytes 0x0-9/10", -EINVAL, {0, 0}, 0},
        {"items 0-9/10", -EINVAL, {0, 0}, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct range range = {0, 0};
        uint64_t total = 0;
        int result = content_range_parse(str_from(cases[i].value), &range, &total);

        ck_assert_msg(result == cases[i].result, "\"%s\" gave %d", cases[i].value, result);
        ck_assert_uint_eq(range.first, cases[i].range.first);
        ck_assert_uint_eq(range.last, cases[i].range.last);
        ck_assert_uint_eq(total, cases[i].total);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ranges_are_limited_unsatisfiable_or_ignored, content_range_is_parsed_or_rejected};

    return suite_run("range", tests, COUNT(tests));
}
