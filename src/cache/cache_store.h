/*
 * The cache in one worker: open entries, responses being stored, and waits for fills by other requests. Helper threads
 * access the disk; all workers share the stored responses.
 */
#ifndef CACHE_CACHE_STORE_H
#define CACHE_CACHE_STORE_H

#include "base/list.h"
#include "cache/cache_conf.h"
#include "io/loop.h"

struct cache_store;

/* Creates a store. `conf` is open and outlives it. `worker` is the slot of the worker. NULL when out of memory. */
struct cache_store *cache_store_create(struct loop *loop, struct log *log, const struct cache_conf *conf,
                                       unsigned worker);
/* Stops the store, which must not be used afterwards. Operations in flight end soon. Accepts NULL. */
void cache_store_stop(struct cache_store *store);
/* Frees the store; no operation may be in flight. Accepts NULL. */
void cache_store_destroy(struct cache_store *store);

/* An open stored response. Immutable while it is referenced. */
struct cache_entry {
    struct cache_store *store;
    struct list link;               /* least recently used first; in no list if a newer version exists */
    unsigned references;            /* not counting the store's own */
    bool linked;                    /* in the table by its key */
    struct str key, head;
    int fd;                         /* the body from offset 0; never polled. -1 if `content` has all of it */
    uint64_t body_length;
    struct str content;             /* a small body, else data NULL */
    unsigned updates;               /* number of updates of the head */
    struct cache_id id;
    struct cache_view view;
    struct cache_opened opened;     /* owns the memory that the above point into */
    void *parsed;                   /* parsed form of the head, set once by its reader, freed by free() */
};

/* Adds a reference, and returns the entry. */
struct cache_entry *cache_entry_ref(struct cache_entry *entry);
/* Accepts NULL. */
void cache_entry_unref(struct cache_entry *entry);

/* A lookup of a key; embedded in its owner, which sets `found`. */
struct cache_lookup {
    /* `entry` is referenced. NULL: not stored, or the file cannot be read. */
    void (*found)(struct cache_lookup *lookup, struct cache_entry *entry);
    /* After a miss of cache_store_get: the hash of the key, and the number of requests for it, including this one. */
    struct cache_hash hash;
    unsigned uses;
    struct open_task *task;         /* private to the store */
};

/*
 * Looks up the entry of a key and returns it, referenced. NULL with *out_pending: `found` is called later, once,
 * never inside this call. NULL without: not stored, or out of memory.
 */
struct cache_entry *cache_store_get(struct cache_store *store, struct cache_lookup *lookup, struct str key,
                                    bool *out_pending);
/* As cache_store_get, for a key that is rarely stored: a miss is not counted, and adds no node to the index. */
struct cache_entry *cache_store_peek(struct cache_store *store, struct cache_lookup *lookup, struct str key,
                                     bool *out_pending);
/* Cancels `found`. No effect if nothing is pending. */
void cache_lookup_cancel(struct cache_lookup *lookup);

/*
 * Removes the response stored under a key, and prevents fills in progress from storing theirs. Returns false if
 * nothing was stored.
 */
bool cache_store_remove(struct cache_store *store, struct str key);
/*
 * Removes the response stored under a key; fills in progress may still store theirs. Returns false if nothing was
 * stored.
 */
bool cache_store_discard(struct cache_store *store, struct str key);
/* Removes this version of an entry. */
void cache_store_remove_entry(struct cache_store *store, const struct cache_entry *entry);

/* The write of another head of an entry; embedded in its owner, which sets `ended`. */
struct cache_head_update {
    /* Called when the head is written, or writing has failed. */
    void (*ended)(struct cache_head_update *head_update);
    struct cache_update_task *task; /* NULL: none in progress; private otherwise */
};

/*
 * Stores another head of an entry, seen by lookups once it is written; then releases `fill_lock` (0: none) of `locked`.
 * `ended` of `head_update` (NULL: none) is called afterwards, never inside this call; not at all if its `task` is NULL
 * on return: out of memory.
 */
void cache_store_update(struct cache_store *store, const struct cache_entry *entry, struct str head,
                        const struct cache_hash *locked, uint64_t fill_lock, struct cache_head_update *head_update);
/* Cancels `ended`. No effect if nothing is in progress. */
void cache_head_update_cancel(struct cache_head_update *head_update);

/* Bytes of a stored body that are copied into another body (cache_fill.c). */
struct cache_splice {
    struct cache_entry *entry;      /* referenced; NULL: none */
    uint64_t at, left;              /* offset and count of the bytes still to be copied */
};

/* A response being stored (cache_fill.c). */
struct cache_fill {
    /* Called when cache_fill_must_wait is no longer true; may end the fill. Set by the owner, may be NULL. */
    void (*writable)(void *owner);
    void (*ended)(struct cache_fill *fill); /* called once, before the fill is freed; set by the owner, may be NULL */
    void *owner;
    struct cache_store *store;              /* from here on private */
    struct op op;
    struct str key;
    struct cache_writer writer;
    /* Hash of `key`; until completion, writer.id has the hash of the key given to cache_fill_begin. */
    struct cache_hash key_hash;
    struct cache_splice before, after;      /* copied before and after the added bytes */
    struct buffer filling, writing;
    struct buffer head;
    uint64_t size;
    uint64_t fill_lock;                     /* lock released at the end; 0: none */
    struct cache_origin origin;             /* the locked hash: may differ from its own */
    bool in_flight, must_wait;
    bool ending;                            /* no more bytes will be added */
    bool last;                              /* the write in progress is the last one */
    int error;
};

/*
 * Starts to store a response under a key. cache_fill_end, cache_fill_end_as and cache_fill_discard take ownership of
 * the fill. `fill_lock` (of cache_store_fill_lock for the origin's hash; 0: none) is released when the response is
 * stored or discarded; `ended` may be called inside these functions. A response whose origin was purged meanwhile is
 * not stored. Returns NULL when out of memory; then the caller still holds the lock.
 */
struct cache_fill *cache_fill_begin(struct cache_store *store, struct str key, const struct cache_origin *origin,
                                    uint64_t fill_lock);
/*
 * Makes the body begin (prepend) or end (append) with `length` bytes of another entry's body from `at` on. References
 * the entry until they are copied by helper threads. At most one call of each, before the first cache_fill_add.
 */
void cache_fill_prepend(struct cache_fill *fill, struct cache_entry *entry, uint64_t at, uint64_t length);
void cache_fill_append(struct cache_fill *fill, struct cache_entry *entry, uint64_t at, uint64_t length);
/* Adds bytes of the body. If they cannot be stored, nothing of the response is stored; sending it is not affected. */
void cache_fill_add(struct cache_fill *fill, struct str bytes);
/* Returns true if LIMIT_CACHE_QUEUED bytes wait for the disk: the owner may pause adding until `writable` is called. */
bool cache_fill_must_wait(struct cache_fill *fill);
/* The body is complete: stores it with this head. */
void cache_fill_end(struct cache_fill *fill, struct str head);
/* As cache_fill_end, under another key than the one given to cache_fill_begin. */
void cache_fill_end_as(struct cache_fill *fill, struct str key, struct str head);
/* Discards the fill. Accepts NULL. */
void cache_fill_discard(struct cache_fill *fill);

/* Acquires the fill lock of a hash for at most `max_ms`; 0: another request holds it. */
uint64_t cache_store_fill_lock(struct cache_store *store, const struct cache_hash *hash, uint64_t max_ms);
/* Releases it and wakes the waiters. Lock 0 has no effect. */
void cache_store_fill_unlock(struct cache_store *store, const struct cache_hash *hash, uint64_t fill_lock);

/* A wait for another request's fill. Embedded in its owner. */
struct cache_waiter {
    struct list link;
    struct cache_hash hash;
    uint64_t until_ms;              /* on the loop's monotonic clock */
    /* The lock is free, or the wait timed out (`late`). */
    void (*woken)(struct cache_waiter *waiter, bool late);
};
/*
 * Waits for the fill lock of waiter->hash; the caller has set the members after `link`. `woken` is called once, by a
 * timer or when a request of this worker releases the lock, never inside this call.
 */
void cache_store_wait(struct cache_store *store, struct cache_waiter *waiter);
/* Cancels the wait. Accepts one that is not waiting, and a zeroed one. */
void cache_waiter_cancel(struct cache_waiter *waiter);

/* The configuration of the store's cache. */
const struct cache_conf *cache_store_conf(const struct cache_store *store);

#endif
