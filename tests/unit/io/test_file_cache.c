/* The cache of open files: hits, changes on disk, and shared lookups. */
#include "file_cache_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Sets the file's times into the past, so that every later change alters them. */
static void backdate_file(const char *name)
{
    struct timespec past[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};

    ck_assert_int_eq(utimensat(AT_FDCWD, in_root(name), past, 0), 0);
}

START_TEST(entries_per_symlink_policy)
{
    struct file_cache_counters counters = {0};
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct file_entry *first = look_up(cache, "file");
    struct file_entry *again = look_up(cache, "file");
    struct file_entry *absent = look_up(cache, "absent");
    struct file_entry *link = look_up(cache, "link");
    struct file_entry *none = look_up_below(cache, root, "link", SYMLINKS_NONE);

    ck_assert_ptr_eq(first, again);
    ck_assert_uint_eq(first->references, 2);
    ck_assert(str_equal(first->content, STR("hello")));
    ck_assert_int_ge(first->fd, 0);
    ck_assert_int_eq(absent->error, -ENOENT);
    ck_assert(absent->linked);
    ck_assert_int_eq(link->error, 0);
    ck_assert_int_eq(none->error, -ELOOP);
    file_entry_unref(first);
    file_entry_unref(again);
    file_entry_unref(absent);
    file_entry_unref(link);
    file_cache_set_counters(cache, &counters);
    file_entry_unref(look_up(cache, "file"));
    file_entry_unref(look_up(cache, "absent"));
    file_entry_unref(look_up(cache, "absent too"));
    ck_assert_uint_eq(counters.hits, 2);
    ck_assert_uint_eq(counters.misses, 1);
    loop.clock.monotonic_ms += 1000;
    file_entry_unref(look_up(cache, "file")); /* revalidated; that needs an open, so it counts as a miss */
    ck_assert_uint_eq(counters.hits, 2);
    ck_assert_uint_eq(counters.misses, 2);
    file_cache_destroy(cache);
    ck_assert_int_eq(none->error, -ELOOP); /* the entry outlives the cache */
    file_entry_unref(none);
    file_entry_unref(NULL);
}
END_TEST

/* The cache detects a replaced, changed or removed file after valid_ms, and not before. */
START_TEST(changes_are_noticed)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct file_entry *before;
    struct file_entry *after;

    backdate_file("file");
    loop.clock.wall_ms += 100000; /* ctime cannot be set, so the clock is advanced */
    before = look_up(cache, "file");
    ck_assert(before->unchanging);
    tree_write_file("new", "world");
    ck_assert_int_eq(rename(in_root("new"), in_root("file")), 0);
    after = look_up(cache, "file");
    ck_assert_ptr_eq(before, after);
    file_entry_unref(after);
    loop.clock.monotonic_ms += 1000;
    after = look_up(cache, "file");
    ck_assert_ptr_ne(before, after);
    ck_assert(str_equal(after->content, STR("world")));
    ck_assert(str_equal(before->content, STR("hello")));
    ck_assert(!before->linked);
    file_entry_unref(before);
    file_entry_unref(after);

    loop.clock.monotonic_ms += 1000;
    before = look_up(cache, "file");
    loop.clock.monotonic_ms += 1000;
    after = look_up(cache, "file");
    ck_assert_ptr_eq(before, after); /* revalidated */
    ck_assert_uint_eq(after->checked_ms, loop.clock.monotonic_ms);
    file_entry_unref(before);
    file_entry_unref(after);
    unlink(in_root("file"));
    loop.clock.monotonic_ms += 1000;
    after = look_up(cache, "file");
    ck_assert_int_eq(after->error, -ENOENT);
    file_entry_unref(after);
    tree_write_file("file", "back");
    loop.clock.monotonic_ms += 1000;
    after = look_up(cache, "file");
    ck_assert_int_eq(after->error, 0);
    file_entry_unref(after);
    file_cache_destroy(cache);
}
END_TEST

/*
 * A file may be rewritten within the resolution of its timestamps, so a file that was modified just now is not
 * revalidated but opened again.
 */
START_TEST(recently_modified_files_are_opened_again)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct file_entry *before = look_up(cache, "file");
    struct file_entry *after;

    ck_assert(!before->unchanging);
    loop.clock.monotonic_ms += 1000;
    after = look_up(cache, "file");
    ck_assert_ptr_ne(before, after);
    file_entry_unref(before);
    file_entry_unref(after);
    file_cache_destroy(cache);
}
END_TEST

START_TEST(root_link_is_followed_again)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct file_entry *entry;

    ck_assert_int_eq(mkdir(in_root("r1"), 0755) + mkdir(in_root("r2"), 0755), 0);
    tree_write_file("r1/version", "one");
    tree_write_file("r2/version", "two");
    ck_assert_int_eq(symlink("r1", in_root("current")), 0);
    entry = look_up_below(cache, in_root("current"), "version", SYMLINKS_BENEATH);
    ck_assert(str_equal(entry->content, STR("one")));
    file_entry_unref(entry);
    ck_assert_int_eq(symlink("r2", in_root("next")), 0);
    ck_assert_int_eq(rename(in_root("next"), in_root("current")), 0);
    loop.clock.monotonic_ms += 1000;
    entry = look_up_below(cache, in_root("current"), "version", SYMLINKS_BENEATH);
    ck_assert(str_equal(entry->content, STR("two")));
    file_entry_unref(entry);
    file_cache_destroy(cache);
}
END_TEST

/* Paths that cannot exist fail without a system call, and no entry is created. */
START_TEST(paths_that_cannot_exist)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct waiter waiter = {.lookup.found = was_found};
    char *longest = malloc(5000);
    struct file_entry *entry;
    bool pending;

    memset(longest, 'x', 5000);
    entry = file_cache_get(cache, &waiter.lookup, str_from(root), str_of("file\0x", 6), SYMLINKS_BENEATH, &pending);
    ck_assert_int_eq(entry->error, -ENOENT);
    ck_assert(!entry->linked);
    file_entry_unref(entry);
    entry = file_cache_get(cache, &waiter.lookup, str_from(root), str_of(longest, 5000), SYMLINKS_BENEATH, &pending);
    ck_assert_int_eq(entry->error, -ENAMETOOLONG);
    file_entry_unref(entry);
    longest[300] = '\0';
    entry = look_up(cache, longest);
    ck_assert_int_eq(entry->error, -ENAMETOOLONG);
    file_entry_unref(entry);
    file_cache_destroy(cache);
    free(longest);
}
END_TEST

/* Several lookups of one path share one open on a helper thread; one of them is cancelled. */
START_TEST(lookups_share_an_open)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct waiter waiters[3] = {
        {.lookup.found = was_found}, {.lookup.found = was_found}, {.lookup.found = was_found}};
    bool pending;

    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(file_cache_get(cache, &waiters[i].lookup, str_from(root), STR("link"), SYMLINKS_OWNER,
                                          &pending));
        ck_assert(pending);
    }
    file_lookup_cancel(&waiters[1].lookup);
    ck_assert_int_eq(waiters[1].runs, 0);
    while (waiters[2].runs == 0)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 100), 0);
    ck_assert_int_eq(waiters[0].runs + waiters[1].runs + waiters[2].runs, 3);
    ck_assert_ptr_null(waiters[1].entry);
    ck_assert_ptr_eq(waiters[0].entry, waiters[2].entry);
    ck_assert_int_eq(waiters[0].entry->error, 0);
    ck_assert_uint_eq(waiters[0].entry->references, 2);
    file_entry_unref(waiters[0].entry);
    file_entry_unref(waiters[2].entry);
    ck_assert_uint_eq(loop.in_flight, 0);
    file_cache_destroy(cache);
}
END_TEST

START_TEST(lookup_below_an_absent_root_fails)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct file_entry *entry = look_up_below(cache, "/nowhere", "file", SYMLINKS_BENEATH);

    ck_assert_int_eq(entry->error, -ENOENT);
    file_entry_unref(entry);
    file_cache_destroy(cache);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        entries_per_symlink_policy, changes_are_noticed, recently_modified_files_are_opened_again,
        root_link_is_followed_again, paths_that_cannot_exist, lookups_share_an_open, lookup_below_an_absent_root_fails,
    };

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(tcase, tests[i]);
}

int main(void)
{
    return run_suite("file_cache", add_tests);
}
