/* Lookups in a cache of open files, in the directory of tree.h. */
#ifndef TEST_FILE_CACHE_FIXTURE_H
#define TEST_FILE_CACHE_FIXTURE_H

#include "fixture.h"
#include "tree.h"

#include "io/file_cache.h"

#include "../runner.h"

static struct loop loop;
static const struct file_cache_limits usual = {
    .enabled = true, .max_entries = 8, .max_content_bytes = 10000, .valid_ms = 1000, .inactive_ms = 20000};

struct waiter {
    struct file_lookup lookup;
    struct file_entry *entry;
    int runs;
};

static inline void was_found(struct file_lookup *lookup, struct file_entry *entry)
{
    struct waiter *waiter = container_of(lookup, struct waiter, lookup);

    waiter->entry = entry;
    waiter->runs++;
}

/* Returns the entry, whether the lookup completes at once or later. */
static inline struct file_entry *look_up_below(struct file_cache *cache, const char *top, const char *path,
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

static inline struct file_entry *look_up(struct file_cache *cache, const char *path)
{
    return look_up_below(cache, root, path, SYMLINKS_BENEATH);
}

static inline void set_up(void)
{
    make_root();
    ck_assert_int_eq(loop_open(&loop, "auto", NULL), 0);
}

static inline void tear_down(void)
{
    loop_close(&loop);
    remove_root();
}

#endif
