#include "log/log_file.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static char path[128];

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/test_log_file.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
}

static void teardown(void)
{
    unlink(path);
    rmdir(directory);
}

START_TEST(files_are_appended_to)
{
    char text[32] = "";
    int first;
    int second;

    setup();
    first = log_file_open(str_from(path));
    second = log_file_open(str_from(path));
    ck_assert_int_ge(first, 0);
    ck_assert(fcntl(first, F_GETFD) & FD_CLOEXEC);
    ck_assert(log_file_write(first, STR("one\n")));
    ck_assert(log_file_write(second, STR("two\n")));
    ck_assert(log_file_write(first, STR("three\n")));
    first = open(path, O_RDONLY);
    ck_assert_int_eq(read(first, text, sizeof(text)), 14);
    ck_assert_str_eq(text, "one\ntwo\nthree\n");
    teardown();
}
END_TEST

START_TEST(errors_of_open_are_returned)
{
    char absent[160];

    setup();
    snprintf(absent, sizeof(absent), "%s/no/log", directory);
    ck_assert_int_eq(log_file_open(str_from(absent)), -ENOENT);
    ck_assert_int_eq(log_file_open(str_from(directory)), -EISDIR);
    ck_assert_int_eq(log_file_open(str_of("a\0b", 3)), -ENAMETOOLONG);
    ck_assert(!log_file_write(-1, STR("x")));
    teardown();
}
END_TEST

/* Writes lines until a write fails. A write that blocks fails the test by its timeout. */
static unsigned write_until_full(int fd)
{
    unsigned lines = 0;

    while (lines < 10 * 1000 * 1000 && log_file_write(fd, STR("0123456789abcdef0123456789abcdef\n")))
        lines++;
    return lines;
}

START_TEST(fifo_without_reader_never_blocks)
{
    int fd;
    unsigned lines;

    setup();
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    fd = log_file_open(str_from(path));
    ck_assert_int_ge(fd, 0);
    lines = write_until_full(fd);
    ck_assert_uint_gt(lines, 10);
    ck_assert_uint_lt(lines, 10 * 1000 * 1000);
    ck_assert(!log_file_write(fd, STR("one more\n")));
    teardown();
}
END_TEST

START_TEST(stderr_pipe_never_blocks)
{
    int pipes[2];
    int saved_fd = dup(STDERR_FILENO);
    int fd;
    unsigned lines;

    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    fd = log_file_open(STR("stderr"));
    lines = write_until_full(fd);
    dup2(saved_fd, STDERR_FILENO);
    ck_assert_int_gt(fd, 2);
    ck_assert_uint_gt(lines, 10);
    ck_assert_uint_lt(lines, 10 * 1000 * 1000);
    ck_assert(!(fcntl(pipes[1], F_GETFL) & O_NONBLOCK));
}
END_TEST

START_TEST(full_blocking_descriptors_are_skipped)
{
    int pipes[2];
    int pair[2];

    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_uint_lt(write_until_full(pipes[1]), 10 * 1000 * 1000);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_uint_lt(write_until_full(pair[1]), 10 * 1000 * 1000);
    close(pair[0]);
    ck_assert(!log_file_write(pair[1], STR("no reader\n")));
}
END_TEST

int main(void)
{
    return run_tests("log_file", (const TTest *const[]){files_are_appended_to, errors_of_open_are_returned,
                                                        fifo_without_reader_never_blocks,
                                                        stderr_pipe_never_blocks,
                                                        full_blocking_descriptors_are_skipped, NULL});
}
