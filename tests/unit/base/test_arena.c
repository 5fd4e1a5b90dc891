#include "base/arena.h"
#include "base/limits.h"

#include "../runner.h"

#include <stdalign.h>

START_TEST(allocations_are_aligned_and_distinct)
{
    struct arena arena;
    char *last = NULL;

    arena_init(&arena, NULL, 0);
    ck_assert_uint_eq(arena.size, 0);
    for (size_t size = 0; size < 3000; size += 7) {
        char *memory = arena_alloc(&arena, size);

        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % alignof(max_align_t), 0);
        memset(memory, (int)size, size);
        ck_assert(size == 0 || memory != last);
        last = memory;
    }
    arena_reset(&arena);
    ck_assert_ptr_null(arena.blocks);
    ck_assert_uint_eq(arena.size, 0);
}
END_TEST

START_TEST(large_keeps_current_block)
{
    struct arena arena;
    char *small;
    char *large;

    arena_init(&arena, NULL, 0);
    small = arena_alloc(&arena, 16);
    large = arena_alloc(&arena, 100000);
    ck_assert_ptr_nonnull(large);
    memset(large, 1, 100000);
    ck_assert_ptr_eq(arena_alloc(&arena, 16), small + 16);
    arena_reset(&arena);

    ck_assert_ptr_nonnull(arena_alloc(&arena, 100000));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 16));
    arena_reset(&arena);
}
END_TEST

START_TEST(allocations_beyond_the_limit_fail)
{
    struct arena arena;

    arena_init(&arena, NULL, 2 * ARENA_BLOCK_SIZE);
    ck_assert_ptr_null(arena_alloc(&arena, 3 * ARENA_BLOCK_SIZE));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 3000));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 3000));
    ck_assert_ptr_null(arena_alloc(&arena, 3000));
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX - 8));
    ck_assert_ptr_null(arena_zalloc(&arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(arena_copy(&arena, str_of("", SIZE_MAX)).data);
    arena_reset(&arena);
}
END_TEST

START_TEST(pool_keeps_blocks_up_to_max_free)
{
    struct arena_pool pool = {.max_free = 1};
    struct arena arena;
    void *first;

    arena_init(&arena, &pool, 0);
    first = arena_alloc(&arena, 10);
    ck_assert_ptr_nonnull(arena_alloc(&arena, ARENA_BLOCK_SIZE - 100));
    ck_assert_ptr_nonnull(arena_alloc(&arena, ARENA_BLOCK_SIZE * 2));
    arena_reset(&arena);
    ck_assert_uint_eq(pool.free_count, 1);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(arena_alloc(&arena, 10));
    ck_assert_uint_eq(pool.free_count, 0);
    arena_reset(&arena);
    arena_pool_finish(&pool);
    ck_assert_ptr_null(pool.free_blocks);
}
END_TEST

START_TEST(copies_and_formats_text)
{
    struct arena arena;
    struct str none = {NULL, 0};
    struct str copy;
    char *zeroed;

    arena_init(&arena, NULL, 0);
    copy = arena_copy(&arena, str_of("abcdef", 3));
    ck_assert_str_eq(copy.data, "abc");
    ck_assert_uint_eq(copy.length, 3);
    ck_assert_ptr_nonnull(arena_copy(&arena, none).data);
    copy = arena_printf(&arena, "%s-%d", "x", 42);
    ck_assert_str_eq(copy.data, "x-42");
    ck_assert_uint_eq(copy.length, 4);
    ck_assert_str_eq(arena_print_number(&arena, 0).data, "0");
    ck_assert_str_eq(arena_print_number(&arena, UINT64_MAX).data, "18446744073709551615");
    ck_assert_str_eq(arena_print_seconds(&arena, 999).data, "0.000");
    ck_assert_str_eq(arena_print_seconds(&arena, 61045999).data, "61.045");
    zeroed = arena_zalloc(&arena, 10, 10);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(zeroed[i], 0);
    arena_reset(&arena);
}
END_TEST

START_TEST(strings_are_joined_within_the_limit)
{
    const struct str parts[] = {STR("one"), STR(""), STR(" two")}, bad[] = {STR("one"), {NULL, 0}};
    struct arena arena;
    struct str joined;

    arena_init(&arena, NULL, 0);
    joined = arena_join(&arena, parts, 3);
    ck_assert(str_equal(joined, STR("one two")));
    ck_assert_int_eq(joined.data[joined.length], '\0');
    joined = arena_join(&arena, parts, 0);
    ck_assert(joined.data && joined.length == 0);
    ck_assert_ptr_null(arena_join(&arena, bad, 2).data);
    arena_reset(&arena);
    arena_init(&arena, NULL, 8);
    ck_assert_ptr_null(arena_join(&arena, parts, 3).data);
    arena_reset(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, allocations_are_aligned_and_distinct);
    tcase_add_test(tcase, large_keeps_current_block);
    tcase_add_test(tcase, allocations_beyond_the_limit_fail);
    tcase_add_test(tcase, pool_keeps_blocks_up_to_max_free);
    tcase_add_test(tcase, copies_and_formats_text);
    tcase_add_test(tcase, strings_are_joined_within_the_limit);
}

int main(void)
{
    return run_suite("arena", add_tests);
}
