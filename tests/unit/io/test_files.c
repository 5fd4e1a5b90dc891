/* Reads and sendfile on every backend of the kernel, from the page cache and from the disk. */
#include "fixture.h"

#include "../runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static struct loop loop;
static struct probe probe;

static bool set_up(int index)
{
    probe_init(&probe, &loop);
    return open_loop(&loop, index);
}

static void check_bytes(const char *bytes, size_t at, size_t length)
{
    check_pattern(bytes, length, &at);
}

START_TEST(reads_from_page_cache_and_disk)
{
    const size_t length = 3 * 1024 * 1024;
    char *bytes = malloc(length + 100);
    struct iovec parts[] = {{bytes, 10}, {bytes + 100, 40}, {bytes + 140, 20}};
    int file = pattern_file(length);
    ssize_t result;

    if (!set_up(_i))
        return;
    for (int round = 0; round < 2; round++) {
        loop_read(&loop, &probe.op, file, 5, bytes, 1000, 2000);
        run_until_done(&probe, 3 * round + 1);
        ck_assert_int_eq(probe.result, 1000);
        check_bytes(bytes, 5, 1000);
        loop_read(&loop, &probe.op, file, 100, bytes, length, UINT64_MAX);
        run_until_done(&probe, 3 * round + 2);
        ck_assert_int_eq(probe.result, (int)length - 100);
        check_bytes(bytes, 100, length - 100);
        loop_read(&loop, &probe.op, file, (int64_t)length, bytes, 1, 1);
        run_until_done(&probe, 3 * round + 3);
        ck_assert_int_eq(probe.result, 0);
        fsync(file); /* clean pages can be dropped, if the file system has a disk */
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    }
    result = loop_read_cached(file, 7, &(struct iovec){bytes, 100}, 1);
    ck_assert(result == -EAGAIN || result == 100); /* 100 on a file system without a disk */
    loop_read(&loop, &probe.op, file, 0, bytes, length, length);
    run_until_done(&probe, 7);
    ck_assert_int_eq((int)loop_read_cached(file, 7, &(struct iovec){bytes, 100}, 1), 100);
    check_bytes(bytes, 7, 100);
    ck_assert_int_eq((int)loop_read_cached(file, (int64_t)length - 3, &(struct iovec){bytes, 100}, 1), 3);
    ck_assert_int_eq((int)loop_read_cached(file, 3, parts, 3), 70);
    check_bytes(bytes, 3, 10);
    check_bytes(bytes + 100, 13, 60);
    parts[1].iov_len = length;
    ck_assert_int_eq((int)loop_read_cached(file, 3, parts, 3), (int)length - 3); /* the file ends in the second part */
    ck_assert_int_eq((int)loop_read_cached(file, (int64_t)length, parts, 3), 0);
    ck_assert_int_eq((int)loop_read_cached(-1, 0, &(struct iovec){bytes, 1}, 1), -EBADF);
    ck_assert(loop_is_cached(file, 0, length));
    ck_assert(loop_is_cached(file, 5, 0));
    ck_assert(loop_is_cached(file, (int64_t)length - 1, 1));
    ck_assert(result != -EAGAIN || !loop_is_cached(file, 0, length + 1)); /* past the end of the file */
    ck_assert(!loop_is_cached(-1, 0, 1));
    close(file);
    free(bytes);
    loop_close(&loop);
}
END_TEST

static void drain_until_done(int peer, size_t *at, int runs)
{
    for (int i = 0; i < 100000 && probe.runs < runs; i++) {
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1), 0);
        peer_drain_pattern(peer, at);
    }
    ck_assert_int_eq(probe.runs, runs);
    peer_drain_pattern(peer, at);
}

/* The same bytes arrive from the page cache and from the disk. */
START_TEST(sendfile_sends_the_bytes_of_the_file)
{
    const size_t length = 5 * 1024 * 1024 + 17;
    int file = pattern_file(length);
    size_t at = 3;
    int local;
    int peer;

    if (!set_up(_i))
        return;
    tcp_pair(&loop, &local, &peer);
    for (int round = 1; round < 4; round++) {
        size_t end = at + length - 3;

        at = 3;
        end = length;
        loop_sendfile(&loop, &probe.op, local, file, 3, length - 3, false);
        drain_until_done(peer, &at, round);
        ck_assert_int_eq(probe.result, (int)length - 3);
        ck_assert_uint_eq(probe.op.file.progress, length - 3);
        while (at < end)
            peer_drain_pattern(peer, &at);
        fsync(file);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    }
    loop_sendfile(&loop, &probe.op, local, file, 0, 0, false);
    run_until_done(&probe, 4);
    ck_assert_int_eq(probe.result, 0);
    close(file);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/* Pages may be dropped while the op waits for the socket, so the loop checks the page cache again. */
START_TEST(page_cache_is_checked_after_waiting)
{
    const size_t length = 16 * 1024 * 1024;
    int file = pattern_file(length);
    uint64_t before;
    size_t at = 0;
    char byte;
    int local;
    int peer;

    if (!set_up(_i))
        return;
    tcp_pair(&loop, &local, &peer);
    loop_sendfile(&loop, &probe.op, local, file, 0, length, false);
    for (int i = 0; i < 50; i++)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1), 0);
    before = probe.op.file.progress;
    ck_assert(before > 0 && before < length && probe.runs == 0);
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (loop_read_cached(file, (int64_t)before + 100000, &(struct iovec){&byte, 1}, 1) == -EAGAIN) {
        for (int i = 0; i < 100000 && probe.op.file.progress == before && probe.op.file.fetches == 0; i++) {
            peer_drain_pattern(peer, &at);
            ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1), 0);
        }
        ck_assert_uint_gt(probe.op.file.fetches, 0);
        ck_assert_uint_eq(probe.op.file.progress, before);
    }
    drain_until_done(peer, &at, 1);
    ck_assert_int_eq(probe.result, (int)length);
    close(file);
    peer_close(peer);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

/*
 * Sends a file that is not in the page cache. Tries several times, because the kernel's readahead may load the file
 * first. Returns the number of completions to wait for.
 */
static int send_cold(int sink, int file, size_t length)
{
    for (int runs = 1; runs <= 50; runs++) {
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        turn_some(&loop, 1); /* bytes are left again, so that the op starts at once */
        loop_sendfile(&loop, &probe.op, sink, file, 0, length, false);
        if (probe.op.state == OP_STATE_OFFLOADED)
            return runs;
        run_until_done(&probe, runs);
    }
    ck_abort_msg("a cold file was never helped");
    return 0;
}

/* The loop does not wait for the disk: a helper reads a missing window, and the op can be cancelled meanwhile. */
START_TEST(helpers_read_missing_pages)
{
    const size_t length = 2 * 1024 * 1024;
    int file = pattern_file(length);
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char byte;
    int runs;

    if (!set_up(_i))
        return;
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (loop_read_cached(file, (int64_t)length - 1, &(struct iovec){&byte, 1}, 1) != -EAGAIN)
        SKIP_TEST("the file system has no disk");
    ck_assert(!loop_is_cached(file, 0, length));
    runs = send_cold(sink, file, length);
    run_until_done(&probe, runs);
    ck_assert_int_eq(probe.result, (int)length);
    ck_assert_int_eq((int)loop_read_cached(file, (int64_t)length - 1, &(struct iovec){&byte, 1}, 1), 1);

    loop_sendfile(&loop, &probe.op, sink, file, 0, length, false);
    ck_assert_int_ne(probe.op.state, OP_STATE_OFFLOADED);
    run_until_done(&probe, ++runs);
    probe.runs = 0;
    runs = send_cold(sink, file, length);
    loop_cancel(&loop, &probe.op);
    run_until_done(&probe, runs);
    ck_assert_int_eq(probe.result, -ECANCELED);
    ck_assert_uint_eq(loop.in_flight, 0);
    close(file);
    loop_close_fd(&loop, sink);
    loop_close(&loop);
}
END_TEST

START_TEST(sendfile_of_a_truncated_file_ends_at_its_end)
{
    int file = pattern_file(10000);
    size_t at = 0;
    int local;
    int peer;

    if (!set_up(_i))
        return;
    signal(SIGPIPE, SIG_IGN); /* as in the server, because sendfile(2) has no MSG_NOSIGNAL */
    unix_pair(&loop, &local, &peer);
    loop_sendfile(&loop, &probe.op, local, file, 0, 1000000, false);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, 10000);
    peer_drain_pattern(peer, &at);
    ck_assert_uint_eq(at, 10000);
    loop_sendfile(&loop, &probe.op, local, file, 20000, 5, false);
    run_until_done(&probe, 2);
    ck_assert_int_eq(probe.result, 0);
    peer_close(peer);
    loop_sendfile(&loop, &probe.op, local, file, 0, 100, false);
    run_until_done(&probe, 3);
    ck_assert_int_eq(probe.result, -EPIPE);
    close(file);
    loop_close_fd(&loop, local);
    loop_close(&loop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        reads_from_page_cache_and_disk, sendfile_sends_the_bytes_of_the_file, helpers_read_missing_pages,
        page_cache_is_checked_after_waiting, sendfile_of_a_truncated_file_ends_at_its_end,
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, tests[i], 0, kernel_backend_count());
}

int main(void)
{
    return run_suite("files", add_tests);
}
