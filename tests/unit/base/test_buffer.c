#include "base/buffer.h"

#include "../runner.h"

#include <errno.h>

START_TEST(buffer_grows_and_consumes_its_bytes)
{
    struct buffer buffer = {0};

    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(buffer_append(&buffer, STR("0123456789")), 0);
    ck_assert_uint_eq(buffer.length, 10000);
    buffer_consume(&buffer, 9995);
    ck_assert(str_equal(buffer_str(&buffer), STR("56789")));
    buffer_consume(&buffer, 99);
    ck_assert_uint_eq(buffer.length, 0);
    ck_assert_int_eq(buffer_append(&buffer, (struct str){NULL, 0}), 0);
    buffer_finish(&buffer);
    buffer_finish(&buffer);
    ck_assert_ptr_null(buffer.data);
}
END_TEST

START_TEST(limit_is_exact)
{
    struct buffer buffer;

    buffer_init(&buffer, 10);
    ck_assert_int_eq(buffer_append(&buffer, STR("12345678901")), -ENOBUFS);
    ck_assert_uint_eq(buffer.length, 0);
    ck_assert_int_eq(buffer_append(&buffer, STR("1234567890")), 0);
    ck_assert_int_eq(buffer_append(&buffer, STR("1")), -ENOBUFS);
    ck_assert_int_eq(buffer_reserve(&buffer, SIZE_MAX), -ENOBUFS);
    ck_assert_uint_eq(buffer.length, 10);
    buffer_consume(&buffer, 5);
    ck_assert_int_eq(buffer_printf(&buffer, "%d", 12345), 0);
    ck_assert_int_eq(buffer_printf(&buffer, "%d", 6), -ENOBUFS);
    ck_assert(str_equal(buffer_str(&buffer), STR("6789012345")));
    buffer_finish(&buffer);
    ck_assert_uint_eq(buffer.max, 10);
}
END_TEST

START_TEST(printf_grows_the_buffer_to_a_long_text)
{
    struct buffer buffer = {0};

    ck_assert_int_eq(buffer_printf(&buffer, "%5000d", 7), 0);
    ck_assert_uint_eq(buffer.length, 5000);
    ck_assert_int_eq(buffer.data[4999], '7');
    buffer_finish(&buffer);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, buffer_grows_and_consumes_its_bytes);
    tcase_add_test(tcase, limit_is_exact);
    tcase_add_test(tcase, printf_grows_the_buffer_to_a_long_text);
}

int main(void)
{
    return run_suite("buffer", add_tests);
}
