#include "top/top_reader.h"

#include "../runner.h"
#include "base/limits.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    const char *text;
    int result;
    uint64_t us;
} seconds[] = {
    {"0", 0, 0},
    {"1", 0, 1000000},
    {"0.000001", 0, 1},
    {"0.005", 0, 5000},
    {"12.5", 0, 12500000},
    {"0.0000001", -EBADMSG, 0},
    {"1.", -EBADMSG, 0},
    {".5", -EBADMSG, 0},
    {"-1", -EBADMSG, 0},
    {"1e3", -EBADMSG, 0},
    {"", -EBADMSG, 0},
    {"1.2.3", -EBADMSG, 0},
    {"18446744073708", 0, 18446744073708000000u},
    {"18446744073709", -EBADMSG, 0},
    {"99999999999999999999", -EBADMSG, 0},
};

START_TEST(seconds_have_six_decimals)
{
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        uint64_t us = 77;

        ck_assert_msg(top_seconds_parse(str_from(seconds[i].text), &us) == seconds[i].result, "%s", seconds[i].text);
        ck_assert_uint_eq(us, seconds[i].result == 0 ? seconds[i].us : 77);
    }
}
END_TEST

/* Adds the numbers of "a", and skips other members. */
static int add_a(struct top_reader *reader, struct str key, void *argument)
{
    uint64_t *sum = reader->owner;
    uint64_t number;
    int error = str_equal(key, STR("a")) ? top_read_number(reader, &number) : top_read_ignored(reader);

    if (error == 0 && str_equal(key, STR("a")))
        *sum += number;
    return error;
}

static int sum_of(struct str text, uint64_t *sum)
{
    struct top_reader reader;
    int error = top_reader_start(&reader, text, sum);

    if (error == 0)
        error = top_read_object(&reader, add_a, NULL);
    top_reader_finish(&reader);
    return error;
}

static const struct {
    const char *text;
    int result;
    uint64_t sum;
} objects[] = {
    {"{}", 0, 0},
    {"{\"a\": 1, \"b\": {\"a\": 7, \"c\": [1, {\"d\": []}]}, \"a\": 2}", 0, 3},
    {"\n{\"b\": [[[]], {}], \"a\": 18446744073709551615}\n", 0, UINT64_MAX},
    {"{\"a\": 18446744073709551616}", -EBADMSG, 0},
    {"{\"a\": -1}", -EBADMSG, 0},
    {"{\"a\": [1]}", -EBADMSG, 0},
    {"{\"a\": {}}", -EBADMSG, 0},
    {"{[1]: 1}", -EBADMSG, 0},
    {"{\"b\": &x 1, \"a\": *x}", -EBADMSG, 0},
    {"{\"b\": &x [*x]}", -EBADMSG, 0},
    {"[]", -EBADMSG, 0},
    {"1", -EBADMSG, 0},
    {"", -EBADMSG, 0},
    {"{", -EBADMSG, 0},
    {"{\"a\": 1", -EBADMSG, 0},
    {"{\"a\": \"\x01\"}", -EBADMSG, 0},
    {"{\"a\": \"\xff\"}", -EBADMSG, 0},
};

START_TEST(members)
{
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        uint64_t sum = 0;

        ck_assert_msg(sum_of(str_from(objects[i].text), &sum) == objects[i].result, "%s", objects[i].text);
        if (objects[i].result == 0)
            ck_assert_uint_eq(sum, objects[i].sum);
    }
    ck_assert_int_eq(sum_of((struct str){NULL, 0}, &(uint64_t){0}), -EBADMSG);
    ck_assert_int_eq(sum_of(str_of("{\"a\"\0: 1}", 9), &(uint64_t){0}), -EBADMSG);
}
END_TEST

/* The key has `length` bytes of 'a'; only the one of length 1 is read. */
START_TEST(long_keys_are_ignored)
{
    static const char letters[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    char text[LIMIT_TOP_KEY + 64];

    ck_assert_uint_ge(strlen(letters), LIMIT_TOP_KEY + 8);
    for (int length = 1; length < LIMIT_TOP_KEY + 8; length++) {
        uint64_t sum = 0;
        int size = snprintf(text, sizeof(text), "{\"%.*s\": 5}", length, letters);

        ck_assert_int_eq(sum_of(str_of(text, (size_t)size), &sum), 0);
        ck_assert_uint_eq(sum, length == 1 ? 5 : 0);
    }
}
END_TEST

/* `depth` lists in each other, the last one unclosed. */
START_TEST(deep_nesting_is_rejected)
{
    char text[LIMIT_TOP_DEPTH * 2 + 16];

    for (int depth = LIMIT_TOP_DEPTH - 1; depth <= LIMIT_TOP_DEPTH + 1; depth++) {
        size_t length = (size_t)snprintf(text, sizeof(text), "{\"b\": ");

        memset(text + length, '[', (size_t)depth);
        length += (size_t)depth;
        ck_assert_int_eq(sum_of(str_of(text, length), &(uint64_t){0}), depth > LIMIT_TOP_DEPTH ? -E2BIG : -EBADMSG);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {seconds_have_six_decimals, members, long_keys_are_ignored, deep_nesting_is_rejected,
                                         NULL};

    return run_tests("top_reader", tests);
}
