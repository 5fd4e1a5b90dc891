/*
 * Lists stored responses: pages of the index, with the key and the metadata of each file.
 */
#ifndef CACHE_CACHE_LIST_H
#define CACHE_CACHE_LIST_H

#include "cache/cache_store.h"
#include "cache/stored_metadata.h"

/* One file. */
struct cache_listed {
    struct str key;                 /* with the suffix of slices, variants and incomplete responses */
    uint64_t body_length;
    uint32_t idle_s;                /* seconds since its last use */
    bool has_metadata;              /* false: its head is malformed */
    struct stored_metadata metadata;
};

/* A page. Embedded in its owner, which sets the first members. */
struct cache_page {
    /*
     * `result` 0: the entries, which are valid during this call; -EMFILE, -ENFILE or -ENOMEM: a file could not be read;
     * -EBUSY: too many tasks wait; or -ECANCELED: the worker ends.
     */
    void (*ended)(struct cache_page *page, int result);
    size_t max;                     /* number of entries, at least 1 */
    size_t max_text;                /* bytes of all keys after which the page ends */
    /*
     * Position in the index: 0, or that of the page before; set to that of the next page, which may be empty, or to 0:
     * there is none.
     */
    uint32_t cursor;
    const struct cache_listed *entries;
    size_t count;
    struct list_task *task;         /* private; NULL: none in progress */
};

/*
 * Starts to list the files whose key begins with `prefix` (which is copied; empty: all), in the order of the index.
 * Files that are stored or removed during the listing may be absent, and so are damaged files. Helper threads read the
 * files, in steps bounded as those of the cache manager. `ended` is called once, never inside this call. Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int cache_list(struct cache_store *store, struct cache_page *page, struct str prefix);
/* Cancels `ended`; the listing stops after its current step. No effect if none is in progress. */
void cache_list_cancel(struct cache_page *page);

#endif
