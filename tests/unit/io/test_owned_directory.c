/* Directories for another user; the wrapped mkdirat replaces the new directory, as the owner of the parent could. */
#include "io/owned_directory.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER_USER = 65534 };

int __real_mkdirat(int at, const char *path, mode_t mode);
int __wrap_mkdirat(int at, const char *path, mode_t mode);

static char folder[64];
static enum { NOTHING, BY_LINK, BY_DIRECTORY, REMOVED } replacement;

static const char *path_of(const char *name)
{
    static char path[2][128];
    static unsigned which;

    which ^= 1;
    snprintf(path[which], sizeof(path[0]), "%s/%s", folder, name);
    return path[which];
}

int __wrap_mkdirat(int at, const char *path, mode_t mode)
{
    int result = __real_mkdirat(at, path, mode);

    if (replacement != NOTHING)
        ck_assert_int_eq(unlinkat(at, path, AT_REMOVEDIR), 0);
    if (replacement == BY_LINK)
        ck_assert_int_eq(symlinkat(path_of("victim"), at, path), 0);
    if (replacement == BY_DIRECTORY) {
        ck_assert_int_eq(__real_mkdirat(at, path, 0755), 0);
        ck_assert_int_eq(fchownat(at, path, OTHER_USER, OTHER_USER, 0), 0);
    }
    return result;
}

static struct stat state_of(const char *name)
{
    struct stat state;

    ck_assert_int_eq(lstat(path_of(name), &state), 0);
    return state;
}

static void open_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/owned-directory-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(path_of("victim"), 0700), 0);
    replacement = NOTHING;
}

static void close_folder(void)
{
    (void)rmdir(path_of("new"));
    (void)unlink(path_of("new"));
    ck_assert_int_eq(rmdir(path_of("victim")), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(new_directory_has_mode_and_owner)
{
    uid_t user = geteuid() == 0 ? OTHER_USER : (uid_t)-1;
    gid_t group = geteuid() == 0 ? OTHER_USER : (gid_t)-1;

    open_folder();
    umask(077);
    ck_assert_int_eq(owned_directory_create(AT_FDCWD, path_of("new"), 0751, user, group), 0);
    ck_assert_uint_eq(state_of("new").st_mode & 0777, 0751);
    ck_assert_uint_eq(state_of("new").st_uid, geteuid() == 0 ? OTHER_USER : geteuid());
    close_folder();
}
END_TEST

START_TEST(existing_directory_stays_as_it_is)
{
    open_folder();
    ck_assert_int_eq(owned_directory_create(AT_FDCWD, path_of("victim"), 0777, OTHER_USER, OTHER_USER), 0);
    ck_assert_uint_eq(state_of("victim").st_mode & 0777, 0700);
    ck_assert_uint_eq(state_of("victim").st_uid, geteuid());
    close_folder();
}
END_TEST

START_TEST(parent_may_be_a_descriptor)
{
    int at;

    open_folder();
    at = open(folder, O_PATH | O_DIRECTORY);
    ck_assert_int_ge(at, 0);
    ck_assert_int_eq(owned_directory_create(at, "new", 0755, (uid_t)-1, (gid_t)-1), 0);
    ck_assert_uint_eq(state_of("new").st_mode & 0777, 0755);
    close(at);
    ck_assert_int_eq(owned_directory_create(AT_FDCWD, path_of("none/new"), 0755, (uid_t)-1, (gid_t)-1), -ENOENT);
    close_folder();
}
END_TEST

START_TEST(link_in_its_place_is_not_followed)
{
    open_folder();
    replacement = BY_LINK;
    ck_assert_int_eq(owned_directory_create(AT_FDCWD, path_of("new"), 0777, (uid_t)-1, (gid_t)-1), -ENOTDIR);
    ck_assert_uint_eq(state_of("victim").st_mode & 0777, 0700);
    close_folder();
}
END_TEST

START_TEST(directory_of_another_user_in_its_place_is_rejected)
{
    if (geteuid() != 0)
        return;
    open_folder();
    replacement = BY_DIRECTORY;
    ck_assert_int_eq(owned_directory_create(AT_FDCWD, path_of("new"), 0777, 0, 0), -EPERM);
    ck_assert_uint_eq(state_of("new").st_mode & 0777, 0755);
    ck_assert_uint_eq(state_of("new").st_uid, OTHER_USER);
    close_folder();
}
END_TEST

START_TEST(removed_directory_is_an_error)
{
    open_folder();
    replacement = REMOVED;
    ck_assert_int_eq(owned_directory_create(AT_FDCWD, path_of("new"), 0777, (uid_t)-1, (gid_t)-1), -ENOENT);
    close_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {new_directory_has_mode_and_owner, existing_directory_stays_as_it_is,
                                  parent_may_be_a_descriptor, link_in_its_place_is_not_followed,
                                  directory_of_another_user_in_its_place_is_rejected,
                                  removed_directory_is_an_error, NULL};

    return run_tests("owned_directory", tests);
}
