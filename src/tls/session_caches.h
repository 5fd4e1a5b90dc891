/*
 * The named session caches of a configuration (`ssl_session_cache`), which survive a reload.
 */
#ifndef TLS_SESSION_CACHES_H
#define TLS_SESSION_CACHES_H

#include "tls/session_cache.h"

struct named_session_cache {
    struct str name;
    uint64_t size;                  /* bytes */
    struct session_cache *cache;    /* NULL until session_caches_open */
};

struct session_caches {
    struct named_session_cache **items;
    size_t count;
};

/*
 * Creates every cache. A cache of `before` (may be NULL) with the same name and size is carried over. 0, or -ENOMEM
 * (logged).
 */
MUST_CHECK int session_caches_open(struct session_caches *caches, const struct session_caches *before, struct log *log);
/* Called by a worker when it starts: from now on it logs damage of the caches to `log`. */
void session_caches_set_log(const struct session_caches *caches, struct log *log);
/* Accepts caches that were not opened, or only in part. */
void session_caches_close(struct session_caches *caches);

#endif
