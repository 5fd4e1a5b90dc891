#include "http/exchange.h"

#include "base/limits.h"
#include "suite.h"

#include <errno.h>

static int answered;

static void answer(struct exchange *x)
{
    answered++;
}

static int inform(struct exchange *x, int status, const struct headers *headers)
{
    return status;
}

START_TEST(methods_are_parsed_with_case)
{
    static const struct {
        const char *name;
        enum method method;
    } cases[] = {
        {"GET", METHOD_GET},        {"HEAD", METHOD_HEAD},       {"POST", METHOD_POST},
        {"PUT", METHOD_PUT},        {"DELETE", METHOD_DELETE},   {"OPTIONS", METHOD_OPTIONS},
        {"PATCH", METHOD_PATCH},    {"CONNECT", METHOD_CONNECT}, {"TRACE", METHOD_TRACE},
        {"get", METHOD_OTHER},      {"Get", METHOD_OTHER},       {"GETS", METHOD_OTHER},
        {"PROPFIND", METHOD_OTHER}, {"", METHOD_OTHER},          {"GE", METHOD_OTHER},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_int_eq(method_parse(str_from(cases[i].name)), cases[i].method);
}
END_TEST

START_TEST(last_release_returns_the_blocks_to_the_pool)
{
    struct arena_pool pool = {.max_free = 4};
    struct exchange *x = exchange_create(&pool, sizeof(*x) + 100);

    ck_assert_ptr_nonnull(x);
    ck_assert_ptr_nonnull(x->request.body);
    ck_assert_ptr_nonnull(arena_alloc(&x->arena, 100));
    ck_assert_ptr_nonnull(arena_alloc(&x->arena, ARENA_BLOCK_SIZE - 100));
    exchange_hold(x);
    exchange_release(x);
    ck_assert_uint_eq(pool.free_count, 0);
    exchange_release(x);
    ck_assert_uint_eq(pool.free_count, 2);
    exchange_release(NULL);
    arena_pool_finish(&pool);
    ck_assert_ptr_null(exchange_create(NULL, LIMIT_EXCHANGE_MEMORY));
}
END_TEST

START_TEST(body_above_the_limit_is_413)
{
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    x->request.content_length = 100;
    ck_assert_int_eq(exchange_limit_body(x, 100), 0);
    ck_assert_int_eq(exchange_limit_body(x, 99), 413);
    ck_assert_int_eq(exchange_limit_body(x, 0), 0);
    x->request.content_length = BODY_LENGTH_UNKNOWN;
    ck_assert_int_eq(exchange_limit_body(x, 1), 0);
    ck_assert_uint_eq(x->request.body_limit, 1);
    ck_assert_int_eq(exchange_body_status(-EMSGSIZE), 413);
    ck_assert_int_eq(exchange_body_status(-ETIMEDOUT), 408);
    ck_assert_int_eq(exchange_body_status(-EBADMSG), 400);
    ck_assert_int_eq(exchange_body_status(-ECONNRESET), 400);
    ck_assert_int_eq(exchange_body_status(-ENOMEM), 500);
    exchange_release(x);
}
END_TEST

START_TEST(cancelled_exchange_sends_nothing)
{
    static const struct exchange_ops ops = {answer, inform};
    struct exchange *x = exchange_create(NULL, sizeof(*x));

    x->ops = &ops;
    exchange_respond(x);
    ck_assert_int_eq(answered, 1);
    ck_assert_int_eq(exchange_inform(x, 103, NULL), 103);
    x->cancelled = true;
    exchange_respond(x);
    ck_assert_int_eq(answered, 1);
    ck_assert_int_eq(exchange_inform(x, 103, NULL), 0);
    exchange_release(x);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {methods_are_parsed_with_case, last_release_returns_the_blocks_to_the_pool,
                                  body_above_the_limit_is_413, cancelled_exchange_sends_nothing};

    return suite_run("exchange", tests, COUNT(tests));
}
