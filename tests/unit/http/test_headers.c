#include "http/headers.h"

#include "suite.h"

#include <errno.h>
#include <stdio.h>

static struct arena arena;
static struct headers headers;

static void set_fields(const char *const (*fields)[2], size_t count)
{
    arena_init(&arena, NULL, 0);
    headers = (struct headers){0};
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(headers_add(&headers, &arena, str_from(fields[i][0]), str_from(fields[i][1])), 0);
}

START_TEST(fields_are_found_without_case)
{
    static const char *const fields[][2] = {
        {"Host", "a"}, {"accept", "1"}, {"ACCEPT", "2"}, {"Accept-Encoding", "3"}};
    struct header *field;

    set_fields(fields, COUNT(fields));
    ck_assert_text(headers_value(&headers, STR("hOST")), "a");
    field = headers_find(&headers, STR("Accept"));
    ck_assert_text(field->value, "1");
    field = headers_next(&headers, STR("Accept"), field);
    ck_assert_text(field->value, "2");
    ck_assert_ptr_null(headers_next(&headers, STR("Accept"), field));
    ck_assert_ptr_null(headers_find(&headers, STR("Accep")));
    ck_assert_ptr_null(headers_find(&headers, STR("")));
    ck_assert_ptr_null(headers_value(&headers, STR("Range")).data);
    arena_reset(&arena);
}
END_TEST

START_TEST(fields_are_added_set_and_removed)
{
    char names[200][8];

    arena_init(&arena, NULL, 0);
    headers = (struct headers){0};
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i % 50);
        ck_assert_int_eq(headers_add(&headers, &arena, str_from(names[i]), STR("v")), 0);
    }
    ck_assert_uint_eq(headers.count, 200);
    ck_assert_int_eq(headers_set(&headers, &arena, STR("N7"), STR("new")), 0);
    ck_assert_uint_eq(headers.count, 197);
    ck_assert_text(headers.items[7].value, "new");
    ck_assert_text(headers.items[57].name, "n8");
    headers_remove(&headers, STR("n8"));
    ck_assert_uint_eq(headers.count, 193);
    ck_assert_ptr_null(headers_find(&headers, STR("n8")));
    headers_remove(&headers, STR("absent"));
    ck_assert_uint_eq(headers.count, 193);
    ck_assert_int_eq(headers_set(&headers, &arena, STR("n8"), STR("again")), 0);
    ck_assert_text(headers.items[193].value, "again");
    arena_reset(&arena);
}
END_TEST

START_TEST(failed_addition_leaves_the_fields_unchanged)
{
    arena_init(&arena, NULL, 16);
    headers = (struct headers){0};
    ck_assert_int_lt(headers_add(&headers, &arena, STR("a"), STR("b")), 0);
    ck_assert_int_lt(headers_set(&headers, &arena, STR("a"), STR("b")), 0);
    ck_assert_uint_eq(headers.count, 0);
}
END_TEST

START_TEST(members_of_a_list_are_split_at_unquoted_commas)
{
    static const struct {
        const char *fields[3][2];
        const char *members;
    } cases[] = {
        {{{"L", "a, b,c"}}, "a|b|c|"},
        {{{"L", ""}}, ""},
        {{{"L", " , ,, "}}, ""},
        {{{"L", ",a,"}, {"x", "no"}, {"l", "b"}}, "a|b|"},
        {{{"L", "a;q=\"x,y\", b"}}, "a;q=\"x,y\"|b|"},
        {{{"L", "\"a\\\",b\", c"}}, "\"a\\\",b\"|c|"},
        {{{"L", "\"open, c"}}, "\"open, c|"},
        {{{"L", "\"end\\"}}, "\"end\\|"},
        {{{"L", "\t a \t,\tb"}}, "a|b|"},
        {{{"x", "a"}}, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct header_list list;
        struct str member;
        char seen[200] = "";
        size_t count = 0;

        while (count < 3 && cases[i].fields[count][0])
            count++;
        set_fields(cases[i].fields, count);
        header_list_start(&list, &headers, STR("L"));
        while (header_list_next(&list, &member)) {
            strncat(seen, member.data, member.length);
            strcat(seen, "|");
        }
        ck_assert_str_eq(seen, cases[i].members);
        arena_reset(&arena);
    }
}
END_TEST

START_TEST(member_is_found_without_case_and_parameters)
{
    static const char *const fields[][2] = {{"Connection", "keep-alive, Upgrade"},
                                            {"connection", "CLOSE;x=1"}};

    set_fields(fields, COUNT(fields));
    ck_assert(headers_list_has(&headers, STR("Connection"), STR("upgrade")));
    ck_assert(headers_list_has(&headers, STR("Connection"), STR("close")));
    ck_assert(!headers_list_has(&headers, STR("Connection"), STR("clos")));
    ck_assert(!headers_list_has(&headers, STR("Connection"), STR("keep")));
    ck_assert(!headers_list_has(&headers, STR("Other"), STR("close")));
    arena_reset(&arena);
}
END_TEST

START_TEST(values_of_a_name_are_joined)
{
    static const char *const fields[][2] = {
        {"Cookie", "a=1"}, {"Accept", "x"}, {"cookie", ""}, {"COOKIE", "b=2"}, {"Host", "h"}};
    struct str joined;
    struct arena none;

    set_fields(fields, COUNT(fields));
    ck_assert_int_eq(headers_join(&headers, str_equal_nocase, STR("Cookie"), STR("; "), &arena, &joined), 0);
    ck_assert_text(joined, "a=1; ; b=2");
    ck_assert_int_eq(headers_join(&headers, str_equal_nocase, STR("Accept"), STR(", "), &arena, &joined), 0);
    ck_assert_ptr_eq(joined.data, fields[1][1]);
    ck_assert_int_eq(headers_join(&headers, str_equal_nocase, STR("Range"), STR(", "), &arena, &joined), 0);
    ck_assert_ptr_null(joined.data);
    arena_init(&none, NULL, 1);
    ck_assert_int_eq(headers_join(&headers, str_equal_nocase, STR("Cookie"), STR("; "), &none, &joined), -ENOMEM);
    arena_reset(&arena);
}
END_TEST

/* The memory of a joined value depends on its length and not on the number of field lines. */
START_TEST(joins_many_in_one_piece)
{
    struct str joined;
    size_t before;

    arena_init(&arena, NULL, 0);
    headers = (struct headers){0};
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(headers_add(&headers, &arena, STR("X"), STR("0123456789")), 0);
    before = arena.size;
    ck_assert_int_eq(headers_join(&headers, str_equal_nocase, STR("x"), STR(", "), &arena, &joined), 0);
    ck_assert_uint_eq(joined.length, 1000 * 12 - 2);
    ck_assert_uint_lt(arena.size - before, 2 * joined.length);
    arena_reset(&arena);
}
END_TEST

START_TEST(fields_named_by_a_list_are_removed)
{
    static const char *const fields[][2] = {{"A", "1"}, {"b", "2"}, {"C", "3"}, {"a", "4"}};
    static const char *const names[][2] = {{"a", ""}, {"B", ""}, {"A", ""}, {"D", ""}};
    struct arena none;
    struct headers named;
    struct headers empty = {0};

    set_fields(names, COUNT(names));
    named = headers;
    headers = (struct headers){0};
    for (size_t i = 0; i < COUNT(fields); i++)
        ck_assert_int_eq(headers_add(&headers, &arena, str_from(fields[i][0]), str_from(fields[i][1])), 0);
    ck_assert_int_eq(headers_remove_named(&headers, &arena, &empty), 0);
    ck_assert_uint_eq(headers.count, 4);
    arena_init(&none, NULL, 1);
    ck_assert_int_eq(headers_remove_named(&headers, &none, &named), -ENOMEM);
    ck_assert_int_eq(headers_remove_named(&headers, &arena, &named), 0);
    ck_assert_uint_eq(headers.count, 1);
    ck_assert_text(headers.items[0].name, "C");
    arena_reset(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        fields_are_found_without_case, fields_are_added_set_and_removed, failed_addition_leaves_the_fields_unchanged,
        members_of_a_list_are_split_at_unquoted_commas, member_is_found_without_case_and_parameters,
        values_of_a_name_are_joined, joins_many_in_one_piece, fields_named_by_a_list_are_removed,
    };

    return suite_run("headers", tests, COUNT(tests));
}
