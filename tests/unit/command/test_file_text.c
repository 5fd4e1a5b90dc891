#include "command/file_text.h"

#include "../runner.h"

#include "base/limits.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/test_file_text.XXXXXX";

static int create_file(void)
{
    strcpy(path + sizeof(path) - 7, "XXXXXX");
    return mkstemp(path);
}

START_TEST(written_texts_are_read)
{
    int fd = create_file();
    struct buffer text = {0};
    struct stat status;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write_all(fd, STR("one\ntwo")), 0);
    close(fd);
    ck_assert_int_eq(file_text_read(path, &text, &status), 0);
    ck_assert(str_equal(buffer_str(&text), STR("one\ntwo")));
    ck_assert_int_eq(status.st_size, 7);
    buffer_finish(&text);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(file_text_read(path, &text, &status), -ENOENT);
    ck_assert_int_eq(file_text_read("/", &text, &status), -EISDIR);
    buffer_finish(&text);
}
END_TEST

/* A little more than the longest configuration file is enough to refuse it. */
START_TEST(endless_files_are_read_in_part)
{
    struct buffer text = {0};
    struct stat status;

    ck_assert_int_eq(file_text_read("/dev/zero", &text, &status), 0);
    ck_assert(text.length > LIMIT_CONF_FILE && text.length <= LIMIT_CONF_FILE + 65536);
    buffer_finish(&text);
}
END_TEST

/* The output of diff goes to a file in place of standard output. */
static void expect_diff(const char *old, const char *new, int result, const char *expected)
{
    struct buffer text = {0};
    struct stat status;
    int output = dup(STDOUT_FILENO);
    int fd = create_file();

    ck_assert(output >= 0 && fd >= 0 && fflush(stdout) == 0);
    ck_assert_int_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    printf("first\n");
    ck_assert_int_eq(file_text_diff("a (running)", str_from(old), "-b", str_from(new)), result);
    ck_assert_int_eq(dup2(output, STDOUT_FILENO), STDOUT_FILENO);
    ck_assert_int_eq(file_text_read(path, &text, &status), 0);
    ck_assert_msg(str_equal(buffer_str(&text), str_from(expected)), STR_FMT, STR_ARG(buffer_str(&text)));
    buffer_finish(&text);
    unlink(path);
    close(output);
    close(fd);
}

START_TEST(lines_that_differ_are_printed)
{
    expect_diff("one\ntwo\n", "one\nthree\n", 1,
                "first\n--- a (running)\n+++ -b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n");
    expect_diff("same\n", "same\n", 0, "first\n");
    expect_diff("", "new\n", 1, "first\n--- a (running)\n+++ -b\n@@ -0,0 +1 @@\n+new\n");
}
END_TEST

/* QEMU's emulation of processes reports it by an exit status. */
static bool spawn_reports_a_missing_program(void)
{
    char name[] = "missing", *const arguments[] = {name, NULL};
    pid_t child;
    int error = posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, arguments + 1);

    if (error == 0)
        waitpid(child, NULL, 0);
    return error != 0;
}

START_TEST(a_missing_diff_is_reported)
{
    if (!spawn_reports_a_missing_program())
        SKIP_TEST("posix_spawn does not report a missing program");
    ck_assert_int_eq(setenv("PATH", "/nonexistent", 1), 0);
    ck_assert_int_eq(file_text_diff("a", STR("1\n"), "b", STR("2\n")), -ENOENT);
}
END_TEST

int main(void)
{
    return run_tests("file_text", (const TTest *const[]){
            written_texts_are_read, endless_files_are_read_in_part, lines_that_differ_are_printed,
            a_missing_diff_is_reported, NULL});
}
