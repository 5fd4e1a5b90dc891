/*
 * The session caches of a configuration.
 */
#include "tls/session_caches.h"

#include <errno.h>

static struct session_cache *carry_over(const struct session_caches *before, const struct named_session_cache *named)
{
    for (size_t i = 0; before && i < before->count; i++) {
        if (before->items[i]->cache && before->items[i]->size == named->size &&
            str_equal(before->items[i]->name, named->name))
            return session_cache_share(before->items[i]->cache);
    }
    return NULL;
}

int session_caches_open(struct session_caches *caches, const struct session_caches *before, struct log *log)
{
    for (size_t i = 0; i < caches->count; i++) {
        struct named_session_cache *named = caches->items[i];

        named->cache = carry_over(before, named);
        if (!named->cache)
            named->cache = session_cache_create((size_t)named->size);
        if (!named->cache) {
            log_write(log, LOG_EMERG, "no memory for the cache \"" STR_FMT "\" of TLS sessions",
                      STR_ARG(named->name));
            return -ENOMEM;
        }
    }
    return 0;
}

void session_caches_set_log(const struct session_caches *caches, struct log *log)
{
    for (size_t i = 0; i < caches->count; i++) {
        if (caches->items[i]->cache)
            session_cache_set_log(caches->items[i]->cache, log, caches->items[i]->name);
    }
}

void session_caches_close(struct session_caches *caches)
{
    for (size_t i = 0; i < caches->count; i++) {
        session_cache_destroy(caches->items[i]->cache);
        caches->items[i]->cache = NULL;
    }
}
