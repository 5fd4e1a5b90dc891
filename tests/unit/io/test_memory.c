/*
 * Every allocation of io/ fails once: the function or the op returns an error; nothing crashes, leaks or stays in
 * flight. The linker replaces the allocators of io and base by the functions below.
 */
#include "fixture.h"
#include "tree.h"

#include "io/file_cache.h"

#include "../runner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int until_failure = -1;      /* number of allocations that still succeed; negative: all */
static bool armed;                  /* false: the test itself runs, and its allocations succeed */

static bool fails(void)
{
    return armed && until_failure >= 0 && until_failure-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
    return fails() ? NULL : __real_reallocarray(memory, count, size);
}

static struct loop loop;
static struct file_entry *found_entry;
static int found_count;

static void found(struct file_lookup *lookup, struct file_entry *entry)
{
    found_entry = entry;
    found_count++;
}

static int answer(void *argument)
{
    return 42;
}

static bool good_or(int result, int error)
{
    return result >= 0 || result == error;
}

static void receive_and_offload(int *failed)
{
    struct probe timer;
    struct probe receive;
    struct probe offload;
    int local;
    int peer;

    probe_init(&timer, &loop);
    probe_init(&receive, &loop);
    probe_init(&offload, &loop);
    unix_pair(&loop, &local, &peer);
    peer_send(peer, "x");
    armed = true;
    loop_timer(&loop, &timer.op, loop.clock.monotonic_ms);
    loop_recv(&loop, &receive.op, local);
    loop_offload(&loop, &offload.op, answer, NULL);
    while (timer.runs + receive.runs + offload.runs < 3) {
        if (loop_run_iteration(&loop, loop.clock.monotonic_ms + 100) < 0)
            break;
    }
    armed = false;
    ck_assert(good_or(timer.result, -ENOMEM));
    ck_assert(good_or(receive.result, -ENOMEM));
    ck_assert_int_eq(offload.result, 42); /* without helper threads the loop's thread does the work */
    *failed += (timer.result < 0) + (receive.result < 0);
    peer_close(peer);
    loop_close_fd(&loop, local);
}

static struct file_entry *look_up(struct file_cache *cache, const char *path, enum symlinks symlinks)
{
    struct file_lookup lookup = {.found = found};
    struct file_entry *entry;
    bool pending;

    found_count = 0;
    entry = file_cache_get(cache, &lookup, str_from(root), str_from(path), symlinks, &pending);
    if (!pending)
        return entry;
    while (found_count == 0) {
        if (loop_run_iteration(&loop, loop.clock.monotonic_ms + 100) < 0)
            return NULL;
    }
    return found_entry;
}

static void open_files(int *failed)
{
    static const struct file_cache_limits limits = {true, 10, 10000, 1000, 1000, 1, false};
    struct file_cache *cache;

    armed = true;
    cache = file_cache_create(&loop, &limits);
    armed = false;
    if (!cache) {
        ++*failed;
        return;
    }
    for (int i = 0; i < 3; i++) {
        struct file_entry *entry;

        armed = true;
        entry = look_up(cache, i == 1 ? "dir/inner" : "file", i ? SYMLINKS_OWNER : SYMLINKS_BENEATH);
        armed = false;
        ck_assert(!entry || good_or(entry->error, -ENOMEM));
        *failed += !entry || entry->error;
        file_entry_unref(entry);
    }
    file_cache_destroy(cache);
}

START_TEST(every_allocation_fails_once)
{
    int failed = 0;
    int nth = 0;

    if (!open_loop(&loop, _i))
        return;
    loop_close(&loop);
    make_root();
    for (; nth < 1000; nth++) {
        int error;

        until_failure = nth;
        armed = true;
        error = loop_open_backend(&loop, tested_backend(_i), NULL);
        armed = false;
        if (error < 0) {
            ck_assert_int_eq(error, -ENOMEM);
            failed++;
            continue;
        }
        receive_and_offload(&failed);
        open_files(&failed);
        ck_assert_uint_eq(loop.in_flight, 0);
        loop_close(&loop);
        if (until_failure >= 0)
            break; /* each allocation has failed once */
    }
    until_failure = -1;
    ck_assert_int_gt(nth, 8);
    ck_assert_int_lt(nth, 1000);
    ck_assert_int_gt(failed, 5);
    remove_root();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, every_allocation_fails_once, 0, kernel_backend_count());
}

int main(void)
{
    return run_suite("memory", add_tests);
}
