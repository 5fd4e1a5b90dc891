/*
 * A hash table from str to pointer, open addressing, keyed hash (SipHash-like
 * mixing with a per-process seed), so that hostile keys cannot make it slow.
 * Keys are not copied: whoever inserts keeps them alive.
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
    bool nocase;                    /* keys compare and hash without ASCII case */
};

/* The empty table takes no memory. */
void table_init(struct table *table, bool nocase);
void table_finish(struct table *table);

/* The value or NULL. */
void *table_get(const struct table *table, struct str key);
/* Inserts or replaces; value is not NULL. 0 or -ENOMEM. */
MUST_CHECK int table_set(struct table *table, struct str key, void *value);
/* Takes the key out and returns its value, or NULL. */
void *table_remove(struct table *table, struct str key);
/* Walks all slots: start with *cursor 0; NULL at the end. Removing the slot just returned is allowed. */
struct table_slot *table_next(const struct table *table, size_t *cursor);

/* The hash that the table uses, for others who need one that an attacker cannot predict. */
uint32_t table_hash(struct str key, bool nocase);
/* The whole of it, for who keeps no key but this: the same in all processes of a server, and another after its next start. */
uint64_t table_hash_long(struct str key);

#endif
