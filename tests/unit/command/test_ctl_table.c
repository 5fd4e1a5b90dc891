#include "command/ctl.h"

#include "../runner.h"

static void assert_table(struct str lines, const char *expected)
{
    struct buffer out = {0};

    ck_assert_int_eq(ctl_table_print(lines, &out), 0);
    ck_assert_int_eq(buffer_append(&out, str_of("", 1)), 0);
    ck_assert_str_eq(out.data, expected);
    buffer_finish(&out);
}

START_TEST(columns_are_aligned)
{
    assert_table(STR("name\tcount\tstate\nab\xc3\xa4" "cde\t7\tup\nx\t-1234567\tunhealthy\n"),
                 "name       count  state\n"
                 "ab\xc3\xa4" "cde         7  up\n"
                 "x       -1234567  unhealthy\n");
}
END_TEST

START_TEST(a_text_makes_the_column_a_text)
{
    assert_table(STR("a\tb\n1\t1\n22\t-\n"), " a  b\n 1  1\n22  -\n");
    assert_table(STR("a\n1-2\n3\n"), "a\n1-2\n3\n");
}
END_TEST

START_TEST(notes_follow_an_empty_line)
{
    assert_table(STR("a\tb\n1\t2\n\n35 things are not listed\n\n1 more\n"),
                 "a  b\n1  2\n\n35 things are not listed\n\n1 more\n");
    assert_table(STR("a\n\n"), "a\n\n");
}
END_TEST

START_TEST(malformed_tables_are_printed)
{
    char wide[128];

    assert_table(STR(""), "");
    assert_table(STR("a\tb\nc\nd\te\tf"), "a  b\nc\nd  e  f\n");
    memset(wide, '\t', sizeof(wide));
    struct buffer out = {0};

    ck_assert_int_eq(ctl_table_print(str_of(wide, sizeof(wide)), &out), 0);
    ck_assert_uint_le(out.length, 128);
    buffer_finish(&out);
}
END_TEST

int main(void)
{
    return run_tests("ctl_table", (const TTest *const[]){
            columns_are_aligned, a_text_makes_the_column_a_text, notes_follow_an_empty_line,
            malformed_tables_are_printed, NULL});
}
