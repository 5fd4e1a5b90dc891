/*
 * A root directory that is open before the process loses the permission to reach it remains usable. Other directories
 * do not.
 */
#include "fixture.h"

#include "io/file_cache.h"
#include "io/file_open.h"
#include "io/root_directory.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

/* home (0700) / site (0755) / page (0644), secret (0600) */
static char home[] = "/tmp/sluice-roots-XXXXXX";
static char site[64];

static void write_file(const char *name, mode_t mode)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", site, name);
    fd = open(path, O_CREAT | O_WRONLY, mode);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(close(fd), 0);
}

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(home));
    snprintf(site, sizeof(site), "%s/site", home);
    ck_assert_int_eq(mkdir(site, 0755), 0);
    ck_assert_int_eq(chmod(site, 0755), 0);
    write_file("page", 0644);
    write_file("secret", 0600);
}

static void teardown(void)
{
    char path[128];

    ck_assert_int_eq(seteuid(getuid()), 0);
    snprintf(path, sizeof(path), "%s/page", site);
    unlink(path);
    snprintf(path, sizeof(path), "%s/secret", site);
    unlink(path);
    rmdir(site);
    rmdir(home);
}

static int error_of(int directory, const char *path)
{
    struct opened_file file;
    int result = file_open(directory, path, SYMLINKS_BENEATH, true, false, &file);

    if (result == -ENOSYS)
        result = file_open(directory, path, SYMLINKS_BENEATH, true, true, &file);
    ck_assert_int_eq(result, 0);
    if (file.fd >= 0)
        close(file.fd);
    free(file.content);
    return file.error;
}

START_TEST(open_root_needs_no_permission_on_its_path)
{
    struct root_directories roots = {0};
    int fd;

    ck_assert_int_eq(root_directories_open(&roots, str_from(site)), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
    else
        ck_assert_int_eq(chmod(home, 0), 0);
    ck_assert_int_eq(root_open(site, NULL, true), -EACCES);
    fd = root_open(site, &roots, true);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(error_of(fd, "page"), 0);
    if (getuid() == 0)
        ck_assert_int_eq(error_of(fd, "secret"), -EACCES);
    close(fd);
    if (getuid() != 0)
        chmod(home, 0700);
    root_directories_close(&roots);
}
END_TEST

START_TEST(other_directories_need_permission)
{
    struct root_directories roots = {0};

    ck_assert_int_eq(root_directories_open(&roots, STR("/tmp")), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(NOBODY), 0);
    else
        ck_assert_int_eq(chmod(home, 0), 0);
    ck_assert_int_eq(root_open(site, &roots, true), -EACCES);
    if (getuid() != 0)
        chmod(home, 0700);
    root_directories_close(&roots);
}
END_TEST

START_TEST(duplicate_and_absent_roots_are_not_added)
{
    struct root_directories roots = {0};

    ck_assert_int_eq(root_directories_open(&roots, str_from(site)), 0);
    ck_assert_int_eq(root_directories_open(&roots, str_from(site)), 0);
    ck_assert_int_eq(root_directories_open(&roots, STR("/nowhere/at/all")), 0);
    ck_assert_uint_eq(roots.count, 1);
    ck_assert_int_ge(root_directories_find(&roots, str_from(site)), 0);
    ck_assert_int_eq(root_directories_find(&roots, STR("/nowhere/at/all")), -ENOENT);
    root_directories_close(&roots);
    ck_assert_int_eq(root_directories_find(&roots, str_from(site)), -ENOENT);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, open_root_needs_no_permission_on_its_path);
    tcase_add_test(tcase, other_directories_need_permission);
    tcase_add_test(tcase, duplicate_and_absent_roots_are_not_added);
}

int main(void)
{
    return run_suite("root_directory", add_tests);
}
