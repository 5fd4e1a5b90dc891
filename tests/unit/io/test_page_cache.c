/*
 * The loop never waits for a disk (kernel TLS, rule 17). Wrappers of the system calls simulate a file and the set of
 * its pages in the page cache. A call that needs another page counts as a wait on the loop's thread; on a helper thread
 * it reads the page.
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
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024, LENGTH = PAGES * PAGE, NR_CACHESTAT = 451, BUSY_SINK = 100000 };

static struct {
    pthread_t loop_thread;
    int fd;
    bool hot[PAGES];
    bool has_cachestat;
    bool busy;                      /* the sink is full at every second call, and all pages are then dropped */
    bool hopeless;                  /* pages are dropped as soon as helpers have read them */
    int probed;                     /* reads of one byte that do not wait */
    int waited;                     /* calls on the loop's thread that would have waited for the disk */
    int helped;                     /* pages that helpers read */
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

/* Simulates the page accesses of a call that reads these bytes. */
static void require_pages(uint64_t at, uint64_t length)
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
    disk.probed += length == 1 && (flags & RWF_NOWAIT);
    if ((flags & RWF_NOWAIT) && !all_hot((uint64_t)at, length)) {
        errno = EAGAIN;
        return -1;
    }
    require_pages((uint64_t)at, length);
    return (ssize_t)length;
}

ssize_t __wrap_pread64(int fd, void *into, size_t length, off_t at)
{
    return __wrap_preadv64v2(fd, &(struct iovec){into, length}, 1, at, 0);
}

ssize_t __wrap_readahead(int fd, off64_t at, size_t length)
{
    ck_assert_int_eq(fd, disk.fd);
    require_pages((uint64_t)at, length);
    return 0;
}

static int sink;
static int other_end;

/* Triggers a new event of the sink: writes a byte to it, and reads this byte at the other end. */
static void trigger_writable(void)
{
    char byte = 0;

    ck_assert_int_eq((int)write(sink, &byte, 1), 1);
    ck_assert_int_eq((int)read(other_end, &byte, 1), 1);
}

/* Nothing is sent. The sink only has to be a descriptor that epoll and io_uring accept. */
ssize_t __wrap_sendfile64(int to, int fd, off_t *at, size_t length)
{
    static bool full;

    ck_assert_int_eq(fd, disk.fd);
    full = disk.busy && !full;
    if (disk.busy && !full) {
        memset(disk.hot, false, sizeof(disk.hot));
        trigger_writable();
        errno = EAGAIN;
        return -1;
    }
    if (disk.busy && length > BUSY_SINK)
        length = BUSY_SINK;
    require_pages((uint64_t)*at, length);
    disk.sent += length;
    return (ssize_t)length;
}

long __real_syscall(long number, ...);

/* cachestat(2), and io_uring_register(2) of a ring that is being opened, which has four arguments. */
long __wrap_syscall(long number, ...)
{
    va_list list;
    const uint64_t *range;
    uint64_t *found;

    va_start(list, number);
    if (number == SYS_io_uring_register) {
        long first = va_arg(list, int), second = va_arg(list, unsigned);
        const void *third = va_arg(list, const void *);
        long fourth = (long)va_arg(list, size_t);

        va_end(list);
        return __real_syscall(number, first, second, third, fourth);
    }
    ck_assert_int_eq(va_arg(list, int), disk.fd);
    range = va_arg(list, const uint64_t *);
    found = va_arg(list, uint64_t *);
    va_end(list);
    if (number != NR_CACHESTAT || !disk.has_cachestat) {
        errno = ENOSYS;
        return -1;
    }
    memset(found, 0, 5 * sizeof(*found));
    for (uint64_t page = range[0] / PAGE; page <= (range[0] + range[1] - 1) / PAGE && page < PAGES; page++)
        found[0] += disk.hot[page];
    return 0;
}

static bool set_up(int index)
{
    if (!open_loop(&loop, index))
        return false;
    probe_init(&probe, &loop);
    memset(&disk, 0, sizeof(disk));
    disk.loop_thread = pthread_self();
    disk.has_cachestat = true;
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

/* Sends the file except its first three bytes, and checks the share of each iteration. */
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

/* No page is in the page cache. Each is probed once, and the first page of a window also before it is read. */
START_TEST(rule_17_file_not_in_page_cache)
{
    if (!set_up(_i))
        return;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, PAGES);
    ck_assert_int_le(disk.probed, PAGES + LENGTH / LIMIT_UNCACHED_WINDOW);
}
END_TEST

/* All pages are in the page cache, so no helper is used. */
START_TEST(rule_17_file_in_page_cache)
{
    if (!set_up(_i))
        return;
    memset(disk.hot, true, sizeof(disk.hot));
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, 0);
}
END_TEST

static const struct {
    int first, step, count;         /* missing pages: first, first + step, ... */
} holes[] = {
    {0, 1, 1}, {100, 1, 1}, {10, 1, 200}, {1, 2, PAGES / 2}, {63, 64, 16}, {PAGES - 1, 1, 1}, {31, 64, 16}, {5, 300, 3},
};

enum { HOLES = sizeof(holes) / sizeof(holes[0]) };

/* Pages are missing in the middle of a window, so a check of its first and last page would not notice them. */
START_TEST(rule_17_some_pages_missing)
{
    if (!set_up(_i / HOLES))
        return;
    memset(disk.hot, true, sizeof(disk.hot));
    for (int i = 0; i < holes[_i % HOLES].count; i++)
        disk.hot[holes[_i % HOLES].first + i * holes[_i % HOLES].step] = false;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, holes[_i % HOLES].count);
}
END_TEST

/* A file that waits for an iteration with bytes left is probed once, in its turn. */
START_TEST(rule_17_waiting_file_is_not_probed)
{
    if (!set_up(_i))
        return;
    memset(disk.hot, true, sizeof(disk.hot));
    sink = open_sink();
    loop.iteration_bytes_left = 0;
    loop_sendfile(&loop, &probe.op, sink, disk.fd, 3, 2 * PAGE, false);
    ck_assert_int_eq(disk.probed, 0);
    turn_some(&loop, 1);
    ck_assert_int_eq(probe.runs, 1);
    ck_assert_int_eq(probe.result, 2 * PAGE);
    ck_assert_int_eq(disk.probed, 2); /* its first and its last page */
    loop_close_fd(&loop, sink);
    close(other_end);
    close(disk.fd);
    loop_close(&loop);
}
END_TEST

/* Without cachestat(2) the loop does not wait for a file that was never read. */
START_TEST(rule_17_loop_without_cachestat_does_not_wait)
{
    if (!set_up(_i))
        return;
    disk.has_cachestat = false;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_eq(disk.helped, PAGES);
}
END_TEST

/* The pages are dropped while the sink is full, so they are read again. */
START_TEST(rule_17_pages_dropped_after_reading)
{
    if (!set_up(_i))
        return;
    disk.busy = true;
    send_all();
    ck_assert_int_eq(disk.waited, 0);
    ck_assert_int_gt(disk.helped, PAGES);
}
END_TEST

/*
 * The page cache keeps no page of this file. After some attempts the loop reads the file itself, so that the transfer
 * ends.
 */
START_TEST(rule_17_no_pages_are_cached)
{
    if (!set_up(_i))
        return;
    disk.hopeless = true;
    send_all();
    ck_assert_int_gt(disk.waited, 0);
}
END_TEST

enum { MANY = LIMIT_HELPER_QUEUE + 100 };

/* The limit of the helpers' queue does not apply to file reads (unlike OP_OFFLOAD). */
START_TEST(rule_17_more_than_the_queue_holds)
{
    static struct probe many[MANY];

    if (!set_up(_i))
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

    tcase_add_loop_test(group, rule_17_file_not_in_page_cache, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_file_in_page_cache, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_some_pages_missing, 0, kernel_backend_count() * HOLES);
    tcase_add_loop_test(group, rule_17_pages_dropped_after_reading, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_no_pages_are_cached, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_waiting_file_is_not_probed, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_loop_without_cachestat_does_not_wait, 0, kernel_backend_count());
    tcase_add_loop_test(group, rule_17_more_than_the_queue_holds, 0, kernel_backend_count());
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
