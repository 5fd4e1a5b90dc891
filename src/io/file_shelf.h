/*
 * The entries that are kept, by their keys: the most recently used ones, bounded in number and in the bytes
 * of their contents; absent files apart, so that asking for names that do not exist throws no file out.
 * Inside io only.
 */
#ifndef IO_FILE_SHELF_H
#define IO_FILE_SHELF_H

#include "io/file_open.h"

struct file_lru {
    struct list entries;
    unsigned count;
    unsigned max;
};

struct file_shelf {
    const struct loop *loop;        /* its clock */
    struct file_cache_limits limits;
    struct table table;
    struct file_lru files, errors;
    size_t content_bytes;
};

void file_shelf_init(struct file_shelf *shelf, const struct loop *loop, const struct file_cache_limits *limits);
/* Entries still referenced die with their last unref. */
void file_shelf_finish(struct file_shelf *shelf);

/* The entry, referenced for the caller, where it was looked at less than valid_ms ago; or NULL. */
struct file_entry *file_shelf_find(struct file_shelf *shelf, struct str key);
/*
 * What was opened becomes an entry, kept where it is worth it, or confirms the one there is. Takes over what is in `file`. Referenced for
 * the caller; NULL: out of memory.
 */
struct file_entry *file_shelf_adopt(struct file_shelf *shelf, struct str key, struct opened_file *file);
/* An entry that is never kept, of an error; referenced for the caller; NULL: out of memory. */
struct file_entry *file_entry_refused(const struct loop *loop, int error);

/* Gives up the files that were not used for the longest time. */
void file_shelf_evict(struct file_shelf *shelf, unsigned count);
/* A few of those that nobody asked for in inactive_ms; called on every miss, so that no timer is needed. */
void file_shelf_evict_inactive(struct file_shelf *shelf);

#endif
