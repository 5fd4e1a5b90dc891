#include "base/arena.h"
#include "base/limits.h"
#include "base/memory_budget.h"

#include "../runner.h"

START_TEST(takes_from_all_or_none)
{
    struct memory_budget worker = {.max = 100};
    struct memory_budget connection = {.parent = &worker, .max = 80};

    ck_assert(memory_budget_reserve(&connection, 60));
    ck_assert(!memory_budget_reserve(&connection, 21));
    ck_assert(memory_budget_reserve(&worker, 30));
    ck_assert(!memory_budget_reserve(&connection, 20)); /* the parent has 10 */
    ck_assert_uint_eq(connection.used, 60);
    ck_assert_uint_eq(worker.used, 90);
    ck_assert_uint_eq(connection.rejections, 1);
    ck_assert_uint_eq(worker.rejections, 1);
    ck_assert(!memory_budget_reserve(&connection, SIZE_MAX));
    memory_budget_release(&connection, 60);
    ck_assert_uint_eq(connection.used, 0);
    ck_assert_uint_eq(worker.used, 30);
}
END_TEST

START_TEST(no_cap_and_no_budget)
{
    struct memory_budget budget = {0};

    ck_assert(memory_budget_reserve(&budget, SIZE_MAX / 2));
    ck_assert(memory_budget_reserve(NULL, SIZE_MAX));
    memory_budget_release(NULL, SIZE_MAX);
}
END_TEST

START_TEST(arena_is_counted)
{
    struct arena_pool pool = {.max_free = 1, .budget = {.max = 2 * ARENA_BLOCK_SIZE}};
    struct memory_budget connection = {.parent = &pool.budget, .max = ARENA_BLOCK_SIZE};
    struct arena arena;
    struct arena other;

    arena_init(&arena, &pool, 0);
    arena_init(&other, &pool, 0);
    ck_assert_ptr_nonnull(arena_alloc(&arena, 16));
    ck_assert_uint_eq(pool.budget.used, ARENA_BLOCK_SIZE);
    arena_set_budget(&arena, &connection);
    ck_assert_uint_eq(connection.used, ARENA_BLOCK_SIZE);
    ck_assert_uint_eq(pool.budget.used, ARENA_BLOCK_SIZE);
    ck_assert_ptr_null(arena_alloc(&arena, ARENA_BLOCK_SIZE)); /* rejected by the connection */
    ck_assert_ptr_nonnull(arena_alloc(&other, 16));
    ck_assert_ptr_null(arena_alloc(&other, ARENA_BLOCK_SIZE)); /* rejected by the worker */
    arena_set_budget(&arena, &pool.budget);
    ck_assert_uint_eq(connection.used, 0);
    arena_reset(&arena);
    arena_reset(&other);
    ck_assert_uint_eq(pool.budget.used, 0);
    arena_pool_finish(&pool);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, takes_from_all_or_none);
    tcase_add_test(tcase, no_cap_and_no_budget);
    tcase_add_test(tcase, arena_is_counted);
}

int main(void)
{
    return run_suite("memory_budget", add_tests);
}
