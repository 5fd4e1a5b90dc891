/* Pairs of queries and cookies: the first one of a name counts; members without "=" are not pairs. */
#include "http/pairs.h"

#include "suite.h"

static const struct row {
    const char *list; /* NULL: absent */
    const char *name;
    const char *query, *cookie; /* the value by each function; NULL: none */
} rows[] = {
    {NULL, "a", NULL, NULL},
    {"a", "a", NULL, NULL},
    {"a=", "a", "", ""},
    {"=x", "", "x", "x"},
    {"a=1", "a", "1", "1"},
    {"a=1", "A", "1", NULL},
    {"a=b=c", "a", "b=c", "b=c"},
    {"ba=1&a=2&a=3", "a", "2", NULL},
    {"ba=1;a=2;a=3", "a", NULL, "2"},
    {"b=1; a=2 ;c=3", "a", NULL, "2"},
    {"b=1; a=2 ;c=3", "b", "1; a=2 ;c=3", "1"},
    {" a=1", "a", NULL, "1"},
    {"a =1", "a", NULL, NULL},
    {"a;&a=1", "a", "1", NULL},
    {"&;a&;", "a", NULL, NULL},
};

static void check_value(struct str value, const char *expected)
{
    if (expected)
        ck_assert_text(value, expected);
    ck_assert_int_eq(value.data != NULL, expected != NULL);
}

START_TEST(first_pair_of_a_name)
{
    const struct row *row = &rows[_i];
    struct str list = row->list ? str_from(row->list) : (struct str){NULL, 0};

    check_value(query_find(list, str_from(row->name)), row->query);
    check_value(cookie_find(list, str_from(row->name)), row->cookie);
}
END_TEST

int main(void)
{
    const struct suite_loop loops[] = {{first_pair_of_a_name, COUNT(rows)}};

    return suite_run_loops("pairs", NULL, 0, loops, COUNT(loops));
}
