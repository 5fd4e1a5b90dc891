/*
 * The entries of the file cache by key: the most recently used, limited in number and in bytes of contents. Errors have
 * a list of their own, so that requests for absent names evict no file. Private to io/.
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
void file_cache_lru_init(struct file_cache_lru *cached, const struct loop *loop,
                         const struct file_cache_limits *limits);
/* Entries still referenced are freed by their last unref. */
void file_cache_lru_finish(struct file_cache_lru *cached);

/* Returns the entry, referenced for the caller, if it was validated less than valid_ms ago; else NULL. */
struct file_entry *file_cache_lru_find(struct file_cache_lru *cached, struct str key);
/*
 * Makes an entry of an opened file, caches it if allowed, or confirms the existing entry. Takes ownership of `file`.
 * Referenced for the caller; NULL: out of memory.
 */
struct file_entry *file_cache_lru_insert(struct file_cache_lru *cached, struct str key, struct opened_file *file);
/* Creates an uncached entry for an error, referenced for the caller. NULL: out of memory. */
struct file_entry *file_entry_of_error(const struct loop *loop, int error);

/* Evicts `count` least recently used files. */
void file_cache_lru_evict(struct file_cache_lru *cached, unsigned count);
/* Evicts a few entries unused for inactive_ms. Called on every miss instead of by a timer. */
void file_cache_lru_evict_inactive(struct file_cache_lru *cached);

#endif
