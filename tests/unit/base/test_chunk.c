#include "base/chunk.h"

#include <check.h>

START_TEST(advance_moves_each_kind_up_to_its_end)
{
    struct chunk bytes = {.kind = CHUNK_BYTES, .bytes = STR("hello")};
    struct chunk file = {.kind = CHUNK_FILE, .file = {.fd = 3, .at = 100, .length = 5000000000u}};
    struct chunk pipe = {.kind = CHUNK_PIPE, .pipe = {.length = 10}};

    chunk_advance(&bytes, 2);
    ck_assert(str_equal(bytes.bytes, STR("llo")));
    chunk_advance(&bytes, 99);
    ck_assert_uint_eq(chunk_length(&bytes), 0);
    chunk_advance(&file, 4999999999u);
    ck_assert_int_eq(file.file.at, 5000000099);
    ck_assert_uint_eq(chunk_length(&file), 1);
    chunk_advance(&pipe, 11);
    ck_assert_uint_eq(chunk_length(&pipe), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chunk");
    TCase *tests = tcase_create("chunk");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tests, advance_moves_each_kind_up_to_its_end);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
