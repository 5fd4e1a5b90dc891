/*
 * The keys that a limit delayed or rejected last: see limited_keys.h.
 */
#include "limit/limited_keys.h"

#include <stdlib.h>
#include <string.h>

/* Returns the row of the key, or an empty one, or that of the least recently limited key. */
static struct limited_key *select_row(struct limited_keys *keys, uint64_t hash)
{
    struct limited_key *selected = &keys->rows[0];

    for (size_t i = 0; i < LIMIT_LIMITED_KEYS; i++) {
        struct limited_key *row = &keys->rows[i];

        if (row->used && row->hash == hash)
            return row;
        if (row->used < selected->used)
            selected = row;
    }
    return selected;
}

void limited_keys_add(struct limited_keys *keys, struct str key, uint64_t hash, enum limit_action action, int64_t now_s)
{
    struct limited_key *row = select_row(keys, hash);

    if (!row->used || row->hash != hash) {
        size_t length = key.length < LIMIT_LIMITED_KEY ? key.length : LIMIT_LIMITED_KEY;

        *row = (struct limited_key){.hash = hash, .length = (uint32_t)length};
        memcpy(row->text, key.data, length);
    }
    row->counts[action]++;
    keys->counts[action]++;
    row->used = ++keys->used;
    row->last_s = now_s;
}

static int compare_use(const void *a, const void *b)
{
    uint64_t first = ((const struct limited_key *)a)->used;
    uint64_t second = ((const struct limited_key *)b)->used;

    return (first < second) - (first > second);
}

size_t limited_keys_copy(const struct limited_keys *keys, struct limited_key *out)
{
    size_t count = 0;

    for (size_t i = 0; i < LIMIT_LIMITED_KEYS; i++) {
        if (!keys->rows[i].used)
            continue;
        out[count] = keys->rows[i];
        if (out[count].length > LIMIT_LIMITED_KEY)
            out[count].length = LIMIT_LIMITED_KEY;
        count++;
    }
    qsort(out, count, sizeof(*out), compare_use);
    return count;
}
