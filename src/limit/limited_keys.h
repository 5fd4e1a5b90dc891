/*
 * The keys that a limit delayed or rejected last, with counts: a small table in the shared memory of a zone. The lock
 * of the zone protects it.
 */
#ifndef LIMIT_LIMITED_KEYS_H
#define LIMIT_LIMITED_KEYS_H

#include "base/limits.h"
#include "base/str.h"

/* In a dry run, what would have happened. */
enum limit_action { LIMIT_DELAYED, LIMIT_REJECTED, LIMIT_ACTIONS };

struct limited_key {
    uint64_t hash;                  /* of the complete key */
    uint64_t counts[LIMIT_ACTIONS];
    uint64_t used;                  /* larger: limited later; 0: the row is empty */
    int64_t last_s;                 /* wall clock */
    uint32_t length;                /* of `text` */
    char text[LIMIT_LIMITED_KEY];   /* the key, or its beginning */
};

struct limited_keys {
    uint64_t counts[LIMIT_ACTIONS]; /* of all keys since the start */
    uint64_t used;                  /* the highest of the rows */
    struct limited_key rows[LIMIT_LIMITED_KEYS];
};

/* Counts one request of the key. If the table is full, the least recently limited key is removed. */
void limited_keys_add(struct limited_keys *keys, struct str key, uint64_t hash, enum limit_action action,
                      int64_t now_s);
/*
 * Copies the rows in use to `out` (LIMIT_LIMITED_KEYS), the last limited key first. Returns their number. Every
 * `length` is valid, also if a worker has overwritten the table.
 */
size_t limited_keys_copy(const struct limited_keys *keys, struct limited_key *out);

#endif
