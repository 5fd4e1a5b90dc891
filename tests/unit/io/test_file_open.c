/* Opening files beneath a root, by openat2(2) and by a walk over the path components. */
#include "fixture.h"
#include "tree.h"

#include "io/file_open.h"

#include "../skip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FOUND_FILE = 1, FOUND_DIRECTORY };

static const struct {
    const char *path;
    int beneath;                    /* the result or the error, the same for openat2 and for the walk */
    int anywhere;                   /* where links may leave the root */
    int none;                       /* where links are refused */
} paths[] = {
    {"file", FOUND_FILE, FOUND_FILE, FOUND_FILE},
    {"empty", FOUND_FILE, FOUND_FILE, FOUND_FILE},
    {"", FOUND_DIRECTORY, FOUND_DIRECTORY, FOUND_DIRECTORY},
    {"dir", FOUND_DIRECTORY, FOUND_DIRECTORY, FOUND_DIRECTORY},
    {"dir/", FOUND_DIRECTORY, FOUND_DIRECTORY, FOUND_DIRECTORY},
    {"dir//inner", FOUND_FILE, FOUND_FILE, FOUND_FILE},
    {"dir/./inner", FOUND_FILE, FOUND_FILE, FOUND_FILE},
    {"dir/../file", FOUND_FILE, FOUND_FILE, FOUND_FILE},
    {"dir/deep/../../file", FOUND_FILE, FOUND_FILE, FOUND_FILE},
    {"file/", -ENOTDIR, -ENOTDIR, -ENOTDIR},
    {"file/x", -ENOTDIR, -ENOTDIR, -ENOTDIR},
    {"absent", -ENOENT, -ENOENT, -ENOENT},
    {"absent/x", -ENOENT, -ENOENT, -ENOENT},
    {"fifo", -EACCES, -EACCES, -EACCES},
    {"socket", -EACCES, -EACCES, -EACCES},
    {"..", -EXDEV, -EXDEV, -EXDEV},
    {"../etc/passwd", -EXDEV, -EXDEV, -EXDEV},
    {"dir/../../x", -EXDEV, -EXDEV, -EXDEV},
    {"/etc/passwd", -EXDEV, -EXDEV, -EXDEV},
    {"link", FOUND_FILE, FOUND_FILE, -ELOOP},
    {"dir/up", FOUND_FILE, FOUND_FILE, -ELOOP},
    {"dirlink", FOUND_DIRECTORY, FOUND_DIRECTORY, -ELOOP},
    {"dirlink/inner", FOUND_FILE, FOUND_FILE, -ELOOP},
    {"dir/parent/file", FOUND_FILE, FOUND_FILE, -ELOOP},
    {"dir/parent", FOUND_DIRECTORY, FOUND_DIRECTORY, -ELOOP},
    {"dir/parent/dir/parent/dir/inner", FOUND_FILE, FOUND_FILE, -ELOOP},
    {"escape", -EXDEV, FOUND_FILE, -ELOOP},
    {"above", -EXDEV, FOUND_DIRECTORY, -ELOOP},
    {"above/no-such-name", -EXDEV, -ENOENT, -ELOOP},
    {"absolute", -EXDEV, FOUND_FILE, -ELOOP},
    {"magic", -EXDEV, -ELOOP, -ELOOP},
    {"/", -EXDEV, -EXDEV, -EXDEV},
    {"aside", -EXDEV, FOUND_DIRECTORY, -ELOOP},
    {"aside/", -EXDEV, FOUND_DIRECTORY, -ELOOP},
    {"aside/inner", -EXDEV, FOUND_FILE, -ELOOP},
    {"aside/up", -EXDEV, FOUND_FILE, -ELOOP},
    {"aside/parent/link", -EXDEV, FOUND_FILE, -ELOOP},
    {"aside/absent", -EXDEV, -ENOENT, -ELOOP},
    {"aside/../file", -EXDEV, -EXDEV, -ELOOP},
    {"above/../etc/passwd", -EXDEV, -EXDEV, -ELOOP},
    {"top", -EXDEV, FOUND_DIRECTORY, -ELOOP},
    {"top/etc/passwd", -EXDEV, FOUND_FILE, -ELOOP},
    {"twice", -EXDEV, FOUND_FILE, -ELOOP},
    {"mounts", -EXDEV, -ELOOP, -ELOOP},
    {"loop", -ELOOP, -ELOOP, -ELOOP},
    {"dangling", -ENOENT, -ENOENT, -ELOOP},
};

#define PATH_COUNT ((int)(sizeof(paths) / sizeof(paths[0])))

static void make_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", root);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

/* Absolute links: into the root, to "/", through another link, and through a magic link of /proc. */
static void make_links_out(void)
{
    ck_assert_int_eq(symlink(in_root("dir"), in_root("aside")), 0);
    ck_assert_int_eq(symlink("/../..", in_root("top")), 0);
    ck_assert_int_eq(symlink("aside/../aside/inner", in_root("twice")), 0);
    ck_assert_int_eq(symlink("/proc/self/root/etc/passwd", in_root("mounts")), 0);
}

static void check_opened(const char *path, const struct opened_file *file, int want)
{
    if (want < 0) {
        ck_assert_msg(file->error == want, "%s: %d, not %d", path, file->error, want);
        ck_assert_int_eq(file->fd, -1);
        return;
    }
    ck_assert_msg(file->error == 0, "%s: %d", path, file->error);
    ck_assert_int_eq(file->fd >= 0, want == FOUND_FILE);
    ck_assert(want == FOUND_FILE ? S_ISREG(file->stat.st_mode) : S_ISDIR(file->stat.st_mode));
}

static void check_policy(int fd, const char *path, enum symlinks symlinks, bool walk, int want)
{
    struct opened_file file;

    ck_assert_int_eq(file_open(fd, path, symlinks, true, walk, &file), 0);
    check_opened(path, &file, want);
    if (file.fd >= 0)
        close(file.fd);
    free(file.content);
}

START_TEST(each_symlink_policy_decides_about_each_path)
{
    bool walk = _i == 1;
    int fd = root_open(root, NULL, true);

    make_socket();
    make_links_out();
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < PATH_COUNT; i++) {
        check_policy(fd, paths[i].path, SYMLINKS_BENEATH, walk, paths[i].beneath);
        check_policy(fd, paths[i].path, SYMLINKS_ANYWHERE, walk, paths[i].anywhere);
        check_policy(fd, paths[i].path, SYMLINKS_NONE, walk, paths[i].none);
    }
    close(fd);
}
END_TEST

/* if_not_owner: a link is followed only if its target has the same owner. */
START_TEST(links_of_other_owners)
{
    static const struct {
        const char *path;
        int error;
    } cases[] = {{"file", 0}, {"link", 0}, {"dirlink/inner", 0}, {"dir/parent/file", 0}, {"foreign", -ELOOP},
                 {"foreigndir/inner", -ELOOP},
                 {"dir/foreignup/file", -ELOOP}, {"chain", -ELOOP}, {"escape", 0}, {"absolute", 0},
                 {"aside/inner", 0}, {"foreignaside/inner", -ELOOP}, {"foreignabove/etc", -ELOOP}, {"magic", -ELOOP},
                 {"dirlink/../file", 0}, {"above/../file", -EXDEV}};
    int fd = root_open(root, NULL, true);

    if (geteuid() != 0)
        SKIP_TEST("creating a link of another owner needs root");
    ck_assert_int_eq(symlink("file", in_root("foreign")), 0);
    ck_assert_int_eq(symlink("dir", in_root("foreigndir")), 0);
    ck_assert_int_eq(symlink("..", in_root("dir/foreignup")), 0);
    ck_assert_int_eq(symlink("foreign", in_root("chain")), 0);
    ck_assert_int_eq(symlink(in_root("dir"), in_root("aside")), 0);
    ck_assert_int_eq(symlink(in_root("dir"), in_root("foreignaside")), 0);
    ck_assert_int_eq(symlink("..", in_root("foreignabove")), 0);
    ck_assert_int_eq(lchown(in_root("foreign"), 1234, 1234), 0);
    ck_assert_int_eq(lchown(in_root("foreigndir"), 1234, 1234), 0);
    ck_assert_int_eq(lchown(in_root("foreignaside"), 1234, 1234), 0);
    ck_assert_int_eq(lchown(in_root("foreignabove"), 1234, 1234), 0);
    ck_assert_int_eq(lchown(in_root("dir/foreignup"), 1234, 1234), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct opened_file file;

        ck_assert_int_eq(file_open(fd, cases[i].path, SYMLINKS_OWNER, false, false, &file), -EAGAIN);
        ck_assert_int_eq(file_open(fd, cases[i].path, SYMLINKS_OWNER, true, false, &file), 0);
        ck_assert_msg(file.error == cases[i].error, "%s: %d", cases[i].path, file.error);
        if (file.fd >= 0)
            close(file.fd);
        free(file.content);
    }
    close(fd);
}
END_TEST

/* A directory with permission to search but not to read is found. A file without read permission is not. */
START_TEST(searchable_directories_open_and_unreadable_files_fail)
{
    struct opened_file file;
    int fd;

    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_assert_int_eq(chmod(in_root("dir"), 0711), 0);
    ck_assert_int_eq(chmod(in_root("file"), 0600), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(1234), 0);
    else
        ck_assert_int_eq(chmod(in_root("dir"), 0111) + chmod(in_root("file"), 0), 0);
    fd = root_open(root, NULL, true);
    for (int walk = 0; walk < 2; walk++) {
        ck_assert_int_eq(file_open(fd, "dir", SYMLINKS_BENEATH, true, walk, &file), 0);
        check_opened("dir", &file, FOUND_DIRECTORY);
        ck_assert_int_eq(file_open(fd, "file", SYMLINKS_BENEATH, true, walk, &file), 0);
        check_opened("file", &file, -EACCES);
        ck_assert_int_eq(file_open(fd, "dir/inner", SYMLINKS_BENEATH, true, walk, &file), 0);
        check_opened("dir/inner", &file, FOUND_FILE);
        close(file.fd);
        free(file.content);
    }
    close(fd);
    ck_assert_int_eq(seteuid(getuid()), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0); /* for the ptrace of LeakSanitizer */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_open");
    TCase *group = tcase_create("file_open");
    TCase *as_other = tcase_create("permissions");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(group, make_root, remove_root);
    tcase_add_loop_test(group, each_symlink_policy_decides_about_each_path, 0, 2);
    tcase_add_test(group, links_of_other_owners);
    tcase_add_unchecked_fixture(as_other, make_root, remove_root);
    tcase_add_test(as_other, searchable_directories_open_and_unreadable_files_fail);
    suite_add_tcase(suite, group);
    suite_add_tcase(suite, as_other);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
