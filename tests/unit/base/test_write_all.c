/* write_all() with the results of write(2) that each test lists. */
#include "base/write_all.h"

#include "../runner.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { FD = 42 };

ssize_t __real_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);

static const int *results; /* a count, or -errno; the last one has every further call */
static char taken[16];
static size_t length_taken;

ssize_t __wrap_write(int fd, const void *bytes, size_t length)
{
    size_t result = length;

    if (fd != FD)
        return __real_write(fd, bytes, length);
    if (*results < 0) {
        errno = -*results++;
        return -1;
    }
    if ((size_t)*results < length)
        result = (size_t)*results++;
    memcpy(taken + length_taken, bytes, result);
    length_taken += result;
    return (ssize_t)result;
}

static int write_with(const int *given)
{
    results = given;
    length_taken = 0;
    return write_all(FD, STR("abcdef"));
}

START_TEST(short_counts_are_continued)
{
    ck_assert_int_eq(write_with((const int[]){6}), 0);
    ck_assert_mem_eq(taken, "abcdef", 6);
    ck_assert_int_eq(write_with((const int[]){1, -EINTR, 2, -EINTR, 3}), 0);
    ck_assert_mem_eq(taken, "abcdef", 6);
    ck_assert_uint_eq(length_taken, 6);
}
END_TEST

START_TEST(an_error_ends_the_output)
{
    ck_assert_int_eq(write_with((const int[]){2, -ENOSPC}), -ENOSPC);
    ck_assert_uint_eq(length_taken, 2);
    ck_assert_int_eq(write_with((const int[]){0}), -EIO);
    ck_assert_int_eq(write_with((const int[]){-EAGAIN}), -EAGAIN);
    ck_assert_int_eq(write_all(-1, STR("one")), -EBADF);
}
END_TEST

START_TEST(nothing_needs_no_call)
{
    results = (const int[]){-EBADF};
    ck_assert_int_eq(write_all(FD, STR("")), 0);
}
END_TEST

int main(void)
{
    return run_tests("write_all", (const TTest *const[]){
            short_counts_are_continued, an_error_ends_the_output, nothing_needs_no_call, NULL});
}
