/*
 * Caches as the configuration names them (proxy_cache_path), and what the master makes of them before it forks: a
 * folder and an index each.
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
    uint64_t max_size;              /* bytes of all files; UINT64_MAX: no limit */
    uint64_t min_free;              /* bytes that the file system keeps free; 0: it is not asked */
    uint64_t inactive_ms;
    uint64_t files_at_once;         /* that one step of loading or deleting touches */
    uint64_t pause_ms;              /* between two */
    uint64_t step_ms;               /* the longest that one takes */
    unsigned index;
    struct cache_folder folder;     /* fd -1 until caches_open */
    struct cache_zone *zone;        /* NULL until caches_open */
};

struct caches {
    struct cache_conf **items;
    size_t count;
};

/* A row of proxy_cache_path: a struct cache_conf *, which is also noted in reader->caches. */
directive_row caches_read;
/* NULL: there is none of that name. */
const struct cache_conf *caches_find(const struct caches *caches, struct str name);

/*
 * Opens every folder (made where only its last part is missing, and given to `user` and `group`, unless they are -1) and makes every index. 0, or
 * -errno: said in the log. A folder that `before` (NULL: there is none) has an index of this size for keeps it.
 */
MUST_CHECK int caches_open(struct caches *caches, const struct caches *before, uid_t user, gid_t group, struct log *log);
/* Accepts what caches_open has not opened, or only in part. */
void caches_close(struct caches *caches);
/* The worker has died. */
void caches_abandon(const struct caches *caches, unsigned worker);

#endif
