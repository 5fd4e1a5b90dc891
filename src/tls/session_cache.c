/*
 * A ring of entries, the oldest at its tail, with hash chains over the ids. Entries do not move: a new entry evicts
 * the oldest entries at its place. If a process dies while it holds the lock, the cache is emptied, and clients perform
 * full handshakes.
 */
#include "tls/session_cache.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "base/shared_zone.h"

#include <errno.h>
#include <openssl/crypto.h>

enum { PER_CHAIN = 512 }; /* bytes of the ring per chain */

struct record {
    uint64_t next; /* position of the next entry of the chain plus 1; 0: none */
    uint64_t until_ms;
    uint32_t size;   /* distance to the next entry */
    uint32_t length; /* of the session; 0: removed or padding */
    uint32_t id_length;
    char id[SESSION_ID_MAX];
    char session[];
};

struct session_cache {
    struct shared_zone shared;
    uint64_t head, tail; /* growing positions; a position modulo `room` is the offset in the ring */
    uint64_t room;
    size_t chain_count;
    uint64_t *chains; /* both point into this mapping, which has the same address in all workers */
    char *ring;
};

static struct record *record_at(struct session_cache *cache, uint64_t place)
{
    return (struct record *)(void *)(cache->ring + place % cache->room);
}

/* The bytes from a position to the end of the ring. */
static uint64_t bytes_to_end(const struct session_cache *cache, uint64_t place)
{
    return cache->room - place % cache->room;
}

/* An unkeyed hash is sufficient: this server generates the ids at random, and a forged id matches no entry. */
static uint64_t *id_chain(struct session_cache *cache, struct str id)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < id.length; i++)
        hash = (hash ^ (unsigned char)id.data[i]) * 1099511628211u;
    return &cache->chains[hash % cache->chain_count];
}

static struct str id_of(const struct record *record)
{
    return str_of(record->id, record->id_length);
}

/* Other processes can write any length at any time: it is read once. 0 if the record cannot hold it. */
static size_t session_length(const struct session_cache *cache, const struct record *record)
{
    size_t length = __atomic_load_n(&record->length, __ATOMIC_RELAXED);
    uint64_t end = bytes_to_end(cache, (uint64_t)((const char *)record - cache->ring));

    return length <= LIMIT_TLS_SESSION && sizeof(*record) + length <= end ? length : 0;
}

static void session_cache_clear(struct session_cache *cache)
{
    OPENSSL_cleanse(cache->ring, cache->room);
    memset(cache->chains, 0, cache->chain_count * sizeof(*cache->chains));
    cache->head = cache->tail = 0;
}

static void lock_cache(struct session_cache *cache)
{
    if (shared_zone_lock(&cache->shared))
        session_cache_clear(cache);
}

static void unlock_cache(struct session_cache *cache)
{
    shared_zone_unlock(&cache->shared);
}

struct session_cache *session_cache_create(size_t size)
{
    struct session_cache *cache = size < SESSION_CACHE_MIN ? NULL : shared_zone_create(size);

    if (!cache)
        return NULL;
    cache->chain_count = (size - sizeof(*cache)) / (PER_CHAIN + sizeof(*cache->chains));
    cache->room = cache->chain_count * PER_CHAIN;
    cache->chains = (uint64_t *)(void *)(cache + 1);
    cache->ring = (char *)(cache->chains + cache->chain_count);
    return cache;
}

struct session_cache *session_cache_share(struct session_cache *cache)
{
    shared_zone_share(&cache->shared);
    return cache;
}

void session_cache_destroy(struct session_cache *cache)
{
    if (!cache)
        return;
    if (!shared_zone_is_shared(&cache->shared)) /* by the private size: other processes may write the struct */
        OPENSSL_cleanse((char *)cache + sizeof(cache->shared),
                        shared_zone_size(&cache->shared) - sizeof(cache->shared));
    shared_zone_destroy(&cache->shared);
}

/* The link to the entry in its chain, or NULL. */
static uint64_t *find_link(struct session_cache *cache, struct str id)
{
    uint64_t *link = id_chain(cache, id);

    while (*link && !str_equal(id_of(record_at(cache, *link - 1)), id))
        link = &record_at(cache, *link - 1)->next;
    return *link ? link : NULL;
}

static void remove_record(struct session_cache *cache, uint64_t *link)
{
    struct record *record = record_at(cache, *link - 1);

    *link = record->next;
    OPENSSL_cleanse(record->session, session_length(cache, record));
    record->length = 0;
}

/* A gap at the end of the ring that is too small for an entry is skipped. */
static void drop_oldest(struct session_cache *cache)
{
    struct record *oldest = record_at(cache, cache->tail);
    uint64_t size = bytes_to_end(cache, cache->tail);

    if (size >= sizeof(*oldest)) {
        size = oldest->size;
        if (oldest->length)
            remove_record(cache, find_link(cache, id_of(oldest)));
    }
    cache->tail += size;
}

/* Evicts until `size` contiguous bytes are free. */
static void make_room(struct session_cache *cache, uint64_t size)
{
    uint64_t end = bytes_to_end(cache, cache->head), unused = end < size ? end : 0;

    while (u64_sub_sat(cache->head + unused + size, cache->tail) > cache->room)
        drop_oldest(cache);
    if (unused >= sizeof(struct record))
        *record_at(cache, cache->head) = (struct record){.size = (uint32_t)unused};
    cache->head += unused;
}

/* Most sessions have the same lifetime: expired ones are the oldest. */
static void drop_expired(struct session_cache *cache, uint64_t now_ms)
{
    while (cache->tail < cache->head &&
           (bytes_to_end(cache, cache->tail) < sizeof(struct record) || record_at(cache, cache->tail)->length == 0 ||
            record_at(cache, cache->tail)->until_ms <= now_ms))
        drop_oldest(cache);
}

void session_cache_insert(struct session_cache *cache, struct str id, struct str session, uint64_t now_ms,
                          uint64_t lifetime_ms)
{
    uint64_t size = (sizeof(struct record) + session.length + 7) / 8 * 8;
    uint64_t *chain, *before;
    struct record *record;

    if (id.length == 0 || id.length > SESSION_ID_MAX || session.length == 0 || session.length > LIMIT_TLS_SESSION ||
        size > cache->room / 8)
        return;
    lock_cache(cache);
    before = find_link(cache, id);
    if (before)
        remove_record(cache, before);
    drop_expired(cache, now_ms);
    make_room(cache, size);
    chain = id_chain(cache, id);
    record = record_at(cache, cache->head);
    *record = (struct record){.next = *chain,
                              .until_ms = now_ms + lifetime_ms,
                              .size = (uint32_t)size,
                              .length = (uint32_t)session.length,
                              .id_length = (uint32_t)id.length};
    memcpy(record->id, id.data, id.length);
    memcpy(record->session, session.data, session.length);
    *chain = cache->head + 1;
    cache->head += size;
    unlock_cache(cache);
}

size_t session_cache_get(struct session_cache *cache, struct str id, uint64_t now_ms, char *into)
{
    uint64_t *link;
    size_t length = 0;

    lock_cache(cache);
    link = find_link(cache, id);
    if (link && record_at(cache, *link - 1)->until_ms <= now_ms) {
        remove_record(cache, link);
    } else if (link) {
        const struct record *record = record_at(cache, *link - 1);

        length = session_length(cache, record);
        memcpy(into, record->session, length);
    }
    unlock_cache(cache);
    return length;
}

void session_cache_remove(struct session_cache *cache, struct str id)
{
    uint64_t *link;

    lock_cache(cache);
    link = find_link(cache, id);
    if (link)
        remove_record(cache, link);
    unlock_cache(cache);
}

static struct session_cache *share_cache(const struct session_stores *before, const struct session_store *store)
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

        store->cache = share_cache(before, store);
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

void session_stores_close(struct session_stores *stores)
{
    for (size_t i = 0; i < stores->count; i++) {
        session_cache_destroy(stores->items[i]->cache);
        stores->items[i]->cache = NULL;
    }
}
