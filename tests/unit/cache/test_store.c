#include "cache/cache_store.h"

#include "base/limits.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(stored_and_found)
{
    cache_fixture_open(&fixture);
    open_store();
    ck_assert_ptr_null(look_up("a"));
    store_response("a", "head", STR("body"));
    check_is("a", "head", STR("body"));
    check_is("a", "head", STR("body"));
    ck_assert_ptr_null(look_up("b"));
    store_response("a", "newer", STR("another body"));
    check_is("a", "newer", STR("another body"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1);
    ck_assert(cache_store_remove(store, STR("a")));
    ck_assert(!cache_store_remove(store, STR("a")));
    ck_assert_ptr_null(look_up("a"));
    finish_tasks();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(uses_are_counted_before_storing)
{
    struct cache_lookup lookup = {.found = found};
    bool pending;

    cache_fixture_open(&fixture);
    open_store();
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_ptr_null(cache_store_get(store, &lookup, STR("a"), &pending));
        ck_assert(!pending);
        ck_assert_uint_eq(lookup.uses, i);
    }
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

static unsigned writable_calls;

static void count_writable(void *owner)
{
    writable_calls++;
}

START_TEST(large_bodies_are_written_while_they_arrive)
{
    static char piece[50000];
    struct buffer body = {0};
    struct cache_fill *made;

    cache_fixture_open(&fixture);
    open_store();
    made = begin_fill("large");
    made->writable = count_writable;
    writable_calls = 0;
    for (unsigned i = 0; i < 100; i++) {
        memset(piece, (int)i, sizeof(piece));
        ck_assert_int_eq(buffer_append(&body, str_of(piece, sizeof(piece))), 0);
        cache_fill_add(made, str_of(piece, sizeof(piece)));
        if (cache_fill_must_wait(made)) {
            unsigned before = writable_calls;

            for (unsigned k = 0; k < 1000 && writable_calls == before; k++)
                ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 10), 0);
            ck_assert_uint_eq(writable_calls, before + 1);
        }
    }
    ck_assert_uint_gt(writable_calls, 0);
    cache_fill_end(made, STR("head"));
    finish_tasks();
    check_is("large", "head", buffer_str(&body));
    buffer_finish(&body);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(discarded_fill_stores_nothing)
{
    static char piece[200000];
    struct cache_fill *made;

    cache_fixture_open(&fixture);
    open_store();
    made = begin_fill("a");
    cache_fill_add(made, str_of(piece, sizeof(piece)));
    finish_tasks();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 1); /* the unfinished file has a temporary name */
    cache_fill_discard(made);
    cache_fill_discard(begin_fill("b"));
    cache_fill_discard(NULL);
    finish_tasks();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    ck_assert_ptr_null(look_up("a"));
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(found_after_a_restart)
{
    int fd;

    cache_fixture_open(&fixture);
    open_store();
    store_response("a", "head", STR("body"));
    store_response("b", "head b", STR("body b"));
    close_store();
    /*
     * Files left by a killed server: a temporary one, and an incomplete one with its final name. And files
     * that do not belong to the cache.
     */
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "0", 0700) == 0 || errno == EEXIST, 1);
    ck_assert_int_eq(mkdirat(fixture.directory.fd, "0/00", 0700) == 0 || errno == EEXIST, 1);
    fd = openat(fixture.directory.fd, "0/00/00000000000000000000000000000000.0000000000001234.tmp",
                O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    fd = openat(fixture.directory.fd, "0/00/00000000000000000000000000000000.0000000000001234",
                O_CREAT | O_WRONLY, 0600);
    ck_assert_int_eq(write(fd, "half of it", 10), 10);
    close(fd);
    fd = openat(fixture.directory.fd, "0/00/readme", O_CREAT | O_WRONLY, 0600);
    close(fd);
    ck_assert_uint_eq(cache_fixture_count(&fixture), 5);
    open_store();
    for (unsigned i = 0; i < 1000 && !cache_zone_loaded(conf.zone); i++)
        turn_for(5);
    ck_assert(cache_zone_loaded(conf.zone));
    check_is("a", "head", STR("body"));
    check_is("b", "head b", STR("body b"));
    ck_assert_uint_eq(cache_fixture_count(&fixture), 3);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(damaged_files_are_dropped)
{
    struct cache_entry *entry;
    char name[CACHE_NAME];
    int fd;

    cache_fixture_open(&fixture);
    open_store();
    store_response("a", "head", STR("body"));
    entry = look_up("a");
    ck_assert_ptr_nonnull(entry);
    cache_file_name(&fixture.directory, &entry->id, name);
    cache_entry_unref(entry);
    fd = openat(fixture.directory.fd, name, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "X", 1, 5), 1);
    close(fd);
    cache_store_stop(store);
    finish_tasks_to(0);
    cache_store_destroy(store);
    store = cache_store_create(&loop, &quiet, &conf, 0); /* another worker, which has no file open */
    ck_assert_ptr_null(look_up("a"));
    ck_assert(was_logged("a damaged file"));
    finish_tasks();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

START_TEST(size_limits_are_respected)
{
    struct cache_totals totals;
    unsigned steps = 0;
    char key[16];

    cache_fixture_open(&fixture);
    open_store();
    conf.max_size = 1000;
    for (unsigned i = 0; i < 30; i++) {
        snprintf(key, sizeof(key), "key %u", i);
        store_response(key, "head", STR("0123456789012345678901234567890123456789"));
    }
    do {
        run_manager();
        cache_zone_totals(conf.zone, &totals);
    } while (++steps < 1000 && (totals.bytes > 1000 || cache_fixture_count(&fixture) > totals.files));
    ck_assert_uint_le(totals.bytes, 1000);
    ck_assert_uint_gt(totals.files, 3);
    ck_assert_uint_eq(cache_fixture_count(&fixture), totals.files);
    check_is("key 29", "head", STR("0123456789012345678901234567890123456789"));
    ck_assert_ptr_null(look_up("key 0"));
    conf.min_free = UINT64_MAX;
    for (steps = 0; steps < 1000 && cache_fixture_count(&fixture) > 0; steps++)
        run_manager();
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

/* The limit RLIMIT_FSIZE makes writes fail as a full disk does. */
START_TEST(full_disk_is_logged_once)
{
    static char piece[200000];
    struct rlimit limit = {100000, RLIM_INFINITY};

    cache_fixture_open(&fixture);
    open_store();
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (unsigned i = 0; i < 3; i++)
        store_response("a", "head", str_of(piece, sizeof(piece)));
    ck_assert_ptr_null(look_up("a"));
    ck_assert(was_logged("without being stored"));
    ck_assert_uint_eq(logged_lines(), 1);
    ck_assert_uint_eq(cache_fixture_count(&fixture), 0);
    store_response("b", "head", STR("small"));
    check_is("b", "head", STR("small"));
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

static unsigned wakes;
static bool was_late;

static void woken(struct cache_waiter *waiter, bool late)
{
    wakes++;
    was_late = late;
}

START_TEST(fill_lock_permits_one_fetch)
{
    struct cache_waiter waiters[3] = {{.woken = woken}, {.woken = woken}, {.woken = woken}};
    struct cache_hash hash;
    uint64_t fill_lock;

    cache_fixture_open(&fixture);
    open_store();
    wakes = 0;
    cache_hash_key(STR("a"), &hash);
    fill_lock = cache_store_fill_lock(store, &hash, 5000);
    ck_assert_uint_ne(fill_lock, 0);
    ck_assert_uint_eq(cache_store_fill_lock(store, &hash, 5000), 0);
    for (unsigned i = 0; i < 3; i++) {
        waiters[i].hash = hash;
        waiters[i].until_ms = loop.clock.monotonic_ms + 10000;
        cache_store_wait(store, &waiters[i]);
    }
    cache_waiter_cancel(&waiters[2]);
    loop_skip(&loop, 60);
    ck_assert_uint_eq(wakes, 0);
    cache_store_fill_unlock(store, &hash, fill_lock);
    ck_assert_uint_eq(wakes, 2);
    ck_assert(!was_late);
    fill_lock = cache_store_fill_lock(store, &hash, 5000);
    ck_assert_uint_ne(fill_lock, 0);
    waiters[0].until_ms = loop.clock.monotonic_ms + 50;
    cache_store_wait(store, &waiters[0]);
    loop_skip(&loop, 200);
    ck_assert_uint_eq(wakes, 3);
    ck_assert(was_late);
    waiters[1].until_ms = loop.clock.monotonic_ms + 10000; /* for a lock released by another worker */
    cache_store_wait(store, &waiters[1]);
    cache_zone_fill_unlock(conf.zone, &hash, fill_lock);
    loop_skip(&loop, 200);
    ck_assert_uint_eq(wakes, 4);
    ck_assert(!was_late);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

static unsigned updates_ended;

static void update_ended(struct cache_head_update *head_update)
{
    ck_assert_ptr_null(head_update->task);
    updates_ended++;
}

START_TEST(updated_heads_are_found)
{
    struct cache_head_update head_update = {.ended = update_ended};
    struct cache_entry *entry, *newer;

    cache_fixture_open(&fixture);
    open_store();
    store_response("a", "one", STR("body"));
    entry = look_up("a");
    ck_assert_ptr_nonnull(entry);
    cache_store_update(store, entry, STR("two"), &entry->id.hash, 0, NULL);
    ck_assert(str_equal(entry->head, STR("one")));
    finish_tasks();
    check_is("a", "two", STR("body"));
    ck_assert(str_equal(entry->head, STR("one"))); /* the response in use does not change */
    newer = look_up("a");
    cache_store_update(store, newer, STR("three"), &newer->id.hash, 0, &head_update);
    ck_assert_ptr_nonnull(head_update.task);
    ck_assert_uint_eq(updates_ended, 0);
    finish_tasks();
    ck_assert_uint_eq(updates_ended, 1);
    check_is("a", "three", STR("body"));
    cache_entry_unref(newer);
    newer = look_up("a");
    cache_store_update(store, newer, STR("four"), &newer->id.hash, 0, &head_update);
    cache_head_update_cancel(&head_update);
    cache_head_update_cancel(&head_update);
    finish_tasks();
    ck_assert_uint_eq(updates_ended, 1); /* the head is written nevertheless */
    check_is("a", "four", STR("body"));
    cache_entry_unref(newer);
    cache_entry_unref(entry);
    close_store();
    cache_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        stored_and_found, uses_are_counted_before_storing, large_bodies_are_written_while_they_arrive,
        discarded_fill_stores_nothing, found_after_a_restart, damaged_files_are_dropped,
        size_limits_are_respected, full_disk_is_logged_once, fill_lock_permits_one_fetch, updated_heads_are_found,
    };

    return cache_fixture_run("store", tests, COUNT(tests));
}
