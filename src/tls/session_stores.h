/*
 * The named session caches of a configuration (`ssl_session_cache`), which survive a reload.
 */
#ifndef TLS_SESSION_STORES_H
#define TLS_SESSION_STORES_H

#include "tls/session_cache.h"

/* A named cache of the configuration. */
struct session_store {
    struct str name;
    uint64_t size;                  /* bytes */
    struct session_cache *cache;    /* NULL until session_stores_open */
};

struct session_stores {
    struct session_store **items;
    size_t count;
};

/*
 * Creates every cache. A cache of `before` (may be NULL) with the same name and size is carried over. 0, or -ENOMEM
 * (logged).
 */
MUST_CHECK int session_stores_open(struct session_stores *stores, const struct session_stores *before, struct log *log);
/* Called by a worker when it starts: from now on it logs damage of the caches to `log`. */
void session_stores_watch(const struct session_stores *stores, struct log *log);
/* Accepts stores that were not opened, or only in part. */
void session_stores_close(struct session_stores *stores);

#endif
