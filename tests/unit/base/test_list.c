#include "base/list.h"

#include "../runner.h"

struct item {
    int number;
    struct list link;
};

START_TEST(items_keep_the_order_of_insertion)
{
    struct list list;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};

    list_init(&list);
    ck_assert(list_empty(&list));
    ck_assert_ptr_null(list_pop(&list));
    for (int i = 0; i < 3; i++)
        list_push(&list, &items[i].link);
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    ck_assert_int_eq(container_of(list_pop(&list), struct item, link)->number, 0);
    list_insert_before(&items[2].link, &items[1].link);
    ck_assert_int_eq(container_of(list_pop(&list), struct item, link)->number, 1);
    ck_assert_int_eq(container_of(list_pop(&list), struct item, link)->number, 2);
    ck_assert(list_empty(&list));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, items_keep_the_order_of_insertion);
}

int main(void)
{
    return run_suite("list", add_tests);
}
