#include "master/pid_file.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char path[128];

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/test_pid_file.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/sluice.pid", directory);
}

static void teardown(void)
{
    unlink(path);
    rmdir(directory);
}

static void write_pid_file(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(is_written_locked_and_removed)
{
    struct pid_file file;
    struct pid_file second;

    setup();
    ck_assert_int_eq(pid_file_owner(path), -ENOENT);
    ck_assert_int_eq(pid_file_write(&file, path), 0);
    ck_assert_int_eq(pid_file_owner(path), getpid());
    ck_assert_int_eq(pid_file_write(&second, path), -EEXIST);
    pid_file_remove(&second);
    ck_assert_int_eq(pid_file_owner(path), getpid());
    pid_file_remove(&file);
    ck_assert_int_eq(access(path, F_OK), -1);
    pid_file_remove(&file);
    teardown();
}
END_TEST

START_TEST(is_set_aside_and_restored)
{
    char old[sizeof(path) + sizeof(PID_FILE_OLD)];
    struct pid_file file;
    struct pid_file next;

    setup();
    snprintf(old, sizeof(old), "%s" PID_FILE_OLD, path);
    ck_assert_int_eq(pid_file_write(&file, path), 0);
    ck_assert_int_eq(pid_file_restore(&file), 0); /* nothing to do */
    ck_assert_int_eq(pid_file_owner(path), getpid());
    ck_assert_int_eq(pid_file_set_aside(&file), 0);
    ck_assert_int_eq(pid_file_owner(path), -ENOENT);
    ck_assert_int_eq(pid_file_owner(old), getpid());
    ck_assert_int_eq(pid_file_write(&next, path), 0);
    pid_file_remove(&next);
    ck_assert_int_eq(pid_file_restore(&file), 0);
    ck_assert_int_eq(pid_file_owner(path), getpid());
    ck_assert_int_eq(pid_file_owner(old), -ENOENT);
    unlink(path);
    ck_assert_int_eq(pid_file_set_aside(&file), -ENOENT);
    pid_file_remove(&file);
    ck_assert_int_eq(pid_file_set_aside(&file), 0); /* no file */
    teardown();
}
END_TEST

START_TEST(stale_files_are_replaced)
{
    static const char *const stale[] = {"1\n", "999999", "", "hello\n", "-5\n", "99999999999999999999\n"};
    static const long owners[] = {0, 0, -EINVAL, -EINVAL, -EINVAL, -EINVAL};

    for (size_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
        struct pid_file file;

        setup();
        write_pid_file(stale[i]);
        ck_assert_msg(pid_file_owner(path) == owners[i], "%s", stale[i]);
        ck_assert_int_eq(pid_file_write(&file, path), 0);
        ck_assert_int_eq(pid_file_owner(path), getpid());
        pid_file_remove(&file);
        teardown();
    }
}
END_TEST

START_TEST(child_process_keeps_the_file)
{
    struct pid_file file;
    int status;
    pid_t child;

    setup();
    ck_assert_int_eq(pid_file_write(&file, path), 0);
    child = fork();
    if (child == 0) {
        pid_file_close(&file);
        pid_file_remove(&file);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(pid_file_owner(path), getpid());
    pid_file_remove(&file);
    teardown();
}
END_TEST

START_TEST(file_of_another_server_is_preserved)
{
    struct pid_file file;

    setup();
    ck_assert_int_eq(pid_file_write(&file, path), 0);
    ck_assert_int_eq(unlink(path), 0);
    write_pid_file("4711\n");
    pid_file_remove(&file);
    ck_assert_int_eq(access(path, F_OK), 0);
    teardown();
}
END_TEST

START_TEST(special_files_are_rejected)
{
    struct pid_file file;
    char absent[160];
    char target[160];

    setup();
    snprintf(absent, sizeof(absent), "%s/no/sluice.pid", directory);
    ck_assert_int_eq(pid_file_write(&file, absent), -ENOENT);
    ck_assert_int_eq(file.path[0], 0);
    ck_assert_int_eq(pid_file_write(&file, directory), -EINVAL);
    /* A symbolic link must not redirect the write. */
    snprintf(target, sizeof(target), "%s/target", directory);
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_int_eq(pid_file_write(&file, path), -EINVAL);
    ck_assert_int_eq(access(target, F_OK), -1);
    teardown();
}
END_TEST

int main(void)
{
    return run_tests("pid_file", (const TTest *const[]){
                                     is_written_locked_and_removed, stale_files_are_replaced,
                                     child_process_keeps_the_file, file_of_another_server_is_preserved,
                                     special_files_are_rejected, is_set_aside_and_restored, NULL});
}
