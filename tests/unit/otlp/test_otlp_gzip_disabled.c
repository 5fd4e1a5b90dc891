/* otlp_gzip in a build without zlib. */
#include "otlp/otlp_gzip.h"

#include "../runner.h"

#include <errno.h>

START_TEST(nothing_is_compressed)
{
    struct buffer out = {0};

    ck_assert(!otlp_gzip_built);
    ck_assert_int_eq(otlp_gzip(STR("a"), &out), -ENOTSUP);
    ck_assert_uint_eq(out.length, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {nothing_is_compressed, NULL};

    return run_tests("otlp_gzip_disabled", tests);
}
