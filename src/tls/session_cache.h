/*
 * TLS sessions that the server keeps, for clients without tickets, in memory that all workers see: found by their id, forgotten when they are too
 * old or the memory is full (then the oldest first), and wiped when they are forgotten. What a session is, is not known here.
 */
#ifndef TLS_SESSION_CACHE_H
#define TLS_SESSION_CACHE_H

#include "base/log.h"
#include "base/str.h"

#define SESSION_CACHE_LEAST (32 * 1024) /* bytes */
#define SESSION_ID_MOST     32

struct session_cache;

/* `size` bytes (at least SESSION_CACHE_LEAST), to be made before the workers are forked. NULL when out of memory. */
struct session_cache *session_cache_create(size_t size);
/* Another who destroys it; the last one does. Only the master asks. Returns it. */
struct session_cache *session_cache_share(struct session_cache *cache);
/* Accepts NULL. */
void session_cache_destroy(struct session_cache *cache);

/* Keeps a copy for `life_ms`. What is larger than an eighth of the cache, or than LIMIT_TLS_SESSION, is not kept. */
void session_cache_put(struct session_cache *cache, struct str id, struct str session, uint64_t now_ms, uint64_t life_ms);
/* Copies it to `into` (LIMIT_TLS_SESSION bytes), for the caller to wipe; its length, or 0: there is none. */
size_t session_cache_get(struct session_cache *cache, struct str id, uint64_t now_ms, char *into);
/* Forgets it where it is there. */
void session_cache_remove(struct session_cache *cache, struct str id);

/* A cache as the configuration names it. */
struct session_store {
    struct str name;
    uint64_t size;                  /* bytes */
    struct session_cache *cache;    /* NULL until session_stores_open */
};

struct session_stores {
    struct session_store **items;
    size_t count;
};

/* Makes every cache. 0, or -ENOMEM: said in the log. What `before` (NULL: there is none) has under the same name and size goes on. */
MUST_CHECK int session_stores_open(struct session_stores *stores, const struct session_stores *before, struct log *log);
/* Accepts what was not opened, or only in part. */
void session_stores_close(struct session_stores *stores);

#endif
