/*
 * Open files beneath a root: descriptors, stat, and the contents of small files, per worker. The errors of missing and
 * rejected files are cached, too. An entry is revalidated after `valid_ms`.
 *
 * A path is opened by openat2(2) with RESOLVE_NO_MAGICLINKS and, except for SYMLINKS_ANYWHERE, with RESOLVE_BENEATH.
 * For SYMLINKS_OWNER, and where openat2 is missing, its components are opened one by one with O_NOFOLLOW. A path that
 * contains ".." is always opened beneath the root.
 */
#ifndef IO_FILE_CACHE_H
#define IO_FILE_CACHE_H

#include "base/arena.h"
#include "base/table.h"
#include "io/loop.h"
#include "io/root_directory.h"

#include <sys/stat.h>

enum symlinks {                     /* `disable_symlinks`; magic links of /proc are never followed */
    SYMLINKS_BENEATH,               /* beneath: relative links that stay below the root */
    SYMLINKS_ANYWHERE,              /* off: any link, absolute ones too */
    SYMLINKS_OWNER,                 /* if_not_owner: a link whose owner also owns its target */
    SYMLINKS_NONE,                  /* on: no link in any component */
};

struct file_cache_limits {
    bool enabled;
    unsigned max_entries;
    size_t max_content_bytes;       /* of all contents */
    uint64_t valid_ms;              /* open_file_cache_valid */
    uint64_t inactive_ms;           /* an entry unused for this long is removed, with its count of uses */
    unsigned min_uses;              /* open_file_cache_min_uses: requests before a file is cached; 0 means 1 */
    bool skip_errors;               /* open_file_cache_errors: off */
};

/* A changed file gets a new entry: error, fd, stat and content of an entry do not change. */
struct file_entry {
    struct list link;               /* least recently used last */
    struct str key;                 /* root, NUL, path, NUL, policy */
    unsigned references;            /* without the cache's own reference */
    /* 0, or -ENOENT, -EACCES, -ELOOP (link rejected), -EXDEV (outside the root), -ENOTDIR, ... */
    int error;
    int fd;                         /* O_RDONLY, -1 for directories and errors; not polled; closed with the entry */
    struct stat stat;
    struct str content;             /* the contents of a small file, else data NULL */
    uint64_t checked_ms;
    uint64_t used_ms;
    unsigned uses;                  /* counted while in the table */
    bool linked;                    /* in the table; false once replaced or evicted while referenced */
    bool counted;                   /* the entry only counts the uses of a file that is not cached yet */
    unsigned char digest[16];       /* digest of the contents, filled by the user of the entry */
    bool digested;
    bool unchanging;                /* file_is_unchanging: a later change would alter the timestamps */
};

struct file_cache_counters {
    uint64_t hits;                  /* lookups answered without a system call */
    uint64_t misses;                /* lookups that opened the file, or waited for one that did */
};

struct file_cache;

/* Creates a cache on `loop`; NULL when out of memory. */
struct file_cache *file_cache_create(struct loop *loop, const struct file_cache_limits *limits);
/*
 * Sets the root directories opened before privileges were dropped; used where opening a root by name is denied. Not
 * owned; must outlive the cache.
 */
void file_cache_set_roots(struct file_cache *cache, const struct root_directories *roots);
/* Returns those root directories, or NULL. */
const struct root_directories *file_cache_roots(const struct file_cache *cache);
/* Sets the counters for lookups. Not owned; must outlive the cache. */
void file_cache_set_counters(struct file_cache *cache, struct file_cache_counters *counters);
/* No lookup may be in flight. Entries still referenced are freed by their last unref. Accepts NULL. */
void file_cache_destroy(struct file_cache *cache);

/* One lookup, embedded in its owner, which sets `found`. */
struct file_lookup {
    /* `entry` is referenced for the caller; NULL: cancelled or out of memory. */
    void (*found)(struct file_lookup *lookup, struct file_entry *entry);
    struct list waiting;            /* the lookups that share one open of the same path */
    bool cancelled;
};

/*
 * Looks up `path` (relative, without leading slash; "" is the root) beneath `root`. Returns the entry, referenced, if
 * the cache has a valid one or the kernel opens it without waiting; otherwise NULL with *out_pending true, and
 * `lookup->found` is called once, later, never inside this call. NULL with *out_pending false: out of memory. File
 * types other than regular files and directories get an entry with -EACCES. With the cache off, every call opens the
 * file.
 */
struct file_entry *file_cache_get(struct file_cache *cache, struct file_lookup *lookup, struct str root,
                                  struct str path, enum symlinks symlinks, bool *out_pending);
/* Cancels a pending lookup: `found` is still called once, later, with NULL. */
void file_lookup_cancel(struct file_lookup *lookup);

/* Adds a reference, and returns the entry. */
struct file_entry *file_entry_ref(struct file_entry *entry);
/* Removes a reference. Without references, an entry that is not in the cache is freed. Accepts NULL. */
void file_entry_unref(struct file_entry *entry);

#endif
