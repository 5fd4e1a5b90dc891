/*
 * The caches of the configuration (proxy_cache_path). The master opens the directory and the index of each before it
 * forks.
 */
#ifndef CACHE_CACHE_CONF_H
#define CACHE_CACHE_CONF_H

#include "base/log.h"
#include "cache/cache_file.h"
#include "conf/directive.h"

struct cache_conf {
    struct str name;
    struct str path;
    uint64_t zone_size;
    uint64_t max_size;                  /* bytes of all files; UINT64_MAX: unlimited */
    uint64_t min_free;                  /* bytes to keep free in the file system; 0: not checked */
    uint64_t inactive_ms;
    uint64_t files_at_once;             /* files per step of loading or deleting */
    uint64_t pause_ms;                  /* between two steps */
    uint64_t step_ms;                   /* longest duration of a step */
    unsigned index;
    struct cache_directory directory;   /* fd -1 until caches_open */
    struct cache_zone *zone;            /* NULL until caches_open */
};

struct caches {
    struct cache_conf **items;
    size_t count;
};

/* Reads a row of proxy_cache_path into a struct cache_conf *, which is also added to reader->caches. */
directive_row caches_read;
/* Returns the cache of that name, or NULL. */
const struct cache_conf *caches_find(const struct caches *caches, struct str name);

/*
 * Opens every directory (creating its last component if missing, owned by `user` and `group` unless they are -1) and
 * creates every index, or shares that of a cache in `before` (may be NULL) with the same path, levels and size. Returns
 * 0, or -errno after logging it.
 */
MUST_CHECK int caches_open(struct caches *caches, const struct caches *before, uid_t user, gid_t group,
                           struct log *log);
/* Closes directories and indexes. Accepts caches that are not open, or only in part. */
void caches_close(struct caches *caches);
/* Called by a worker when it starts: from now on it logs damage of the indexes to `log`. */
void caches_set_log(const struct caches *caches, struct log *log);
/* Called by the master when a worker has died: cache_zone_abandon for each cache. */
void caches_abandon(const struct caches *caches, unsigned worker);

#endif
