/*
 * The entries of the file cache: a table by key, and LRU lists limited in number and in bytes of contents. Errors have
 * a separate list, so that requests for absent names evict no file. Private to io/.
 */
#ifndef IO_FILE_CACHE_LRU_H
#define IO_FILE_CACHE_LRU_H

#include "io/file_open.h"

struct file_lru {
    struct list entries;
    unsigned count;
    unsigned max;
};

struct file_cache_lru {
    const struct loop *loop;        /* for its clock */
    struct file_cache_limits limits;
    struct table table;
    struct file_lru files, errors;
    size_t content_bytes;
};

/* `loop` outlives the entries; `limits` is copied. */
void file_cache_lru_init(struct file_cache_lru *cache, const struct loop *loop,
                         const struct file_cache_limits *limits);
/* Entries still referenced are freed by their last unref. */
void file_cache_lru_finish(struct file_cache_lru *cache);

/* Returns the entry, referenced for the caller, if it was validated less than valid_ms ago; else NULL. */
struct file_entry *file_cache_lru_find(struct file_cache_lru *cache, struct str key);
/*
 * Revalidates the existing entry if the file is unchanged. Otherwise creates an entry for `file` and caches it if the
 * limits allow it. Takes ownership of `file`. Returns the entry, referenced for the caller; NULL: out of memory.
 */
struct file_entry *file_cache_lru_insert(struct file_cache_lru *cache, struct str key, struct opened_file *file);
/* Creates an uncached entry for an error, referenced for the caller. NULL: out of memory. */
struct file_entry *file_entry_of_error(const struct loop *loop, int error);

/* Evicts `count` least recently used files. */
void file_cache_lru_evict(struct file_cache_lru *cache, unsigned count);
/* Evicts a few entries unused for inactive_ms. Called on every miss, so that no timer is needed. */
void file_cache_lru_evict_inactive(struct file_cache_lru *cache);

#endif
