/* The cache of open files: hits, changes on disk, limits, and shared lookups. */
#include "fixture.h"
#include "tree.h"

#include "base/limits.h"
#include "io/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct loop loop;
static const struct file_cache_limits usual = {
    .enabled = true, .max_entries = 8, .max_content_bytes = 10000, .valid_ms = 1000, .inactive_ms = 20000};

/* Sets the file's times into the past, so that every later change alters them. */
static void backdate_file(const char *name)
{
    struct timespec past[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};

    ck_assert_int_eq(utimensat(AT_FDCWD, in_root(name), past, 0), 0);
}

struct waiter {
    struct file_lookup lookup;
    struct file_entry *entry;
    int runs;
};

static void was_found(struct file_lookup *lookup, struct file_entry *entry)
{
    struct waiter *waiter = container_of(lookup, struct waiter, lookup);

    waiter->entry = entry;
    waiter->runs++;
}

/* Returns the entry, whether the lookup completes at once or later. */
static struct file_entry *look_up_below(struct file_cache *cache, const char *top, const char *path,
                                        enum symlinks symlinks)
{
    struct waiter waiter = {.lookup.found = was_found};
    bool pending;
    struct file_entry *entry;

    entry = file_cache_get(cache, &waiter.lookup, str_from(top), str_from(path), symlinks, &pending);

    if (!pending) {
        ck_assert_ptr_nonnull(entry);
        return entry;
    }
    ck_assert_int_eq(waiter.runs, 0);
    while (waiter.runs == 0)
        ck_assert_int_ge(loop_run_iteration(&loop, loop.clock.monotonic_ms + 100), 0);
    ck_assert_ptr_nonnull(waiter.entry);
    return waiter.entry;
}

static struct file_entry *look_up(struct file_cache *cache, const char *path)
{
    return look_up_below(cache, root, path, SYMLINKS_BENEATH);
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

START_TEST(entries_are_limited)
{
    struct file_cache *cache = file_cache_create(&loop, &usual);
    struct file_entry *stored = look_up(cache, "dir/inner");
    struct file_entry *large;
    char text[6001];
    char name[16];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        tree_write_file(name, i == 19 ? text : "small");
        file_entry_unref(look_up(cache, name));
        snprintf(name, sizeof(name), "absent%d", i);
        file_entry_unref(look_up(cache, name));
    }
    ck_assert(!stored->linked); /* evicted while in use, and still complete */
    ck_assert(str_equal(stored->content, STR("inner")));
    file_entry_unref(stored);
    tree_write_file("big", text);
    large = look_up(cache, "big");
    ck_assert_ptr_nonnull(large->content.data);
    file_entry_unref(large);
    stored = look_up(cache, "f18");
    ck_assert_ptr_nonnull(stored->content.data);
    file_entry_unref(stored);
    file_cache_destroy(cache);
}
END_TEST

START_TEST(content_is_cached_up_to_its_size_limit)
{
    struct file_cache_limits limits = usual;
    struct file_cache *cache;
    char *text = malloc(LIMIT_FILE_CACHE_CONTENT + 2);
    struct file_entry *entry;

    limits.max_content_bytes = 1 << 20;
    cache = file_cache_create(&loop, &limits);
    memset(text, 'x', LIMIT_FILE_CACHE_CONTENT + 1);
    text[LIMIT_FILE_CACHE_CONTENT + 1] = '\0';
    tree_write_file("over", text);
    tree_write_file("exact", text + 1);
    entry = look_up(cache, "over");
    ck_assert_ptr_null(entry->content.data);
    file_entry_unref(entry);
    entry = look_up(cache, "exact");
    ck_assert_uint_eq(entry->content.length, LIMIT_FILE_CACHE_CONTENT);
    file_entry_unref(entry);
    entry = look_up(cache, "empty");
    ck_assert_int_eq(entry->error, 0);
    ck_assert_ptr_null(entry->content.data);
    file_entry_unref(entry);
    file_cache_destroy(cache);
    free(text);
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

START_TEST(disabled_cache_opens_each_time)
{
    struct file_cache_limits limits = usual;
    struct file_cache *cache;
    struct file_entry *first;
    struct file_entry *second;

    limits.enabled = false;
    cache = file_cache_create(&loop, &limits);
    first = look_up(cache, "file");
    tree_write_file("file", "other");
    second = look_up(cache, "file");
    ck_assert_ptr_ne(first, second);
    ck_assert(str_equal(second->content, STR("other")));
    file_entry_unref(first);
    file_entry_unref(second);
    file_cache_destroy(cache);
}
END_TEST

/*
 * open_file_cache_min_uses: a file is opened for each request until it has enough uses; the count starts again after an
 * idle period.
 */
START_TEST(cached_after_min_uses)
{
    struct file_cache_counters counters = {0};
    struct file_cache_limits limits = usual;
    struct file_cache *cache;

    limits.min_uses = 3;
    cache = file_cache_create(&loop, &limits);
    file_cache_set_counters(cache, &counters);
    for (int rest = 0; rest < 2; rest++) {
        counters = (struct file_cache_counters){0};
        for (unsigned use = 1; use <= 4; use++) {
            struct file_entry *entry = look_up(cache, "file");

            ck_assert_int_ge(entry->fd, 0);
            ck_assert(str_equal(entry->content, STR("hello")));
            ck_assert_int_eq(entry->linked, use >= 3);
            file_entry_unref(entry);
        }
        ck_assert_uint_eq(counters.misses, 3);
        ck_assert_uint_eq(counters.hits, 1);
        file_entry_unref(look_up(cache, "dir")); /* a directory and an error occupy no descriptor */
        file_entry_unref(look_up(cache, "dir"));
        file_entry_unref(look_up(cache, "absent"));
        file_entry_unref(look_up(cache, "absent"));
        ck_assert_uint_eq(counters.misses, 5);
        ck_assert_uint_eq(counters.hits, 3);
        loop.clock.monotonic_ms += limits.inactive_ms + 1;
        for (int i = 0; i < 4; i++)
            file_entry_unref(look_up(cache, "absent too"));
        loop.clock.monotonic_ms += limits.inactive_ms + 1;
        file_entry_unref(look_up(cache, "absent too"));
    }
    file_cache_destroy(cache);
}
END_TEST

/* Entries below min_uses count towards the limit of entries. */
START_TEST(entries_below_min_uses_are_limited)
{
    struct file_cache_limits limits = usual;
    struct file_cache *cache;
    char name[16];

    limits.min_uses = 2;
    cache = file_cache_create(&loop, &limits);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        tree_write_file(name, "small");
        file_entry_unref(look_up(cache, name));
    }
    for (int i = 0; i < 20; i++) {
        struct file_entry *entry;

        snprintf(name, sizeof(name), "f%d", 19 - i);
        entry = look_up(cache, name);
        ck_assert_int_eq(entry->linked, i < (int)limits.max_entries);
        file_entry_unref(entry);
        if (i == (int)limits.max_entries - 1)
            break;
    }
    tree_write_file("f0", "other");
    file_entry_unref(look_up(cache, "f0")); /* was evicted: its count starts again, and another file is evicted */
    file_cache_destroy(cache);
}
END_TEST

/* open_file_cache_errors off: each request looks an absent file up, and finds it as soon as it exists. */
START_TEST(errors_are_not_cached)
{
    struct file_cache_limits limits = usual;
    struct file_cache *cache;
    struct file_entry *entry;

    limits.skip_errors = true;
    cache = file_cache_create(&loop, &limits);
    entry = look_up(cache, "new");
    ck_assert_int_eq(entry->error, -ENOENT);
    ck_assert(!entry->linked);
    file_entry_unref(entry);
    tree_write_file("new", "here");
    entry = look_up(cache, "new");
    ck_assert_int_eq(entry->error, 0);
    ck_assert(entry->linked);
    file_entry_unref(entry);
    file_cache_destroy(cache);
}
END_TEST

/* When descriptors run out, older entries are closed. */
START_TEST(descriptors_run_out)
{
    struct file_cache_limits limits = usual;
    struct rlimit all;
    struct rlimit few;
    struct file_cache *cache;
    char name[16];

    limits.max_entries = 100;
    getrlimit(RLIMIT_NOFILE, &all);
    cache = file_cache_create(&loop, &limits);
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        tree_write_file(name, "x");
    }
    few = all;
    few.rlim_cur = 40;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int i = 0; i < 60; i++) {
        struct file_entry *entry;

        snprintf(name, sizeof(name), "f%d", i);
        entry = look_up(cache, name);
        ck_assert_int_eq(entry->error, 0);
        file_entry_unref(entry);
    }
    setrlimit(RLIMIT_NOFILE, &all);
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

static void set_up(void)
{
    make_root();
    ck_assert_int_eq(loop_open(&loop, "auto", NULL), 0);
}

static void tear_down(void)
{
    loop_close(&loop);
    remove_root();
}

int main(void)
{
    const TTest *const tests[] = {
        entries_per_symlink_policy, changes_are_noticed, recently_modified_files_are_opened_again,
        root_link_is_followed_again, entries_are_limited, content_is_cached_up_to_its_size_limit,
        paths_that_cannot_exist, lookups_share_an_open, disabled_cache_opens_each_time, cached_after_min_uses,
        entries_below_min_uses_are_limited, errors_are_not_cached, descriptors_run_out,
        lookup_below_an_absent_root_fails,
    };
    Suite *suite = suite_create("file_cache");
    TCase *group = tcase_create("file_cache");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(group, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(group, tests[i]);
    suite_add_tcase(suite, group);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
