#include "base/table.h"

#include "../runner.h"

#include <stdio.h>

#define KEYS 2000

START_TEST(each_of_many_keys_is_found_until_removed)
{
    static char names[KEYS][16];
    struct table table;
    size_t cursor = 0;
    size_t seen = 0;

    table_init(&table, false);
    ck_assert_ptr_null(table_get(&table, STR("x")));
    ck_assert_ptr_null(table_remove(&table, STR("x")));
    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof(names[i]), "key%d", i);
        ck_assert_int_eq(table_set(&table, str_from(names[i]), names[i]), 0);
    }
    for (int i = 0; i < KEYS; i += 2)
        ck_assert_ptr_eq(table_remove(&table, str_from(names[i])), names[i]);
    for (int i = 0; i < KEYS; i++)
        ck_assert_ptr_eq(table_get(&table, str_from(names[i])), i % 2 ? names[i] : NULL);
    while (table_next(&table, &cursor))
        seen++;
    ck_assert_uint_eq(seen, KEYS / 2);
    ck_assert_uint_eq(table.count, KEYS / 2);
    table_finish(&table);
    ck_assert_ptr_null(table_get(&table, str_from(names[1])));
}
END_TEST

START_TEST(churn_does_not_grow)
{
    struct table table;
    char name[16];

    table_init(&table, false);
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "%d", i);
        ck_assert_int_eq(table_set(&table, str_from(name), name), 0);
        ck_assert_ptr_eq(table_remove(&table, str_from(name)), name);
    }
    ck_assert_uint_le(table.capacity, 64);
    table_finish(&table);
}
END_TEST

START_TEST(second_value_replaces_the_first)
{
    struct table table;
    int a = 0;
    int b = 0;

    table_init(&table, false);
    ck_assert_int_eq(table_set(&table, STR("k"), &a), 0);
    ck_assert_int_eq(table_set(&table, STR("k"), &b), 0);
    ck_assert_uint_eq(table.count, 1);
    ck_assert_ptr_eq(table_get(&table, STR("k")), &b);
    ck_assert_ptr_null(table_get(&table, STR("K")));
    table_finish(&table);
}
END_TEST

START_TEST(empty_key_is_a_key)
{
    struct table table;
    struct str none = {NULL, 0};
    int value = 0;

    table_init(&table, false);
    ck_assert_int_eq(table_set(&table, none, &value), 0);
    ck_assert_ptr_eq(table_get(&table, STR("")), &value);
    ck_assert_ptr_eq(table_remove(&table, none), &value);
    ck_assert_ptr_null(table_get(&table, none));
    table_finish(&table);
}
END_TEST

START_TEST(hash_ignores_the_case_of_letters_only)
{
    static const struct {
        const char *a;
        const char *b;
        bool same;
    } cases[] = {
        {"content-length", "Content-Length", true},
        {"X", "x", true},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", true},
        {"@@@@@@@@", "````````", false},
        {"[[[[[[[[", "{{{{{{{{", false},
        {"\xc1\xc1\xc1\xc1\xc1\xc1\xc1\xc1", "\xe1\xe1\xe1\xe1\xe1\xe1\xe1\xe1", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool same = table_hash(str_from(cases[i].a), true) == table_hash(str_from(cases[i].b), true);

        ck_assert_msg(same == cases[i].same, "%s", cases[i].a);
        ck_assert(table_hash(str_from(cases[i].a), false) != table_hash(str_from(cases[i].b), false));
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, each_of_many_keys_is_found_until_removed);
    tcase_add_test(tcase, churn_does_not_grow);
    tcase_add_test(tcase, second_value_replaces_the_first);
    tcase_add_test(tcase, empty_key_is_a_key);
    tcase_add_test(tcase, hash_ignores_the_case_of_letters_only);
}

int main(void)
{
    return run_suite("table", add_tests);
}
