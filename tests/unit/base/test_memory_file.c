/* Memory files; the wrapped memfd_create is that of an older kernel, or of one with vm.memfd_noexec=2. */
#include "base/memory_file.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOEXEC_SEAL = 8 };

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

static enum { OLD_KERNEL, NOEXEC_KERNEL, FULL } kernel;

int __wrap_memfd_create(const char *name, unsigned flags)
{
    int error = kernel == FULL ? EMFILE : kernel == OLD_KERNEL ? EINVAL : EACCES;

    if (kernel == FULL || (kernel == OLD_KERNEL) == ((flags & NOEXEC_SEAL) != 0)) {
        errno = error;
        return -1;
    }
    return __real_memfd_create(name, flags & ~(unsigned)NOEXEC_SEAL);
}

static void expect_file(unsigned flags, int fd_flags)
{
    int fd = memory_file_create("test", flags);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), fd_flags);
    ck_assert_int_eq(write(fd, "text", 4), 4);
    close(fd);
}

START_TEST(an_older_kernel_makes_an_ordinary_file)
{
    kernel = OLD_KERNEL;
    expect_file(MFD_CLOEXEC, FD_CLOEXEC);
    expect_file(0, 0);
}
END_TEST

START_TEST(files_that_may_be_executed_are_not_created)
{
    kernel = NOEXEC_KERNEL;
    expect_file(MFD_CLOEXEC | MFD_ALLOW_SEALING, FD_CLOEXEC);
    expect_file(0, 0);
}
END_TEST

START_TEST(other_errors_are_returned)
{
    kernel = FULL;
    ck_assert_int_eq(memory_file_create("test", MFD_CLOEXEC), -1);
    ck_assert_int_eq(errno, EMFILE);
}
END_TEST

int main(void)
{
    return run_tests("memory_file", (const TTest *const[]){
            an_older_kernel_makes_an_ordinary_file, files_that_may_be_executed_are_not_created,
            other_errors_are_returned, NULL});
}
