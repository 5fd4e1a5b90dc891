/*
 * A cache as one worker uses it: entries that are open, answers that are being stored, and the waiting for those that
 * somebody else fetches. What touches a disk is done by helper threads; what is stored, all workers share.
 */
#ifndef CACHE_CACHE_STORE_H
#define CACHE_CACHE_STORE_H

#include "base/list.h"
#include "cache/cache_conf.h"
#include "io/loop.h"

struct cache_store;

/* NULL when out of memory. `conf` has been opened, and outlives the store. */
struct cache_store *cache_store_create(struct loop *loop, struct log *log, const struct cache_conf *conf, unsigned worker);
/* Nothing is asked for any more; operations in flight end soon. Accepts NULL. */
void cache_store_stop(struct cache_store *store);
/* Nothing is in flight. Accepts NULL. */
void cache_store_destroy(struct cache_store *store);

/* A stored answer, open. Never changes while somebody refers to it. */
struct cache_entry {
    struct cache_store *store;
    struct list link;               /* least recently used first; in none once it is not the newest of its key */
    unsigned references;            /* the store's own not counted */
    bool linked;                      /* found by its key */
    struct str key, head;
    int fd;                         /* the body from byte 0 on; never polled. -1 where `content` has it whole */
    uint64_t body_length;
    struct str content;             /* the body where it is small, else data NULL */
    unsigned updates;               /* heads that were noted after the first */
    struct cache_id id;
    struct cache_view view;
    struct cache_opened opened;     /* owns what the above point into */
    void *parsed;                     /* of whoever reads heads: made once, freed by free() */
};

struct cache_entry *cache_entry_ref(struct cache_entry *entry);
/* Accepts NULL. */
void cache_entry_unref(struct cache_entry *entry);

/* Looking for a key; embedded in its owner, who sets `found`. */
struct cache_lookup {
    void (*found)(struct cache_lookup *lookup, struct cache_entry *entry); /* referenced; NULL: nothing is stored */
    struct cache_hash hash;         /* of the key, where nothing was found, and by cache_store_hash */
    unsigned uses;                  /* how often the key was asked for, this time counted, where nothing was found */
    struct open_task *task;        /* the store's */
};

/*
 * The entry of a key, referenced. NULL with *out_pending: `found` follows, once, never inside this call. NULL without: nothing is stored
 * (or no memory for it).
 */
struct cache_entry *cache_store_get(struct cache_store *store, struct cache_lookup *lookup, struct str key, bool *out_pending);
/* `found` does not follow any more. No effect where nothing is pending. */
void cache_lookup_cancel(struct cache_lookup *lookup);

/* Forgets what is stored under a key, and what is being fetched for it. False: nothing was stored. */
bool cache_store_remove(struct cache_store *store, struct str key);
/* Forgets this version of it. */
void cache_store_remove_entry(struct cache_store *store, const struct cache_entry *entry);
/* Notes another head of an entry, for all who look for it from some time on; then `fill_lock` (0: none), of `locked`, is given back. */
void cache_store_update(struct cache_store *store, const struct cache_entry *entry, struct str head, const struct cache_hash *locked,
                        uint64_t fill_lock);

/* An answer that is being stored (cache_fill.c). */
struct cache_fill {
    void (*room)(void *owner);  /* cache_fill_must_wait was true, and is not any more; the owner's, NULL: nobody waits */
    void (*ended)(struct cache_fill *fill); /* once: it is stored and others find it, or it was given up; freed after that. The owner's; may be NULL */
    void *owner;
    struct cache_store *store;      /* from here on: its own */
    struct op op;
    struct str key;
    struct cache_making making;
    struct buffer filling, writing;
    struct buffer head;
    uint64_t size;
    uint64_t fill_lock;                 /* of the lock that ends with it; 0: none */
    struct cache_origin origin;     /* what is locked: not always its own hash */
    bool in_flight, must_wait;
    bool ending;                    /* no more is added */
    bool last;                      /* what is being written is the last of it */
    int error;
};

/*
 * Begins to store under a key. It ends by cache_fill_end or cache_fill_discard, which take it over. `fill_lock` (of cache_store_fill_lock for the origin's
 * hash; 0: none) is given back when that is done; `ended` may be called inside both. What was purged since its origin is not stored. NULL: out of memory, and it stays the caller's.
 */
struct cache_fill *cache_fill_begin(struct cache_store *store, struct str key, const struct cache_origin *origin, uint64_t fill_lock);
/* More of the body. What cannot be kept is given up; the answer itself does not suffer. */
void cache_fill_add(struct cache_fill *fill, struct str bytes);
/* True where the disk is slower than who adds: to add more can wait for `room`, which follows. */
bool cache_fill_must_wait(struct cache_fill *fill);
/* The body is whole: it is stored, with this head. */
void cache_fill_end(struct cache_fill *fill, struct str head);
/* It is not stored. Accepts NULL. */
void cache_fill_discard(struct cache_fill *fill);

/* The key's hash. */
void cache_store_hash(struct str key, struct cache_hash *out);
/* The right to fetch what a hash stands for, for so long at most; 0: somebody has it. */
uint64_t cache_store_fill_lock(struct cache_store *store, const struct cache_hash *hash, uint64_t most_ms);
/* Gives it back, and wakes who waits. Token 0 does nothing. */
void cache_store_fill_unlock(struct cache_store *store, const struct cache_hash *hash, uint64_t fill_lock);

/* Waiting for somebody else's fetch. Embedded in its owner. */
struct cache_waiter {
    struct list link;
    struct cache_hash hash;
    uint64_t until_ms;              /* on the loop's monotonic clock */
    void (*woken)(struct cache_waiter *waiter, bool late); /* nobody fetches it any more; or it is late */
};
void cache_store_wait(struct cache_store *store, struct cache_waiter *waiter);
/* Accepts one that waits for nothing, and a zeroed one. */
void cache_waiter_cancel(struct cache_waiter *waiter);

const struct cache_conf *cache_store_conf(const struct cache_store *store);

#endif
