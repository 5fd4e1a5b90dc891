/* Work on helper threads: results, cancellation, a full queue; and system calls that a sandbox refuses. */
#include "fixture.h"

#include "base/limits.h"
#include "sandbox.h"
#include "tree.h"

#include "io/file_cache.h"

#include "../runner.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MANY (LIMIT_HELPER_QUEUE + 100)

static struct loop loop;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int add_one(void *argument)
{
    return *(int *)argument + 1;
}

static int wait_at_gate(void *argument)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return 7;
}

START_TEST(results_come_back)
{
    struct probe probes[50];
    int numbers[50];

    if (!open_loop(&loop, _i))
        return;
    for (int i = 0; i < 50; i++) {
        numbers[i] = i;
        probe_init(&probes[i], &loop);
        loop_offload(&loop, &probes[i].op, add_one, &numbers[i]);
        ck_assert_int_eq(probes[i].runs, 0);
    }
    for (int i = 0; i < 50; i++) {
        run_until_done(&probes[i], 1);
        ck_assert_int_eq(probes[i].result, i + 1);
    }
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
}
END_TEST

/* Queued work is cancelled at once; for running work the cancel waits; the length of the queue is limited. */
START_TEST(cancelled_work_and_full_queue)
{
    static struct probe probes[MANY];
    int refused = 0;

    if (!open_loop(&loop, _i))
        return;
    pthread_mutex_lock(&gate);
    for (int i = 0; i < MANY; i++) {
        probe_init(&probes[i], &loop);
        loop_offload(&loop, &probes[i].op, wait_at_gate, NULL);
    }
    for (int i = 0; i < MANY; i++) {
        if (i % 2 == 0)
            loop_cancel(&loop, &probes[i].op);
    }
    turn_some(&loop, 5);
    for (int i = LIMIT_HELPER_THREADS; i < MANY; i += 2) {
        ck_assert_int_eq(probes[i].runs, 1);
        ck_assert(probes[i].result == -ECANCELED || probes[i].result == -EBUSY);
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < MANY; i++) {
        run_until_done(&probes[i], 1);
        refused += probes[i].result == -EBUSY;
        if (probes[i].result != -EBUSY)
            ck_assert_int_eq(probes[i].result, i % 2 ? 7 : -ECANCELED);
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_int_le(refused, MANY - LIMIT_HELPER_QUEUE);
    ck_assert_uint_eq(loop.in_flight, 0);
    loop_close(&loop);
}
END_TEST

static int blocked_signals(void *argument)
{
    sigset_t set;

    pthread_sigmask(SIG_SETMASK, NULL, &set);
    return sigismember(&set, SIGTERM);
}

START_TEST(threads_take_no_signals)
{
    struct probe probe;

    if (!open_loop(&loop, _i))
        return;
    probe_init(&probe, &loop);
    loop_offload(&loop, &probe.op, blocked_signals, NULL);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, 1);
    loop_close(&loop);
}
END_TEST

struct kept_log {
    char text[512];
};

static void keep_line(void *owner, enum log_level level, struct str line)
{
    snprintf(((struct kept_log *)owner)->text, sizeof(((struct kept_log *)owner)->text), STR_FMT, STR_ARG(line));
}

/* If io_uring is refused, "auto" logs this and uses epoll. An explicit "io_uring" fails. */
START_TEST(refused_io_uring_falls_back_to_epoll)
{
    struct kept_log recorded = {""};
    struct log log = {.level = LOG_NOTICE, .sink = keep_line, .owner = &recorded};

    ck_assert_int_eq(loop_open(&loop, "kqueue", &log), -EINVAL);
    if (kernel_backend_count() < 2 || !forbid_call(SYS_io_uring_setup, EPERM))
        return;
    ck_assert_int_eq(loop_open(&loop, "io_uring", &log), -EPERM);
    ck_assert_str_eq(recorded.text, "");
    ck_assert_int_eq(loop_open(&loop, "auto", &log), 0);
    ck_assert_str_eq(loop.backend->name, "epoll");
    ck_assert_ptr_nonnull(strstr(recorded.text, "[notice]"));
    ck_assert_ptr_nonnull(strstr(recorded.text, "io_uring: Operation not permitted, using epoll"));
    loop_close(&loop);
}
END_TEST

static struct file_entry *found_entry;

static void found(struct file_lookup *lookup, struct file_entry *entry)
{
    found_entry = entry;
}

/* If openat2 is refused, the file cache walks the path, with the same results. */
START_TEST(files_open_alike_without_openat2)
{
    static const int errors[] = {EPERM, ENOSYS};
    static const struct {
        const char *path;
        int error;
    } cases[] = {{"file", 0}, {"dirlink/inner", 0}, {"escape", -EXDEV}, {"absolute", -EXDEV}, {"fifo", -EACCES}};
    struct file_cache_limits limits = {true, 100, 10000, 1000, 1000, 1, false};
    struct file_cache *cache;

    make_root();
    ck_assert_int_eq(loop_open(&loop, "auto", NULL), 0);
    cache = file_cache_create(&loop, &limits);
    if (!forbid_call(SYS_openat2, errors[_i]))
        return;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct file_lookup lookup = {.found = found};
        bool pending;

        found_entry = file_cache_get(cache, &lookup, str_from(root), str_from(cases[i].path), SYMLINKS_BENEATH,
                                     &pending);
        while (!found_entry)
            ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 100), 0);
        ck_assert_msg(found_entry->error == cases[i].error, "%s: %d", cases[i].path, found_entry->error);
        file_entry_unref(found_entry);
    }
    file_cache_destroy(cache);
    loop_close(&loop);
    remove_root();
}
END_TEST

/* If no thread can be created, the loop's thread does the work. */
START_TEST(works_without_threads)
{
    struct probe probe;
    int number = 41;

    if (!open_loop(&loop, _i) || !forbid_call(SYS_clone, EAGAIN) || !forbid_call(SYS_clone3, ENOSYS))
        _exit(0);
    probe_init(&probe, &loop);
    loop_offload(&loop, &probe.op, add_one, &number);
    ck_assert_int_eq(probe.runs, 0);
    run_until_done(&probe, 1);
    ck_assert_int_eq(probe.result, 42);
    loop_close(&loop);
    _exit(0); /* not a normal exit: LeakSanitizer would need a thread */
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, results_come_back, 0, tested_backend_count());
    tcase_add_loop_test(tcase, cancelled_work_and_full_queue, 0, kernel_backend_count());
    tcase_add_loop_test(tcase, threads_take_no_signals, 0, kernel_backend_count());
    tcase_add_loop_exit_test(tcase, works_without_threads, 0, 0, kernel_backend_count());
    tcase_add_test(tcase, refused_io_uring_falls_back_to_epoll);
    tcase_add_loop_test(tcase, files_open_alike_without_openat2, 0, 2);
}

int main(void)
{
    return run_suite("helpers", add_tests);
}
