/*
 * The loop's thread starts no disk reads of a file after a helper thread had to read it (kernel TLS, rule 17): a
 * preadv2 with RWF_NOWAIT that finds pages missing starts readahead in the call. Wrappers of the system calls simulate
 * which pages of a file are in the page cache. A helper thread reads the pages that it needs.
 */
#include "kit.h"

#include "base/limits.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* DEVICE_AHEAD: readahead(2) reads no more in one call. */
enum { PAGE = 4096, PAGES = KIT_PATTERN / PAGE, DEVICE_AHEAD = 128 * 1024 };

static struct kit kit;

static struct {
    pthread_t loop_thread;
    int fd;
    bool hot[PAGES];
    unsigned started;               /* calls of the loop's thread that found pages missing */
    unsigned helped;                /* calls of helper threads that read bytes */
    uint64_t ahead, until;          /* the longest readahead(2), and the end of the last one in the file */
    bool random;                    /* readahead by the kernel is switched off */
} disk;

ssize_t __real_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags);
ssize_t __wrap_readahead(int fd, off64_t at, size_t length);
int __wrap_posix_fadvise64(int fd, off64_t at, off64_t length, int advice);

/* The bytes from `at` on that are in the page cache, at most `length`. */
static size_t hot_bytes(uint64_t at, size_t length)
{
    uint64_t end = at;

    while (end < at + length && end < KIT_PATTERN && disk.hot[end / PAGE])
        end = end / PAGE * PAGE + PAGE;
    return end > at + length ? length : (size_t)(end - at);
}

static void load_pages(uint64_t at, size_t length)
{
    for (uint64_t page = at / PAGE; page < PAGES && page * PAGE < at + length; page++)
        disk.hot[page] = true;
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
    struct iovec part = parts[0];
    size_t length = 0, found;

    for (int i = 0; i < count; i++)
        length += parts[i].iov_len;
    if (fd != disk.fd)
        return __real_preadv64v2(fd, parts, count, at, flags);
    if (!pthread_equal(pthread_self(), disk.loop_thread)) {
        disk.helped++;
        load_pages((uint64_t)at, length);
        return preadv(fd, parts, count, at);
    }
    ck_assert_int_eq(flags, RWF_NOWAIT);
    found = hot_bytes((uint64_t)at, length);
    disk.started += found < length;
    if (found == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (found < part.iov_len)
        part.iov_len = found;
    return found < length ? preadv(fd, &part, 1, at) : preadv(fd, parts, count, at);
}

ssize_t __wrap_readahead(int fd, off64_t at, size_t length)
{
    ck_assert_int_eq(fd, disk.fd);
    ck_assert(!pthread_equal(pthread_self(), disk.loop_thread));
    ck_assert(disk.random || kit.transport == &transports[0]);
    load_pages((uint64_t)at, length < DEVICE_AHEAD ? length : DEVICE_AHEAD);
    if (length > disk.ahead)
        disk.ahead = length;
    if ((uint64_t)at + length > disk.until)
        disk.until = (uint64_t)at + length;
    return 0;
}

int __wrap_posix_fadvise64(int fd, off64_t at, off64_t length, int advice)
{
    ck_assert_int_eq(fd, disk.fd);
    ck_assert_int_eq(at + length, 0);
    disk.random = advice == POSIX_FADV_RANDOM;
    return 0;
}

static void open_wire(int backend, int fd, int transport)
{
    memset(&disk, 0, sizeof(disk));
    disk.loop_thread = pthread_self();
    disk.fd = fd;
    kit_prepare(&kit, backend, &transports[transport]);
    kit_open(&kit, 0);
    kit_until_open(&kit);
}

static void close_wire(void)
{
    (void)wire_transfer_end(&kit.wire, NULL);
    wire_close(&kit.wire, WIRE_CLOSE_ORDERLY);
    kit_until_closed(&kit);
    ck_assert_int_eq(kit.end, WIRE_CLOSE_ORDERLY);
    kit_close(&kit);
}

/* Sends file bytes as one span, or as parts of `part` bytes of one run. */
static void send_file(int fd, int64_t at, size_t length, size_t part)
{
    kit.planned = kit.given = 0;
    kit.got_length = 0;
    for (size_t done = 0; done < length; done += part) {
        kit_plan_file(&kit, fd, at + (int64_t)done, length - done < part ? length - done : part);
        kit.plan[kit.planned - 1].file.run = part < length ? (uint32_t)(length - done) : 0;
    }
    kit_pump(&kit);
    kit_run_until_received(&kit, length);
    ck_assert_uint_eq(kit.got_length, length);
    ck_assert_mem_eq(kit.got, kit_pattern() + at, length);
}

/* With each backend: only the first attempt of the loop may start a read; helpers start all others. */
START_TEST(rule_17_helpers_start_all_reads)
{
    enum { LENGTH = 4 * LIMIT_READ_AHEAD };
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, fd, 1);
    send_file(fd, 0, LENGTH, LENGTH);
    ck_assert_uint_eq(disk.started, 1);
    ck_assert_uint_le(disk.helped, LENGTH / LIMIT_READ_AHEAD + 2);
    ck_assert_uint_le(disk.ahead, LIMIT_READ_AHEAD);
    close_wire();
    close(fd);
}
END_TEST

/* With each backend: the parts of a run, as HTTP/2 frames, share what is known about the page cache. */
START_TEST(rule_17_parts_of_a_run_share_the_state)
{
    enum { PART = 16000, LENGTH = 60 * PART };
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, fd, 1);
    send_file(fd, 0, LENGTH, PART);
    ck_assert_uint_eq(disk.started, 1);
    ck_assert_uint_le(disk.helped, LENGTH / LIMIT_READ_AHEAD + 2);
    close_wire();
    close(fd);
}
END_TEST

/* With each backend: a helper thread reads ahead the parts of a run that sendfile sends, and no other bytes. */
START_TEST(rule_17_parts_of_a_run_are_read_ahead)
{
    enum { PART = 16000, LENGTH = 60 * PART };
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, fd, 0);
    send_file(fd, 0, LENGTH, PART);
    ck_assert_uint_eq(disk.ahead, DEVICE_AHEAD);
    ck_assert_uint_ge(disk.until, LENGTH);
    ck_assert_uint_lt(disk.until, LENGTH + 1024);
    close_wire();
    close(fd);
}
END_TEST

/* With each backend: no more is read ahead than the response needs. */
START_TEST(short_spans_are_not_read_ahead)
{
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, fd, 1);
    send_file(fd, 100000, 1000, 1000);
    ck_assert_uint_eq(disk.helped, 1);
    ck_assert_uint_eq(disk.ahead, 1024);
    close_wire();
    close(fd);
}
END_TEST

/* With each backend: helpers are used only for missing pages, and not for the response after one that needed them. */
START_TEST(rule_17_helpers_are_used_only_while_pages_are_missing)
{
    enum { LENGTH = 1024 * 1024 };
    int fd = kit_file(KIT_PATTERN);

    open_wire(_i, fd, 1);
    memset(disk.hot, true, sizeof(disk.hot));
    send_file(fd, 0, LENGTH, LENGTH);
    ck_assert_uint_eq(disk.started + disk.helped, 0);
    ck_assert(!disk.random);
    memset(disk.hot, false, sizeof(disk.hot));
    send_file(fd, 0, LENGTH, LENGTH);
    ck_assert_uint_gt(disk.helped, 0);
    (void)wire_transfer_end(&kit.wire, NULL);
    disk.helped = 0;
    send_file(fd, 0, LENGTH, LENGTH);
    ck_assert_uint_eq(disk.helped, 0);
    close_wire();
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("page_cache");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, rule_17_helpers_start_all_reads, 0, backend_count());
    tcase_add_loop_test(all, rule_17_parts_of_a_run_share_the_state, 0, backend_count());
    tcase_add_loop_test(all, rule_17_parts_of_a_run_are_read_ahead, 0, backend_count());
    tcase_add_loop_test(all, short_spans_are_not_read_ahead, 0, backend_count());
    tcase_add_loop_test(all, rule_17_helpers_are_used_only_while_pages_are_missing, 0, backend_count());
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
