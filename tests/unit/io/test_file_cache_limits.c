/* What the cache of open files keeps: entries, contents, descriptors, errors. */
#include "file_cache_fixture.h"

#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

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

static void add_tests(TCase *tcase)
{
    const TTest *const tests[] = {
        entries_are_limited, content_is_cached_up_to_its_size_limit, disabled_cache_opens_each_time,
        cached_after_min_uses, entries_below_min_uses_are_limited, errors_are_not_cached, descriptors_run_out,
    };

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(tcase, tests[i]);
}

int main(void)
{
    return run_suite("file_cache_limits", add_tests);
}
