/*
 * State shared by the files of a worker's cache: cache_store.c (entries), cache_fill.c (storing), cache_update.c
 * (another head), cache_fill_lock.c (waiting), cache_delete.c (removal), cache_manager.c (loading, and the limits).
 * Private to these files.
 */
#ifndef CACHE_CACHE_STORE_PRIVATE_H
#define CACHE_CACHE_STORE_PRIVATE_H

#include "base/table.h"
#include "cache/cache_store.h"

#include <errno.h>

struct cache_manager;

struct cache_store {
    struct loop *loop;
    struct log *log;
    const struct cache_conf *conf;
    unsigned worker;
    bool stopping;
    struct table entries;           /* open entries: the newest version of each key */
    struct list used;               /* the same, least recently used first */
    unsigned entry_count;
    uint64_t fill_locks;            /* number of locks acquired */
    struct list waiters;
    struct op wait_timer;           /* runs while a request waits for the fill of another worker */
    struct cache_manager *cache_manager;
    struct log_limit failures;      /* to store, in the log */
};

static inline uint32_t cache_now_s(const struct cache_store *store)
{
    return (uint32_t)(store->loop->clock.monotonic_ms / 1000);
}

/* True if descriptors or memory ran out, so that the contents of a file are not known. */
static inline bool cache_is_exhausted(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* cache_delete.c */

/* Deletes files that were removed from the index, on a helper thread. */
void cache_store_delete(struct cache_store *store, const struct cache_victims *victims);

/* cache_fill_lock.c */

void cache_fill_lock_init(struct cache_store *store);

/*
 * cache_manager.c: creates the manager, which scans the directory and deletes files beyond the limits. NULL when out
 * of memory.
 */
struct cache_manager *cache_manager_create(struct cache_store *store);
/* The disk is full: deletes some files regardless of the limits. */
void cache_manager_shrink(struct cache_manager *cache_manager);
void cache_manager_stop(struct cache_manager *cache_manager);
void cache_manager_destroy(struct cache_manager *cache_manager);

#endif
