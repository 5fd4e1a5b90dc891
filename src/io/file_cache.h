/*
 * Open files, beneath a root: descriptors, stat, and the contents of small
 * files, per worker. Absent and refused files are remembered too. An entry is
 * looked at again after `valid_ms`. Paths are opened by openat2(RESOLVE_NO_MAGICLINKS and, but for
 * SYMLINKS_ANYWHERE, RESOLVE_BENEATH), or by a walk component by component with O_NOFOLLOW where that is
 * missing; never by a plain open. A path that itself has a ".." is opened beneath the root in any case.
 */
#ifndef IO_FILE_CACHE_H
#define IO_FILE_CACHE_H

#include "base/arena.h"
#include "base/table.h"
#include "io/loop.h"
#include "io/roots.h"

#include <sys/stat.h>

enum symlinks {                     /* `disable_symlinks`; magic links of /proc are never followed */
    SYMLINKS_BENEATH,               /* beneath: relative links that stay below the root */
    SYMLINKS_ANYWHERE,              /* off: any link, absolute ones too */
    SYMLINKS_OWNER,                 /* if_not_owner: any link whose owner owns what it leads to */
    SYMLINKS_NONE,                  /* on: no link in any component */
};

struct file_cache_limits {
    bool enabled;
    unsigned max_entries;
    size_t max_content_bytes;       /* of all contents together */
    uint64_t valid_ms;              /* open_file_cache_valid */
    uint64_t inactive_ms;           /* what nobody asked for so long goes, and with it the count of its uses */
    unsigned min_uses;              /* open_file_cache_min_uses: a file asked for less often is opened each time; 0 as 1 */
    bool forget_errors;             /* open_file_cache_errors: off */
};

struct file_entry {                 /* never changes while somebody refers to it: what changed on disk is a new entry */
    struct list link;               /* least recently used last */
    struct str key;                 /* root, NUL, path, NUL, policy */
    unsigned references;            /* the cache's own not counted */
    int error;                      /* 0, or -ENOENT, -EACCES, -ELOOP (a link was refused), -EXDEV (left the root), -ENOTDIR, ... */
    int fd;                         /* -1 for directories and errors; O_RDONLY; never polled, closed by the entry */
    struct stat stat;
    struct str content;             /* the whole file where it is small, else data NULL */
    uint64_t checked_ms;
    uint64_t used_ms;
    unsigned uses;                  /* while it was in the table */
    bool linked;                    /* still in the table: false once replaced or evicted while in use */
    bool counted;                   /* only its uses are kept: of a file that was not asked for often enough */
    unsigned char digest[16];       /* of what it contains, for whoever has digested it (not io) */
    bool digested;
    bool settled;                   /* so long unchanged when it was read that its times would tell a change */
};

struct file_cache_counters {
    uint64_t hits;                  /* lookups answered without a look at the file system */
    uint64_t misses;                /* those that opened the file, or waited for one that did */
};

struct file_cache;

/* Creates a cache on `loop`; NULL when out of memory. */
struct file_cache *file_cache_create(struct loop *loop, const struct file_cache_limits *limits);
/* Roots that were opened while we had the rights: used where opening one by its name is denied. Not owned, outlive the cache. */
void file_cache_grant(struct file_cache *cache, const struct roots *roots);
/* Those roots, or NULL. */
const struct roots *file_cache_granted(const struct file_cache *cache);
/* Lookups are counted there from now on; not owned, outlives the cache. */
void file_cache_count(struct file_cache *cache, struct file_cache_counters *counters);
/* No lookup may be in flight. Entries still referenced die with their last unref. */
void file_cache_destroy(struct file_cache *cache);

/* One lookup, embedded in its owner, who sets `found`. */
struct file_lookup {
    void (*found)(struct file_lookup *lookup, struct file_entry *entry); /* entry referenced for the caller; NULL: cancelled or out of memory */
    struct list waiting;            /* lookups of the same path share one open */
    bool cancelled;
};

/*
 * The entry of `path` (relative, no leading slash, "" is the root itself) beneath `root`. Returns it at once, referenced, when the cache holds it
 * fresh or the kernel can open it without waiting; otherwise NULL with *out_pending true, and `lookup->found` is called
 * later, once, never inside this call. NULL with *out_pending false: out of memory. Only regular files and
 * directories are ever given: others are -EACCES. Where the cache is off, every call opens anew.
 */
struct file_entry *file_cache_get(struct file_cache *cache, struct file_lookup *lookup, struct str root, struct str path,
                                  enum symlinks symlinks, bool *out_pending);
/* Asks for an end of a pending lookup: `found` is still called once, later, with NULL. */
void file_lookup_cancel(struct file_lookup *lookup);

struct file_entry *file_entry_ref(struct file_entry *entry);
/* Accepts NULL. Closes the descriptor with the last reference of an unlinked entry. */
void file_entry_unref(struct file_entry *entry);

#endif
