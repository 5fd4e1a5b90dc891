#include "log/log_selection.h"

#include "../runner.h"

#include <errno.h>

START_TEST(shares_are_parsed)
{
    static const struct {
        const char *text;
        int result;
        uint32_t numerator, denominator;
    } rows[] = {
        {"1/100", 0, 1, 100},
        {"3/4", 0, 3, 4},
        {"0.01", 0, 1, 100},
        {"0.25", 0, 25, 100},
        {"1.0", 0, 10, 10},
        {"1", 0, 1, 1},
        {"1/1000000", 0, 1, 1000000},
        {"0.000001", 0, 1, 1000000},
        {"0", -ERANGE, 0, 0},
        {"0.0", -ERANGE, 0, 0},
        {"2", -ERANGE, 0, 0},
        {"1.5", -ERANGE, 0, 0},
        {"3/2", -ERANGE, 0, 0},
        {"0/2", -ERANGE, 0, 0},
        {"1/0", -ERANGE, 0, 0},
        {"1/1000001", -ERANGE, 0, 0},
        {"0.0000001", -ERANGE, 0, 0},
        {"18446744073709551617.5", -EINVAL, 0, 0},
        {"1/18446744073709551616", -ERANGE, 0, 0},
        {"", -EINVAL, 0, 0},
        {"-1", -EINVAL, 0, 0},
        {".5", -EINVAL, 0, 0},
        {"1.", -EINVAL, 0, 0},
        {"1/", -EINVAL, 0, 0},
        {"/2", -EINVAL, 0, 0},
        {"1/2/3", -EINVAL, 0, 0},
        {"0.1/2", -EINVAL, 0, 0},
        {"10%", -EINVAL, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t numerator = 0, denominator = 0;

        ck_assert_msg(log_sample_parse(str_from(rows[i].text), &numerator, &denominator) == rows[i].result, "%s",
                      rows[i].text);
        ck_assert_uint_eq(numerator, rows[i].numerator);
        ck_assert_uint_eq(denominator, rows[i].denominator);
    }
}
END_TEST

START_TEST(samples_are_exact_and_even)
{
    static const struct {
        uint32_t numerator, denominator;
        const char *pattern; /* of the first requests */
    } rows[] = {
        {1, 3, "x..x..x.."}, {2, 3, "x.xx.xx.x"}, {1, 1, "xxxxxxxxx"}, {50, 100, "x.x.x.x.x"}, {3, 4, "x.xxx.xxx"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct log_selection selection = {.numerator = rows[i].numerator, .denominator = rows[i].denominator};
        uint32_t counter = 0;
        unsigned selected = 0;
        char pattern[10] = "";

        for (uint32_t request = 0; request < 1000 * selection.denominator; request++) {
            bool is_selected = log_selection_includes(&selection, NULL, &counter, NULL, NULL);

            if (request < 9)
                pattern[request] = is_selected ? 'x' : '.';
            selected += is_selected;
        }
        ck_assert_str_eq(pattern, rows[i].pattern);
        ck_assert_uint_eq(selected, 1000 * selection.numerator);
    }
}
END_TEST

START_TEST(conditions_are_those_of_nginx)
{
    static const struct {
        const char *text;
        bool included;
    } rows[] = {{"", false}, {"0", false}, {"1", true}, {"00", true}, {" ", true}, {"off", true}};
    struct arena arena;

    arena_init(&arena, NULL, 4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct log_selection selection = {.numerator = 1, .denominator = 2};
        struct str why;
        uint32_t counter = 0;
        size_t at;

        ck_assert_int_eq(
            template_compile(&arena, str_from(rows[i].text), NULL, &selection.condition, &at, &why), 0);
        ck_assert_msg(log_selection_includes(&selection, selection.condition, &counter, NULL, &arena) ==
                          rows[i].included,
                      "%s", rows[i].text);
        ck_assert_uint_eq(counter, rows[i].included); /* only requests that meet the condition are counted */
    }
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    return run_tests("log_selection", (const TTest *const[]){shares_are_parsed, samples_are_exact_and_even,
                                                             conditions_are_those_of_nginx, NULL});
}
