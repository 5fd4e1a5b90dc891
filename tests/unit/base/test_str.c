#include "base/str.h"

#include "../runner.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define assert_str(s, text) ck_assert_msg(str_equal((s), STR(text)), "got \"" STR_FMT "\"", STR_ARG(s))

START_TEST(slices_end_at_the_end_of_the_string)
{
    struct str s = STR("hello");
    struct str none = {NULL, 0};

    assert_str(str_slice(s, 1, 3), "el");
    assert_str(str_slice(s, 0, 99), "hello");
    assert_str(str_slice(s, 4, 2), "");
    assert_str(str_slice(s, 99, 100), "");
    assert_str(str_skip(s, 2), "llo");
    assert_str(str_skip(s, 9), "");
    ck_assert_ptr_null(str_slice(none, 0, 0).data);
    ck_assert_uint_eq(str_skip(none, 3).length, 0);
    ck_assert_uint_eq(str_from(NULL).length, 0);
}
END_TEST

START_TEST(comparisons_respect_or_ignore_case)
{
    struct str none = {NULL, 0};

    ck_assert(str_equal(none, STR("")));
    ck_assert(!str_equal(STR("a"), STR("A")));
    ck_assert(str_equal_nocase(STR("Content-Type"), STR("content-tYPE")));
    ck_assert(!str_equal_nocase(STR("@["), STR("`{")));
    ck_assert(!str_equal_nocase(STR("ab"), STR("abc")));
    ck_assert(str_starts(STR("abc"), STR("ab")) && str_starts(STR("abc"), none));
    ck_assert(!str_starts(STR("a"), STR("ab")));
    ck_assert(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")));
    ck_assert_int_lt(str_compare(STR("a"), STR("b")), 0);
    ck_assert_int_lt(str_compare(STR("a"), STR("aa")), 0);
    ck_assert_int_gt(str_compare(STR("\xff"), STR("a")), 0);
    ck_assert_int_eq(str_compare(none, STR("")), 0);
}
END_TEST

/* Each pair of bytes at each place of strings with up to 20 bytes. */
START_TEST(only_ascii_letters_are_equal_in_both_cases)
{
    char a[20], b[20];

    memset(a, 'x', sizeof(a));
    memset(b, 'X', sizeof(b));
    for (unsigned pair = 0; pair < 256 * 256; pair++) {
        unsigned char left = (unsigned char)(pair / 256), right = (unsigned char)(pair % 256);
        bool same = left == right || ((left ^ right) == 32 && isalpha(left));
        size_t at = pair % (unsigned)_i;

        a[at] = (char)left;
        b[at] = (char)right;
        assert_in_loop(str_same_letters(a, b, (size_t)_i) == same);
        a[at] = 'x';
        b[at] = 'X';
    }
    ck_assert(str_same_letters(a, b, 0));
}
END_TEST

START_TEST(numbers_are_written_in_decimal)
{
    static const uint64_t numbers[] = {0, 9, 10, 4294967296, 9999999999999999999u, UINT64_MAX};
    char text[STR_U64_DIGITS], expected[STR_U64_DIGITS + 1];

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snprintf(expected, sizeof(expected), "%" PRIu64, numbers[i]);
        ck_assert(str_equal(str_of(text, (size_t)(str_write_u64(text, numbers[i]) - text)), str_from(expected)));
    }
}
END_TEST

START_TEST(searches_return_the_position_or_minus_one)
{
    struct str none = {NULL, 0};

    ck_assert_int_eq(str_find(STR("a.b.c"), '.'), 1);
    ck_assert_int_eq(str_rfind(STR("a.b.c"), '.'), 3);
    ck_assert_int_eq(str_find(STR("abc"), '.'), -1);
    ck_assert_int_eq(str_find(none, '.'), -1);
    ck_assert_int_eq(str_rfind(none, '.'), -1);
    ck_assert_int_eq(str_search(STR("a\r\n\r\nb"), STR("\r\n\r\n")), 1);
    ck_assert_int_eq(str_search(STR("a"), STR("ab")), -1);
    ck_assert_int_eq(str_search(none, none), 0);
    assert_str(str_trim(STR(" \t a b\t ")), "a b");
    assert_str(str_trim(STR("\n")), "\n");
    assert_str(str_trim(STR("  ")), "");
}
END_TEST

START_TEST(cut_returns_each_part_also_empty_ones)
{
    struct str rest = STR("a,,b,");
    static const char *const want[] = {"a", "", "b", ""};
    size_t count = 0;

    while (rest.data) {
        struct str part = str_cut(&rest, ',');

        ck_assert_uint_lt(count, 4);
        ck_assert(str_equal(part, str_from(want[count])));
        count++;
    }
    ck_assert_uint_eq(count, 4);
}
END_TEST

static const struct {
    const char *text;
    int error;
    uint64_t value;
} numbers[] = {
    {"0", 0, 0},
    {"007", 0, 7},
    {"18446744073709551615", 0, UINT64_MAX},
    {"18446744073709551616", -ERANGE, 0},
    {"99999999999999999999999", -ERANGE, 0},
    {"99999999999999999999999x", -EINVAL, 0},
    {"", -EINVAL, 0},
    {"+1", -EINVAL, 0},
    {"-1", -EINVAL, 0},
    {" 1", -EINVAL, 0},
    {"1 ", -EINVAL, 0},
    {"0x1", -EINVAL, 0},
};

START_TEST(decimal_numbers_are_parsed_up_to_64_bits)
{
    uint64_t value = 4711;

    ck_assert_int_eq(str_to_u64(str_from(numbers[_i].text), &value), numbers[_i].error);
    ck_assert_uint_eq(value, numbers[_i].error ? 4711 : numbers[_i].value);
}
END_TEST

START_TEST(only_hexadecimal_digits_have_a_value)
{
    static const char lower[] = "0123456789abcdef";

    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(str_hex_digit(lower[i]), i);
    for (int c = 'A'; c <= 'F'; c++)
        ck_assert_int_eq(str_hex_digit((char)c), c - 'A' + 10);
    for (int c = -128; c < 128; c++)
        ck_assert_int_eq(str_hex_digit((char)c) >= 0, c > 0 && strchr("0123456789abcdefABCDEF", c) != NULL);
}
END_TEST

START_TEST(distance_counts_edits_up_to_64_bytes)
{
    char longest[65];

    memset(longest, 'a', sizeof(longest));
    ck_assert_uint_eq(str_distance(STR("root"), STR("root")), 0);
    ck_assert_uint_eq(str_distance(STR("roto"), STR("root")), 1);
    ck_assert_uint_eq(str_distance(STR("lisen"), STR("listen")), 1);
    ck_assert_uint_eq(str_distance(STR(""), STR("abc")), 3);
    ck_assert_uint_eq(str_distance(STR("kitten"), STR("sitting")), 3);
    ck_assert_uint_eq(str_distance(str_of(longest, 65), STR("a")), SIZE_MAX);
    ck_assert_uint_eq(str_distance(str_of(longest, 64), str_of(longest, 63)), 1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, slices_end_at_the_end_of_the_string);
    tcase_add_test(tcase, comparisons_respect_or_ignore_case);
    tcase_add_loop_test(tcase, only_ascii_letters_are_equal_in_both_cases, 1, 21);
    tcase_add_test(tcase, numbers_are_written_in_decimal);
    tcase_add_test(tcase, searches_return_the_position_or_minus_one);
    tcase_add_test(tcase, cut_returns_each_part_also_empty_ones);
    tcase_add_loop_test(tcase, decimal_numbers_are_parsed_up_to_64_bits,
                        0, (int)(sizeof(numbers) / sizeof(numbers[0])));
    tcase_add_test(tcase, only_hexadecimal_digits_have_a_value);
    tcase_add_test(tcase, distance_counts_edits_up_to_64_bytes);
}

int main(void)
{
    return run_suite("str", add_tests);
}
