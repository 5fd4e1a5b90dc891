#include "acme/acme_folder.h"

#include "../runner.h"
#include "made.h"

#include <errno.h>
#include <sys/wait.h>

static char logged[1024];

static void keep_line(void *owner, enum log_level level, struct str line)
{
    snprintf(logged, sizeof(logged), STR_FMT, STR_ARG(line));
}

static struct log lines = {.level = LOG_INFO, .sink = keep_line};

static unsigned mode_of(const char *name)
{
    struct stat state;

    ck_assert_int_eq(stat(path_of(name), &state), 0);
    return state.st_mode & 0777;
}

START_TEST(parts_have_their_modes)
{
    folder_make();
    struct acme acme = {.state = str_from(path_of("acme"))};
    umask(027);
    ck_assert_int_eq(acme_folder_create(&acme, (uid_t)-1, (gid_t)-1, &lines), 0);
    ck_assert_uint_eq(mode_of("acme"), 0711);
    ck_assert_uint_eq(mode_of("acme/challenges"), 0755);
    ck_assert_uint_eq(mode_of("acme/certificates"), 0700);
    ck_assert_uint_eq(mode_of("acme/clients"), 0700);
    /* Existing folders keep their modes. */
    ck_assert_int_eq(chmod(path_of("acme"), 0755), 0);
    ck_assert_int_eq(acme_folder_create(&acme, (uid_t)-1, (gid_t)-1, &lines), 0);
    ck_assert_uint_eq(mode_of("acme"), 0755);
    folder_remove();
}
END_TEST

START_TEST(a_folder_that_cannot_be_created_is_named)
{
    struct acme acme = {.state = STR("/proc/none/acme")};

    ck_assert_int_eq(acme_folder_create(&acme, (uid_t)-1, (gid_t)-1, &lines), -ENOENT);
    ck_assert_ptr_nonnull(strstr(logged, "/proc/none/acme"));
    ck_assert_int_eq(acme_folder_lock(&acme), -ENOENT);
}
END_TEST

START_TEST(parts_are_not_created_behind_a_link)
{
    folder_make();
    struct acme acme = {.state = str_from(path_of("acme"))};
    ck_assert_int_eq(mkdir(path_of("elsewhere"), 0700), 0);
    ck_assert_int_eq(symlink("elsewhere", path_of("acme")), 0);
    ck_assert_int_eq(acme_folder_create(&acme, (uid_t)-1, (gid_t)-1, &lines), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(logged, "a folder that is no symbolic link"));
    ck_assert_int_eq(access(path_of("elsewhere/challenges"), F_OK), -1);
    folder_remove();
}
END_TEST

static int lock_in_another_process(const struct acme *acme)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(acme_folder_lock(acme) == -EAGAIN);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

START_TEST(one_process_has_the_lock)
{
    folder_make();
    struct acme acme = {.state = str_from(folder)};
    int fd = acme_folder_lock(&acme);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(acme_folder_lock(&acme), -EAGAIN);
    ck_assert_int_eq(lock_in_another_process(&acme), 1);
    close(fd);
    ck_assert_int_eq(lock_in_another_process(&acme), 0);
    fd = acme_folder_lock(&acme);
    ck_assert_int_ge(fd, 0);
    close(fd);
    folder_remove();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {parts_have_their_modes, a_folder_that_cannot_be_created_is_named,
                                         parts_are_not_created_behind_a_link,
                                         one_process_has_the_lock, NULL};

    return run_tests("acme_folder", tests);
}
