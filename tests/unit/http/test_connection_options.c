#include "http/connection_options.h"

#include "suite.h"

#include <errno.h>

static struct arena arena;
static struct headers headers;
static struct connection_options options;

static int read_fields(const char *const (*fields)[2], size_t count)
{
    arena_reset(&arena);
    headers = (struct headers){0};
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(headers_add(&headers, &arena, str_from(fields[i][0]), str_from(fields[i][1])), 0);
    return connection_options_read(&headers, &options);
}

START_TEST(options_are_recognized)
{
    static const char *const fields[][2] = {
        {"Connection", "keep-alive, X-Hop;q=1,,\"a,b\""}, {"Upgrade", "x"}, {"connection", "UPGRADE"}};

    ck_assert_int_eq(read_fields(fields, COUNT(fields)), 0);
    ck_assert(options.keep_alive && options.upgrade && !options.close);
    ck_assert_uint_eq(options.count, 2);
    ck_assert(connection_options_name(&options, STR("x-hop")));
    ck_assert(connection_options_name(&options, STR("\"a,b\"")));
    ck_assert(!connection_options_name(&options, STR("X-Ho")));
    ck_assert(!connection_options_name(&options, STR("keep-alive")));
    ck_assert_int_eq(read_fields(fields + 1, 1), 0);
    ck_assert(!options.keep_alive && !options.upgrade && !options.close && options.count == 0);
    ck_assert(!connection_options_name(&options, STR("X-Hop")));
}
END_TEST

START_TEST(every_member_counts)
{
    arena_reset(&arena);
    headers = (struct headers){0};
    for (size_t i = 0; i < LIMIT_CONNECTION_OPTIONS; i++)
        ck_assert_int_eq(headers_add(&headers, &arena, STR("Connection"), i % 2 ? STR("close") : STR("X-Hop")), 0);
    ck_assert_int_eq(connection_options_read(&headers, &options), 0);
    ck_assert(options.close && options.count == LIMIT_CONNECTION_OPTIONS / 2);
    ck_assert_int_eq(headers_add(&headers, &arena, STR("Connection"), STR("close")), 0);
    ck_assert_int_eq(connection_options_read(&headers, &options), -E2BIG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {options_are_recognized, every_member_counts};
    int failed = suite_run("connection_options", tests, COUNT(tests));

    arena_reset(&arena);
    return failed;
}
