/*
 * The keys that were limited last: counts, order, a full table, long keys, and a table that a worker has overwritten.
 */
#include "limit/limited_keys.h"

#include "../runner.h"

#include <string.h>

/* Each test is a process of its own, which begins with an empty table. */
static struct limited_keys keys;
static struct limited_key rows[LIMIT_LIMITED_KEYS];

static void expect(const struct limited_key *row, const char *text, uint64_t delayed, uint64_t rejected, int64_t last_s)
{
    ck_assert_uint_eq(row->length, strlen(text));
    ck_assert_mem_eq(row->text, text, row->length);
    ck_assert_uint_eq(row->counts[LIMIT_DELAYED], delayed);
    ck_assert_uint_eq(row->counts[LIMIT_REJECTED], rejected);
    ck_assert_int_eq(row->last_s, last_s);
}

START_TEST(last_limited_key_is_first)
{
    ck_assert_uint_eq(limited_keys_copy(&keys, rows), 0);
    limited_keys_add(&keys, STR("a"), 1, LIMIT_DELAYED, 100);
    limited_keys_add(&keys, STR("b"), 2, LIMIT_REJECTED, 100);
    limited_keys_add(&keys, STR("c"), 3, LIMIT_REJECTED, 101);
    limited_keys_add(&keys, STR("a"), 1, LIMIT_REJECTED, 102);
    ck_assert_uint_eq(limited_keys_copy(&keys, rows), 3);
    expect(&rows[0], "a", 1, 1, 102);
    expect(&rows[1], "c", 0, 1, 101);
    expect(&rows[2], "b", 0, 1, 100);
    ck_assert_uint_eq(keys.counts[LIMIT_DELAYED], 1);
    ck_assert_uint_eq(keys.counts[LIMIT_REJECTED], 3);
}
END_TEST

START_TEST(full_table_removes_the_least_recent_key)
{
    for (uint64_t hash = 1; hash <= LIMIT_LIMITED_KEYS; hash++)
        limited_keys_add(&keys, STR("old"), hash, LIMIT_REJECTED, (int64_t)hash);
    limited_keys_add(&keys, STR("old"), 1, LIMIT_REJECTED, 500);
    limited_keys_add(&keys, STR("new"), 1000, LIMIT_REJECTED, 501);
    ck_assert_uint_eq(limited_keys_copy(&keys, rows), LIMIT_LIMITED_KEYS);
    expect(&rows[0], "new", 0, 1, 501);
    expect(&rows[1], "old", 0, 2, 500);
    for (size_t i = 0; i < LIMIT_LIMITED_KEYS; i++)
        ck_assert_uint_ne(rows[i].hash, 2);
    ck_assert_uint_eq(keys.counts[LIMIT_REJECTED], LIMIT_LIMITED_KEYS + 2);
}
END_TEST

START_TEST(long_key_is_truncated)
{
    char text[LIMIT_LIMITED_KEY + 8];

    memset(text, 'k', sizeof(text));
    limited_keys_add(&keys, str_of(text, sizeof(text)), 1, LIMIT_DELAYED, 1);
    limited_keys_add(&keys, str_of(text, sizeof(text) - 1), 2, LIMIT_DELAYED, 1); /* another key with this beginning */
    ck_assert_uint_eq(limited_keys_copy(&keys, rows), 2);
    ck_assert_uint_eq(rows[0].length, LIMIT_LIMITED_KEY);
    ck_assert_mem_eq(rows[0].text, text, LIMIT_LIMITED_KEY);
}
END_TEST

START_TEST(overwritten_table_is_copied_safely)
{
    memset(&keys, 0xff, sizeof(keys));
    ck_assert_uint_eq(limited_keys_copy(&keys, rows), LIMIT_LIMITED_KEYS);
    for (size_t i = 0; i < LIMIT_LIMITED_KEYS; i++)
        ck_assert_uint_eq(rows[i].length, LIMIT_LIMITED_KEY);
}
END_TEST

int main(void)
{
    return run_tests("limited_keys", (const TTest *const[]){last_limited_key_is_first,
                                                            full_table_removes_the_least_recent_key,
                                                            long_key_is_truncated, overwritten_table_is_copied_safely,
                                                            NULL});
}
