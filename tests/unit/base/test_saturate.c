#include "base/saturate.h"

#include "../runner.h"

static const struct {
    uint64_t a, b, difference;
} rows[] = {
    {0, 0, 0}, {1, 0, 1}, {0, 1, 0}, {7, 7, 0}, {7, 3, 4}, {3, 7, 0}, {16384, 300 * 1024, 0},
    {UINT64_MAX, 0, UINT64_MAX}, {0, UINT64_MAX, 0}, {UINT64_MAX, UINT64_MAX, 0}, {UINT64_MAX, 1, UINT64_MAX - 1},
};

START_TEST(subtraction_stops_at_zero)
{
    ck_assert_uint_eq(u64_sub_sat(rows[_i].a, rows[_i].b), rows[_i].difference);
    ck_assert_uint_eq(size_sub_sat((size_t)rows[_i].a, (size_t)rows[_i].b), (size_t)rows[_i].difference);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, subtraction_stops_at_zero, 0, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
    return run_suite("saturate", add_tests);
}
