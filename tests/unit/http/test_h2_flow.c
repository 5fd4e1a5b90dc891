#include "http/h2/flow.h"

#include "suite.h"

static const struct {
    int32_t window;
    int64_t change;
    bool valid;
    int32_t after;
} sums[] = {
    {0, 1, true, 1},
    {0, INT32_MAX, true, INT32_MAX},
    {1, INT32_MAX, false, 1},
    {INT32_MAX, 0, true, INT32_MAX},
    {INT32_MAX, 1, false, INT32_MAX},
    {INT32_MAX, -1, true, INT32_MAX - 1},
    {0, -INT32_MAX, true, -INT32_MAX},
    {-1, -INT32_MAX, true, INT32_MIN},
    {-2, -INT32_MAX, false, -2},
    {INT32_MIN, -1, false, INT32_MIN},
    {INT32_MIN, INT32_MAX, true, -1},
    {-65535, 65535, true, 0},
};

START_TEST(window_sum_beyond_31_bits_is_rejected)
{
    int32_t window = sums[_i].window;

    ck_assert_int_eq(h2_window_add(&window, sums[_i].change), sums[_i].valid);
    ck_assert_int_eq(window, sums[_i].after);
}
END_TEST

START_TEST(bytes_beyond_the_window_are_rejected)
{
    struct h2_receive_window window;

    h2_receive_window_init(&window, 100);
    ck_assert(h2_receive_window_take(&window, 99));
    ck_assert(!h2_receive_window_take(&window, 2));
    ck_assert_uint_eq(window.left, 1);
    ck_assert(h2_receive_window_take(&window, 1));
    ck_assert(h2_receive_window_take(&window, 0));
    ck_assert(!h2_receive_window_take(&window, 1));
    ck_assert(!h2_receive_window_take(&window, UINT32_MAX));
}
END_TEST

START_TEST(released_bytes_are_announced_from_half_a_window_on)
{
    struct h2_receive_window window;

    h2_receive_window_init(&window, 101);
    ck_assert(h2_receive_window_take(&window, 101));
    ck_assert_uint_eq(h2_receive_window_release(&window, 49), 0);
    ck_assert_uint_eq(window.left, 0);
    ck_assert_uint_eq(h2_receive_window_release(&window, 1), 50);
    ck_assert_uint_eq(window.left, 50);
    ck_assert_uint_eq(h2_receive_window_release(&window, 51), 51);
    ck_assert_uint_eq(window.left, 101);
    ck_assert_uint_eq(h2_receive_window_release(&window, 0), 0);
}
END_TEST

/* A window of one byte is enlarged after each byte; a window of zero is not. */
START_TEST(window_of_one_byte_opens_after_each_byte)
{
    struct h2_receive_window window;

    h2_receive_window_init(&window, 1);
    ck_assert_uint_eq(h2_receive_window_release(&window, 0), 0);
    ck_assert(h2_receive_window_take(&window, 1));
    ck_assert_uint_eq(h2_receive_window_release(&window, 1), 1);
    ck_assert_uint_eq(window.left, 1);
    h2_receive_window_init(&window, 0);
    ck_assert(!h2_receive_window_take(&window, 1));
    ck_assert_uint_eq(h2_receive_window_release(&window, 0), 0);
}
END_TEST

START_TEST(resize_is_announced_with_a_release)
{
    struct h2_receive_window window;

    h2_receive_window_init(&window, 100);
    ck_assert(h2_receive_window_take(&window, 10));
    h2_receive_window_resize(&window, 400);
    ck_assert_uint_eq(window.left, 90);
    ck_assert_uint_eq(h2_receive_window_release(&window, 10), 310);
    ck_assert_uint_eq(window.left, 400);
    h2_receive_window_resize(&window, 399); /* no effect: a window does not become smaller */
    h2_receive_window_resize(&window, 0x80000000);
    ck_assert_uint_eq(window.size, 400);
    ck_assert_uint_eq(h2_receive_window_release(&window, 0), 0);
    h2_receive_window_resize(&window, INT32_MAX);
    ck_assert_uint_eq(h2_receive_window_release(&window, 0), INT32_MAX - 400);
    ck_assert_uint_eq(window.left, INT32_MAX);
}
END_TEST

START_TEST(one_measurement_at_a_time)
{
    struct h2_bdp bdp = {0};

    ck_assert(h2_bdp_received(&bdp, 10));
    ck_assert(!h2_bdp_received(&bdp, 20));
    ck_assert_uint_eq(bdp.bytes, 30);
    ck_assert_uint_eq(h2_bdp_window(&bdp, 1000, 4000), 1000);
    ck_assert(h2_bdp_received(&bdp, 5));
    ck_assert_uint_eq(bdp.bytes, 5);
}
END_TEST

static const struct {
    uint32_t bytes, size, max, after;
} growths[] = {
    {599, 900, 10000, 900},
    {600, 900, 10000, 1800},
    {900, 900, 10000, 1800},
    {UINT32_MAX, 900, 10000, 1800}, /* doubles once per round trip */
    {900, 900, 1800, 1800},
    {900, 900, 1799, 1799},
    {1799, 1799, 1799, 1799},
    {UINT32_MAX, 0x7fffffff, 0x7fffffff, 0x7fffffff},
    {0, 900, 10000, 900},
};

START_TEST(window_doubles_at_most_once_per_round_trip)
{
    struct h2_bdp bdp = {.bytes = growths[_i].bytes, .measuring = true};

    ck_assert_uint_eq(h2_bdp_window(&bdp, growths[_i].size, growths[_i].max), growths[_i].after);
    ck_assert(!bdp.measuring);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {bytes_beyond_the_window_are_rejected,
                                  released_bytes_are_announced_from_half_a_window_on,
                                  window_of_one_byte_opens_after_each_byte, resize_is_announced_with_a_release,
                                  one_measurement_at_a_time};
    const struct suite_loop loops[] = {
        {window_sum_beyond_31_bits_is_rejected, COUNT(sums)},
        {window_doubles_at_most_once_per_round_trip, COUNT(growths)},
    };

    return suite_run_loops("h2_flow", tests, COUNT(tests), loops, COUNT(loops));
}
