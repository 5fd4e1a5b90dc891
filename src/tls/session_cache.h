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
#define SESSION_ID_MAX    32

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
 * Stores a copy for `lifetime_ms`. Sessions larger than an eighth of the cache or than LIMIT_TLS_SESSION are not
 * stored.
 */
void session_cache_insert(struct session_cache *cache, struct str id, struct str session, uint64_t now_ms,
                          uint64_t lifetime_ms);
/*
 * Copies a session to `into` (LIMIT_TLS_SESSION bytes), to be wiped by the caller. Returns its length, or 0 if there
 * is none.
 */
size_t session_cache_get(struct session_cache *cache, struct str id, uint64_t now_ms, char *into);
/* Removes a session, if present. */
void session_cache_remove(struct session_cache *cache, struct str id);
/* From now on this process logs damage of the cache (shared_zone_set_log). */
void session_cache_set_log(struct session_cache *cache, struct log *log, struct str name);

#endif
