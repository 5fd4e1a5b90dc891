/*
 * A ring of entries, the oldest at its tail, with hash chains over the ids. Entries do not move: a new entry evicts
 * the oldest entries at its place. If a process dies while it holds the lock, the cache is emptied, and clients perform
 * full handshakes.
 *
 * A compromised process can write anything at any time. The layout therefore follows from the private size of the zone,
 * every position is limited to the ring when it is used, and inconsistent contents are removed.
 */
#include "tls/session_cache.h"

#include "base/limits.h"
#include "base/saturate.h"
#include "base/shared_zone.h"

#include <openssl/crypto.h>

enum { PER_CHAIN = 512 }; /* bytes of the ring per chain */

struct record {
    uint64_t next;                  /* position of the next entry of the chain plus 1; 0: none */
    uint64_t until_ms;
    uint32_t size;                  /* distance to the next entry */
    uint32_t length;                /* of the session; 0: removed or padding */
    uint32_t id_length;
    char id[SESSION_ID_MAX];
    char session[];
};

struct session_cache {
    struct shared_zone shared;
    uint64_t head, tail;            /* growing positions; a position modulo ring_size is the offset in the ring */
    uint64_t chains[];              /* the ring follows */
};

static size_t chain_count(const struct session_cache *cache)
{
    return (shared_zone_size(&cache->shared) - sizeof(*cache)) / (PER_CHAIN + sizeof(*cache->chains));
}

static uint64_t ring_size(const struct session_cache *cache)
{
    return chain_count(cache) * PER_CHAIN;
}

static char *ring_of(struct session_cache *cache)
{
    return (char *)(cache->chains + chain_count(cache));
}

/* A complete header in the ring, whatever the position. */
static struct record *record_at(struct session_cache *cache, uint64_t place)
{
    uint64_t size = ring_size(cache), offset = place % size / 8 * 8;

    if (size - offset < sizeof(struct record))
        offset = size - sizeof(struct record);
    return (struct record *)(void *)(ring_of(cache) + offset);
}

/* The bytes from a position to the end of the ring. */
static uint64_t bytes_to_end(const struct session_cache *cache, uint64_t place)
{
    uint64_t size = ring_size(cache);

    return size - place % size;
}

/* An unkeyed hash is sufficient: this server generates the ids at random, and a forged id matches no entry. */
static uint64_t *id_chain(struct session_cache *cache, struct str id)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < id.length; i++)
        hash = (hash ^ (unsigned char)id.data[i]) * 1099511628211u;
    return &cache->chains[hash % chain_count(cache)];
}

static struct str id_of(const struct record *record)
{
    uint32_t length = __atomic_load_n(&record->id_length, __ATOMIC_RELAXED);

    return str_of(record->id, length <= SESSION_ID_MAX ? length : 0);
}

static uint64_t bytes_after(struct session_cache *cache, const struct record *record)
{
    return bytes_to_end(cache, (uint64_t)((const char *)record - ring_of(cache)));
}

/* Other processes can write any length at any time: it is read once. 0 if the record cannot hold it. */
static size_t session_length(struct session_cache *cache, const struct record *record)
{
    size_t length = __atomic_load_n(&record->length, __ATOMIC_RELAXED);

    return length <= LIMIT_TLS_SESSION && sizeof(*record) + length <= bytes_after(cache, record) ? length : 0;
}

/* 0 if no record can have that size. */
static uint64_t record_size(struct session_cache *cache, const struct record *record)
{
    uint64_t size = __atomic_load_n(&record->size, __ATOMIC_RELAXED);

    return size >= sizeof(*record) && size % 8 == 0 && size <= bytes_after(cache, record) ? size : 0;
}

static void session_cache_clear(struct session_cache *cache)
{
    OPENSSL_cleanse(ring_of(cache), ring_size(cache));
    memset(cache->chains, 0, chain_count(cache) * sizeof(*cache->chains));
    cache->head = cache->tail = 0;
}

static void empty_damaged(struct session_cache *cache)
{
    shared_zone_log_damage(&cache->shared);
    session_cache_clear(cache);
}

static bool ends_are_valid(const struct session_cache *cache)
{
    return cache->head % 8 == 0 && cache->tail % 8 == 0 && cache->tail <= cache->head &&
           cache->head - cache->tail <= ring_size(cache);
}

static void lock_cache(struct session_cache *cache)
{
    if (shared_zone_lock(&cache->shared))
        session_cache_clear(cache);
    else if (!ends_are_valid(cache))
        empty_damaged(cache);
}

static void unlock_cache(struct session_cache *cache)
{
    shared_zone_unlock(&cache->shared);
}

struct session_cache *session_cache_create(size_t size)
{
    return size < SESSION_CACHE_MIN ? NULL : shared_zone_create(size);
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

/* The link to the entry in its chain, or NULL. A chain longer than all possible entries is a loop. */
static uint64_t *find_link(struct session_cache *cache, struct str id)
{
    uint64_t *link = id_chain(cache, id), most = ring_size(cache) / sizeof(struct record);

    for (uint64_t i = 0; i <= most; i++) {
        if (!*link)
            return NULL;
        if (str_equal(id_of(record_at(cache, *link - 1)), id))
            return link;
        link = &record_at(cache, *link - 1)->next;
    }
    empty_damaged(cache);
    return NULL;
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
        uint64_t *link = oldest->length ? find_link(cache, id_of(oldest)) : NULL;

        size = record_size(cache, oldest);
        if (size == 0 || (oldest->length && !link)) {
            empty_damaged(cache);
            return;
        }
        if (link)
            remove_record(cache, link);
    }
    cache->tail += size;
}

/* Evicts until `size` contiguous bytes are free, and returns their position. */
static uint64_t make_room(struct session_cache *cache, uint64_t size)
{
    uint64_t head, end, unused;

    for (;;) { /* eviction may empty the cache, which changes the head */
        head = __atomic_load_n(&cache->head, __ATOMIC_RELAXED);
        end = bytes_to_end(cache, head);
        unused = end < size ? end : 0;
        if (u64_sub_sat(head + unused + size, cache->tail) <= ring_size(cache))
            break;
        drop_oldest(cache);
    }
    if (unused >= sizeof(struct record))
        *record_at(cache, head) = (struct record){.size = (uint32_t)unused};
    return bytes_to_end(cache, head + unused) >= size ? head + unused : 0;
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
    uint64_t *chain, *before, place;
    struct record *record;

    if (id.length == 0 || id.length > SESSION_ID_MAX || session.length == 0 || session.length > LIMIT_TLS_SESSION ||
        size > ring_size(cache) / 8)
        return;
    lock_cache(cache);
    before = find_link(cache, id);
    if (before)
        remove_record(cache, before);
    drop_expired(cache, now_ms);
    place = make_room(cache, size);
    chain = id_chain(cache, id);
    record = record_at(cache, place);
    *record = (struct record){.next = *chain,
                              .until_ms = now_ms + lifetime_ms,
                              .size = (uint32_t)size,
                              .length = (uint32_t)session.length,
                              .id_length = (uint32_t)id.length};
    memcpy(record->id, id.data, id.length);
    memcpy(record->session, session.data, session.length);
    *chain = place + 1;
    cache->head = place + size;
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

void session_cache_set_log(struct session_cache *cache, struct log *log, struct str name)
{
    shared_zone_set_log(&cache->shared, log, "ssl_session_cache", name);
}
