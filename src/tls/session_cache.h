/*
 * The server-side TLS session cache, for clients without tickets, in memory shared by all workers. Sessions are
 * found by id, expire, and are evicted oldest first when the memory is full; removal wipes them. The cache does not
 * interpret their content.
 */
#ifndef TLS_SESSION_CACHE_H
#define TLS_SESSION_CACHE_H

#include "base/log.h"
#include "base/str.h"

#define SESSION_CACHE_MIN (32 * 1024) /* bytes */
#define SESSION_ID_MAX      32

struct session_cache;

/*
 * Creates a cache of `size` bytes (at least SESSION_CACHE_MIN), before the workers are forked. NULL when out of
 * memory.
 */
struct session_cache *session_cache_create(size_t size);
/* Adds an owner; the last one destroys the cache. Called by the master only. Returns `cache`. */
struct session_cache *session_cache_share(struct session_cache *cache);
/* Accepts NULL. */
void session_cache_destroy(struct session_cache *cache);

/*
 * Stores a copy for `lifetime_ms`. Sessions larger than an eighth of the cache or than LIMIT_TLS_SESSION are not stored.
 */
void session_cache_insert(struct session_cache *cache, struct str id, struct str session, uint64_t now_ms, uint64_t lifetime_ms);
/*
 * Copies a session to `into` (LIMIT_TLS_SESSION bytes), to be wiped by the caller. Returns its length, or 0 if there
 * is none.
 */
size_t session_cache_get(struct session_cache *cache, struct str id, uint64_t now_ms, char *into);
/* Removes a session, if present. */
void session_cache_remove(struct session_cache *cache, struct str id);

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
