/*
 * The session caches of a configuration.
 */
#include "tls/session_stores.h"

#include <errno.h>

static struct session_cache *carry_over(const struct session_stores *before, const struct session_store *store)
{
    for (size_t i = 0; before && i < before->count; i++) {
        if (before->items[i]->cache && before->items[i]->size == store->size &&
            str_equal(before->items[i]->name, store->name))
            return session_cache_share(before->items[i]->cache);
    }
    return NULL;
}

int session_stores_open(struct session_stores *stores, const struct session_stores *before, struct log *log)
{
    for (size_t i = 0; i < stores->count; i++) {
        struct session_store *store = stores->items[i];

        store->cache = carry_over(before, store);
        if (!store->cache)
            store->cache = session_cache_create((size_t)store->size);
        if (!store->cache) {
            log_write(log, LOG_EMERG, "no memory for the cache \"" STR_FMT "\" of TLS sessions",
                      STR_ARG(store->name));
            return -ENOMEM;
        }
    }
    return 0;
}

void session_stores_watch(const struct session_stores *stores, struct log *log)
{
    for (size_t i = 0; i < stores->count; i++) {
        if (stores->items[i]->cache)
            session_cache_watch(stores->items[i]->cache, log, stores->items[i]->name);
    }
}

void session_stores_close(struct session_stores *stores)
{
    for (size_t i = 0; i < stores->count; i++) {
        session_cache_destroy(stores->items[i]->cache);
        stores->items[i]->cache = NULL;
    }
}
