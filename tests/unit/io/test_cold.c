/*
 * The loop never waits for a disk (rule 17). The kernel's calls are replaced by ones that know which pages of a made-up
 * file are in memory: on the loop's thread, a call that would have to wait for one that is not is the fault looked for;
 * on a helper thread it brings the page in.
 */
#include "fixture.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024, LENGTH = PAGES * PAGE, NR_CACHESTAT = 451, BUSY_SINK = 100000 };

static struct {
    pthread_t loop_thread;
    int fd;
    bool hot[PAGES];
    bool knows_cachestat;
    bool busy;                      /* the sink takes less than was asked for, and meanwhile all pages are dropped */
    bool hopeless;                  /* what helpers bring in is gone at once */
    int waited;                     /* calls of the loop's thread that would have waited for the disk */
    int helped;                     /* pages brought in by helpers */
    uint64_t sent;
} disk;

static struct loop loop;
static struct probe probe;

ssize_t __real_preadv64v2(int fd, const struct iovec *parts, int count, off_t at, int flags);
ssize_t __real_pread64(int fd, void *into, size_t length, off_t at);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off_t at, int flags);
ssize_t __wrap_pread64(int fd, void *into, size_t length, off_t at);
ssize_t __wrap_readahead(int fd, off64_t at, size_t length);
ssize_t __wrap_sendfile64(int to, int fd, off_t *at, size_t length);
long __wrap_syscall(long number, ...);

static bool all_hot(uint64_t at, uint64_t length)
{
    for (uint64_t page = at / PAGE; page <= (at + length - 1) / PAGE && page < PAGES; page++) {
        if (!disk.hot[page])
            return false;
    }
    return true;
}

/* A call that needs these bytes now. */
static void need(uint64_t at, uint64_t length)
{
    if (all_hot(at, length))
        return;
    if (pthread_equal(pthread_self(), disk.loop_thread))
        disk.waited++;
    for (uint64_t page = at / PAGE; page <= (at + length - 1) / PAGE && page < PAGES; page++) {
        disk.helped += !disk.hot[page];
        disk.hot[page] = !disk.hopeless;
    }
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off_t at, int flags)
{
    size_t length = 0;

    for (int i = 0; i < count; i++)
        length += parts[i].iov_len;
    if (fd != disk.fd)
        return __real_preadv64v2(fd, parts, count, at, flags);
    if ((flags & RWF_NOWAIT) && !all_hot((uint64_t)at, length)) {
        errno = EAGAIN;
        return -1;
    }
    need((uint64_t)at, length);
    return (ssize_t)length;
}

ssize_t __wrap_pread64(int fd, void *into, size_t length, off_t at)
{
    return __wrap_preadv64v2(fd, &(struct iovec){into, length}, 1, at, 0);
}

ssize_t __wrap_readahead(int fd, off64_t at, size_t length)
{
    ck_assert_int_eq(fd, disk.fd);
    need((uint64_t)at, length);
    return 0;
}

static int sink;
static int other_end;

/* Anew: a byte comes, and is gone. */
static void become_writable(void)
{
    char byte = 0;

    ck_assert_int_eq((int)write(sink, &byte, 1), 1);
    ck_assert_int_eq((int)read(other_end, &byte, 1), 1);
}

/* The sink is a number only: any that can be waited for. */
ssize_t __wrap_sendfile64(int to, int fd, off_t *at, size_t length)
{
    static bool full;

    ck_assert_int_eq(fd, disk.fd);
    full = disk.busy && !full;
    if (disk.busy && !full) {
        memset(disk.hot, false, sizeof(disk.hot));
        become_writable();
        errno = EAGAIN;
        return -1;
    }
    if (disk.busy && length > BUSY_SINK)
        length = BUSY_SINK;
    need((uint64_t)*at, length);
    disk.sent += length;
    return (ssize_t)length;
}

/* cachestat(2) alone: nothing else in here uses syscall(2). */
long __wrap_syscall(long number, ...)
{
    va_list list;
    const uint64_t *range;
    uint64_t *found;

    va_start(list, number);
    ck_assert_int_eq(va_arg(list, int), disk.fd);
    range = va_arg(list, const uint64_t *);
    found = va_arg(list, uint64_t *);
    va_end(list);
    if (number != NR_CACHESTAT || !disk.knows_cachestat) {
        errno = ENOSYS;
        return -1;
    }
    memset(found, 0, 5 * sizeof(*found));
    for (uint64_t page = range[0] / PAGE; page <= (range[0] + range[1] - 1) / PAGE && page < PAGES; page++)
        found[0] += disk.hot[page];
    return 0;
}

static bool begin(int index)
{
    if (!open_loop(&loop, index))
        return false;
    probe_init(&probe, &loop);
    memset(&disk, 0, sizeof(disk));
    disk.loop_thread = pthread_self();
    disk.knows_cachestat = true;
    disk.fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    return true;
}

static int open_sink(void)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    other_end = ends[1];
    return ends[0];
}

/* Sends all of the file but its first three bytes, looking at each turn's share. */
static void send_all(void)
{
    uint64_t before = 0, share = LIMIT_ITERATION_FILE_BYTES;

    sink = open_sink();
    loop_sendfile(&loop, &probe.op, sink, disk.fd, 3, LENGTH - 3, false);
    for (int turn = 0; turn < 100000 && probe.runs == 0; turn++) {
        ck_assert_uint_le(disk.sent - before, share);
        before = disk.sent;
        share = probe.op.file.fetches > 0 ? LIMIT_ITERATION_FETCHED_BYTES : LIMIT_ITERATION_FILE_BYTES;
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 1000), 0);
    }
    ck_assert_int_eq(probe.runs, 1);
    ck_assert_int_eq(probe.result, LENGTH - 3);
    ck_assert_uint_eq(disk.sent, LENGTH - 3);
    loop_close_fd(&loop, sink);
    close(other_end);
    close(disk.fd);
    loop_close(&loop);
}

/* Nothing is in memory. */
START_TEST(rule_17_a_cold_file)
{
    if (!begin(_i))
        return;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, PAGES);
}
END_TEST

/* All of it is, and no helper is asked. */
START_TEST(rule_17_a_hot_file)
{
    if (!begin(_i))
        return;
    memset(disk.hot, true, sizeof(disk.hot));
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, 0);
}
END_TEST

static const struct {
    int first, step, count;         /* pages that are missing: first, first + step, ... */
} holes[] = {
    {0, 1, 1}, {100, 1, 1}, {10, 1, 200}, {1, 2, PAGES / 2}, {63, 64, 16}, {PAGES - 1, 1, 1}, {31, 64, 16}, {5, 300, 3},
};

enum { HOLES = sizeof(holes) / sizeof(holes[0]) };

/* Pages were taken away here and there: the first and the last of a window do not tell. */
START_TEST(rule_17_a_file_with_holes)
{
    if (!begin(_i / HOLES))
        return;
    memset(disk.hot, true, sizeof(disk.hot));
    for (int i = 0; i < holes[_i % HOLES].count; i++)
        disk.hot[holes[_i % HOLES].first + i * holes[_i % HOLES].step] = false;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, holes[_i % HOLES].count);
}
END_TEST

/* A kernel that cannot tell which pages it has: a file that was never read is still nobody's wait. */
START_TEST(rule_17_without_cachestat)
{
    if (!begin(_i))
        return;
    disk.knows_cachestat = false;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, PAGES);
}
END_TEST

/* The memory is needed for something else while the sink is full: what was fetched is fetched again. */
START_TEST(rule_17_fetched_and_dropped)
{
    if (!begin(_i))
        return;
    disk.busy = true;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_gt(disk.helped, PAGES);
}
END_TEST

/* No memory at all for this file: in the end the loop reads it, rather than to ask helpers for ever. */
START_TEST(rule_17_always_dropped)
{
    if (!begin(_i))
        return;
    disk.hopeless = true;
    send_all();
    ck_assert_int_gt(disk.waited, 0);
}
END_TEST

enum { MANY = LIMIT_HELPER_QUEUE + 100 };

/* Who waits for a file is never refused, however many there are (OP_OFFLOAD is). */
START_TEST(rule_17_more_than_the_queue_holds)
{
    static struct probe many[MANY];

    if (!begin(_i))
        return;
    sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < MANY; i++) {
        probe_init(&many[i], &loop);
        loop_sendfile(&loop, &many[i].op, sink, disk.fd, i % PAGES * PAGE, PAGE, false);
    }
    for (int i = 0; i < MANY; i++) {
        run_until_done(&many[i], 1);
        ck_assert_int_eq(many[i].result, PAGE);
    }
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_uint_eq(disk.sent, (uint64_t)MANY * PAGE);
    loop_close_fd(&loop, sink);
    close(disk.fd);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cold");
    TCase *group = tcase_create("cold");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(group, rule_17_a_cold_file, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_a_hot_file, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_a_file_with_holes, 0, kernel_backend_count() * HOLES);
    tcase_add_loop_test(group, rule_17_fetched_and_dropped, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_always_dropped, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_without_cachestat, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_more_than_the_queue_holds, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
