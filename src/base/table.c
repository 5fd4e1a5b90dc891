/*
 * Linear probing over a power of two, at most three quarters full. Removals leave tombstones, which a rebuild
 * clears. The hash is SipHash-1-3 with a key that is generated once per process, before main.
 */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>

#define CAPACITY_MIN 8

/* Generated before main and constant afterwards: workers inherit it, and threads may read it. */
static uint64_t hash_key[2];

__attribute__((constructor)) static void hash_key_generate(void)
{
    const void *random_bytes;

    if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) == (ssize_t)sizeof(hash_key))
        return;
    random_bytes = (const void *)getauxval(AT_RANDOM);
    if (random_bytes)
        memcpy(hash_key, random_bytes, sizeof(hash_key));
}

struct siphash {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static inline void siphash_round(struct siphash *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static inline void siphash_compress(struct siphash *s, uint64_t word)
{
    s->v3 ^= word;
    siphash_round(s);
    s->v0 ^= word;
}

/* Lowers the ASCII letters among eight bytes at once: bit 7 of `upper` marks the bytes within 'A'..'Z'. */
static inline uint64_t lower_word(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t low = word & (0x7f * ones);
    uint64_t from_a = low + (0x80 - 'A') * ones;
    uint64_t past_z = low + (0x80 - 'Z' - 1) * ones;
    uint64_t upper = (from_a ^ past_z) & ~word & (0x80 * ones);

    return word | (upper >> 2);
}

static uint64_t siphash_digest(struct str key, bool nocase)
{
    struct siphash s = {hash_key[0] ^ 0x736f6d6570736575u, hash_key[1] ^ 0x646f72616e646f6du,
                    hash_key[0] ^ 0x6c7967656e657261u, hash_key[1] ^ 0x7465646279746573u};
    size_t whole = key.length & ~(size_t)7;
    uint64_t word;

    for (size_t at = 0; at < whole; at += 8) {
        memcpy(&word, key.data + at, 8);
        siphash_compress(&s, nocase ? lower_word(word) : word);
    }
    word = 0;
    if (key.length > whole)
        memcpy(&word, key.data + whole, key.length - whole);
    word = nocase ? lower_word(word) : word;
    siphash_compress(&s, word | (uint64_t)key.length << 56);
    s.v2 ^= 0xff;
    siphash_round(&s);
    siphash_round(&s);
    siphash_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint32_t table_hash(struct str key, bool nocase)
{
    return (uint32_t)siphash_digest(key, nocase);
}

void table_init(struct table *table, bool nocase)
{
    *table = (struct table){.nocase = nocase};
}

void table_finish(struct table *table)
{
    free(table->slots);
    table_init(table, table->nocase);
}

uint64_t table_hash_long(struct str key)
{
    return siphash_digest(key, false);
}

/* A slot is empty (value and key.data NULL), a tombstone (value NULL, key.data set) or live. */
static bool slot_empty(const struct table_slot *slot)
{
    return !slot->value && !slot->key.data;
}

static const char tombstone[] = "";

static bool slot_matches(const struct table *table, const struct table_slot *slot, struct str key, uint32_t hash)
{
    if (!slot->value || slot->hash != hash)
        return false;
    return table->nocase ? str_equal_nocase(slot->key, key) : str_equal(slot->key, key);
}

static struct table_slot *slot_find(const struct table *table, struct str key, uint32_t hash)
{
    size_t mask = table->capacity - 1;

    if (table->capacity == 0)
        return NULL;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct table_slot *slot = &table->slots[at];

        if (slot_matches(table, slot, key, hash))
            return slot;
        if (slot_empty(slot))
            return NULL;
    }
}

static void slot_place(struct table_slot *slots, size_t capacity, struct table_slot slot)
{
    size_t mask = capacity - 1;
    size_t at = slot.hash & mask;

    while (slots[at].value)
        at = (at + 1) & mask;
    slots[at] = slot;
}

/* Makes room for one more entry and clears tombstones; the capacity grows only for live entries. */
static int table_rebuild(struct table *table)
{
    size_t capacity = CAPACITY_MIN;
    struct table_slot *slots;

    while (capacity / 2 <= table->count) {
        if (__builtin_mul_overflow(capacity, 2u, &capacity))
            return -ENOMEM;
    }
    slots = calloc(capacity, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].value)
            slot_place(slots, capacity, table->slots[i]);
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    table->used = table->count;
    return 0;
}

void *table_get(const struct table *table, struct str key)
{
    struct table_slot *slot = slot_find(table, key, table_hash(key, table->nocase));

    return slot ? slot->value : NULL;
}

int table_set(struct table *table, struct str key, void *value)
{
    uint32_t hash = table_hash(key, table->nocase);
    struct table_slot *slot = slot_find(table, key, hash);
    size_t at;

    if (!key.data)
        key.data = tombstone;
    if (slot) {
        slot->key = key;
        slot->value = value;
        return 0;
    }
    if (table->used + 1 > table->capacity / 4 * 3) {
        int error = table_rebuild(table);

        if (error < 0)
            return error;
    }
    at = hash & (table->capacity - 1);
    while (table->slots[at].value)
        at = (at + 1) & (table->capacity - 1);
    if (slot_empty(&table->slots[at]))
        table->used++;
    table->slots[at] = (struct table_slot){key, value, hash};
    table->count++;
    return 0;
}

void *table_remove(struct table *table, struct str key)
{
    struct table_slot *slot = slot_find(table, key, table_hash(key, table->nocase));
    void *value;

    if (!slot)
        return NULL;
    value = slot->value;
    *slot = (struct table_slot){.key = {tombstone, 0}};
    table->count--;
    return value;
}

struct table_slot *table_next(const struct table *table, size_t *cursor)
{
    while (*cursor < table->capacity) {
        struct table_slot *slot = &table->slots[(*cursor)++];

        if (slot->value)
            return slot;
    }
    return NULL;
}
