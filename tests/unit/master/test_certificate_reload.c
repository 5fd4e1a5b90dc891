#include "master/certificate_reload.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

START_TEST(packed_files_are_unpacked)
{
    char bytes[100000];
    struct tls_files files = {bytes, sizeof(bytes)}, got;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    int fd = certificate_reload_pack(&files);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_lt(write(fd, "x", 1), 0);
    ck_assert_int_lt(ftruncate(fd, 10), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(certificate_reload_unpack(fd, &got), 0);
        ck_assert_uint_eq(got.length, sizeof(bytes));
        ck_assert(memcmp(got.bytes, bytes, sizeof(bytes)) == 0);
        tls_files_finish(&got);
    }
    close(fd);
}
END_TEST

/*
 * The memfd must be non-executable, because a kernel may permit no other (vm.memfd_noexec): MFD_NOEXEC_SEAL and
 * F_SEAL_EXEC of Linux 6.3.
 */
START_TEST(packed_files_are_not_executable)
{
    char byte = 'x';
    int known = memfd_create("known", MFD_CLOEXEC | 8);
    int fd = certificate_reload_pack(&(struct tls_files){&byte, 1});

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((fcntl(fd, F_GET_SEALS) & 0x20) != 0, known >= 0);
    close(known);
    close(fd);
}
END_TEST

START_TEST(other_descriptors_are_rejected)
{
    struct tls_files got;
    int large = memfd_create("large", MFD_CLOEXEC), empty = memfd_create("empty", MFD_CLOEXEC);

    ck_assert_int_eq(ftruncate(large, 1ll << 40), 0);
    ck_assert_int_eq(certificate_reload_unpack(-1, &got), -EBADF);
    ck_assert_int_eq(certificate_reload_unpack(large, &got), -EFBIG);
    ck_assert_int_eq(certificate_reload_unpack(empty, &got), 0);
    ck_assert_uint_eq(got.length, 0);
    tls_files_finish(&got);
    close(large);
    close(empty);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, packed_files_are_unpacked);
    tcase_add_test(tcase, packed_files_are_not_executable);
    tcase_add_test(tcase, other_descriptors_are_rejected);
}

int main(void)
{
    return run_suite("certificate_reload", add_tests);
}
