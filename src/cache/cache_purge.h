/*
 * Removes stored responses by their keys: one key, or all keys with a prefix.
 */
#ifndef CACHE_CACHE_PURGE_H
#define CACHE_CACHE_PURGE_H

#include "cache/cache_store.h"

/* Appended to the key of a response: the keys of the metadata of its slices, and of an incomplete response. */
#define CACHE_KEY_SLICES  "\nslices"
#define CACHE_KEY_PARTIAL "\npartial"

/*
 * Removes what is stored under a key: the response (its variants are then unreachable), the metadata of its slices, and
 * an incomplete response. Fetches that began before do not store theirs. Returns the number of removed entries.
 */
unsigned cache_purge_key(struct cache_store *store, struct str key);

/* A purge by prefix. Embedded in its owner, which sets `ended`. */
struct cache_prefix_purge {
    /*
     * 0; or the purge is incomplete: -EMFILE, -ENFILE or -ENOMEM: a key could not be read; -EBUSY: too many tasks wait;
     * -ECANCELED: the worker ends.
     */
    void (*ended)(struct cache_prefix_purge *purge, int result);
    uint64_t removed;               /* number of removed entries so far */
    struct purge_task *task;        /* private; NULL: none in progress */
};

/*
 * Starts to remove all responses whose key begins with `prefix` (which is copied; empty: all), with variants and
 * slices. No fetch of this cache that began before stores its response, because the keys of fetches are not known here.
 * Helper threads read the keys from the files, in steps bounded as those of the cache manager. `ended` is called once,
 * never inside this call. Returns 0; -EAGAIN: the directory was not scanned completely since the start; or -ENOMEM.
 */
MUST_CHECK int cache_purge_prefix(struct cache_store *store, struct cache_prefix_purge *purge, struct str prefix);
/* Cancels `ended`; the purge stops after its current step. No effect if none is in progress. */
void cache_purge_cancel(struct cache_prefix_purge *purge);

#endif
