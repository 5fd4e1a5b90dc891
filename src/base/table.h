/*
 * A hash table from str to pointer: open addressing, and SipHash with a per-process key, so that an attacker cannot
 * choose keys that collide. Keys are not copied: the caller keeps them valid while they are in the table.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/str.h"

struct table_slot {
    struct str key;
    void *value;
    uint32_t hash;
};

struct table {
    struct table_slot *slots;
    size_t capacity;
    size_t count;
    size_t used;                    /* count and tombstones */
    bool nocase;                    /* keys compare and hash without regard to ASCII case */
};

/* Initialises an empty table, without allocating. */
void table_init(struct table *table, bool nocase);
/* Frees the slots; keys and values belong to the caller. Accepts a zeroed table. */
void table_finish(struct table *table);

/* The value or NULL. */
void *table_get(const struct table *table, struct str key);
/* Inserts or replaces; value is not NULL. 0 or -ENOMEM. */
MUST_CHECK int table_set(struct table *table, struct str key, void *value);
/* Removes the key and returns its value, or NULL. */
void *table_remove(struct table *table, struct str key);
/* Iterates over all slots: start with *cursor 0; NULL at the end. The slot just returned may be removed. */
struct table_slot *table_next(const struct table *table, size_t *cursor);

/* The keyed hash of the table, for other code that needs a hash which an attacker cannot predict. */
uint32_t table_hash(struct str key, bool nocase);
/*
 * The 64-bit keyed hash, for code that stores it instead of the key: equal in all processes of a server, different
 * after a restart.
 */
uint64_t table_hash_long(struct str key);

#endif
