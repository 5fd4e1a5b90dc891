/*
 * The group of an authority from a variable, created while each of its allocations fails once. The linker replaces
 * calloc.
 */
#include "upstream/upstream_pool.h"

#include "../http/suite.h"
#include "scripted.h"

#include <errno.h>

static int until_failure = -1; /* number of allocations that still succeed; negative: all */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return until_failure >= 0 && until_failure-- == 0 ? NULL : __real_calloc(count, size);
}

START_TEST(incomplete_target_is_not_kept)
{
    struct log silent = {.level = LOG_EMERG};
    const struct upstreams upstreams = {.count = 0};
    struct upstream_choice choice = {.tries = 0};
    struct upstream_group *group = NULL;
    struct upstream_pool *pool;
    struct loop loop;
    int error = 0, failures = 0;

    ck_assert_int_eq(scripted_open(&loop, &silent), 0);
    pool = upstream_pool_create(&loop, &silent, &upstreams, NULL, 0);
    ck_assert_ptr_nonnull(pool);
    for (; !group; failures++) {
        until_failure = failures;
        group = upstream_pool_target(pool, STR("127.0.0.1:9001"), 80, &error);
        ck_assert(group || error == -ENOMEM);
    }
    until_failure = -1;
    ck_assert_int_gt(failures, 2); /* of the target, of its peer; the last attempt succeeded */
    ck_assert_ptr_nonnull(upstream_choose(group, &choice, &error));
    upstream_pool_stop(pool);
    scripted_settle(&loop, 1000);
    ck_assert_uint_eq(loop.in_flight, 0);
    upstream_pool_destroy(pool);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {incomplete_target_is_not_kept};

    return suite_run("target memory", tests, COUNT(tests));
}
