/*
 * A hash table with chains over a fixed array of entries, and an LRU list. The entries alone are authoritative:
 * chains and list can be rebuilt from them. Counts of a key are kept in one entry per worker.
 *
 * A compromised process can write anything at any time. The layout therefore follows from the private size of the zone,
 * every number is limited to the table when it is used, and a table that contradicts itself is emptied.
 */
#include "limit/limit_zone.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/shared_zone.h"

#include <string.h>

#define NO_ENTRY 0u /* entries are numbered from 1 */

/* Numbers of entries are volatile: a number is read once for its check and its use. */
struct zone_entry {
    uint64_t key;
    uint64_t level;    /* drops in the bucket; or the count of the worker */
    uint64_t last_ms;  /* time of that level */
    volatile uint32_t next; /* next in its chain, or in the free list */
    volatile uint32_t newer, older;
    uint32_t worker;
    uint32_t known;    /* in use: written last, cleared first */
};

struct limit_zone {
    struct shared_zone shared; /* shared by generations */
    uint32_t damaged;  /* the table contradicts itself: it is emptied by the next lock_zone */
    uint32_t used;     /* entries in use */
    volatile uint32_t unused; /* the free list */
    volatile uint32_t newest, oldest;
    struct limited_keys limited;
    struct zone_entry entries[]; /* the first one stands in for numbers that no entry has; the chains follow */
};

/* The number of entries after the first one, and of chains. */
static uint32_t entry_count(const struct limit_zone *zone)
{
    const size_t each = sizeof(struct zone_entry) + sizeof(uint32_t);

    return (uint32_t)((shared_zone_size(&zone->shared) - sizeof(*zone) - sizeof(struct zone_entry)) / each);
}

static struct zone_entry *entry_at(struct limit_zone *zone, uint32_t number)
{
    if (number == NO_ENTRY || number > entry_count(zone)) {
        zone->damaged = 1;
        number = 0;
    }
    return &zone->entries[number];
}

static volatile uint32_t *chains_of(struct limit_zone *zone)
{
    return (volatile uint32_t *)(void *)(zone->entries + entry_count(zone) + 1);
}

static volatile uint32_t *key_chain(struct limit_zone *zone, uint64_t key)
{
    return &chains_of(zone)[key % entry_count(zone)];
}

static void link_as_newest(struct limit_zone *zone, uint32_t number)
{
    struct zone_entry *entry = entry_at(zone, number);

    entry->newer = NO_ENTRY;
    entry->older = zone->newest;
    *(zone->newest ? &entry_at(zone, zone->newest)->newer : &zone->oldest) = number;
    zone->newest = number;
}

static void unlink_use(struct limit_zone *zone, const struct zone_entry *entry)
{
    *(entry->newer ? &entry_at(zone, entry->newer)->older : &zone->newest) = entry->older;
    *(entry->older ? &entry_at(zone, entry->older)->newer : &zone->oldest) = entry->newer;
}

static void link_in_chain(struct limit_zone *zone, uint32_t number)
{
    volatile uint32_t *chain = key_chain(zone, entry_at(zone, number)->key);

    entry_at(zone, number)->next = *chain;
    *chain = number;
}

/* Rebuilds chains and list: a process that died holding the lock may have left them inconsistent. */
static void rebuild_zone(struct limit_zone *zone)
{
    uint32_t count = entry_count(zone);

    for (uint32_t i = 0; i < count; i++)
        chains_of(zone)[i] = NO_ENTRY;
    zone->newest = zone->oldest = zone->unused = NO_ENTRY;
    zone->used = 0;
    for (uint32_t number = count; number >= 1; number--) {
        if (entry_at(zone, number)->known) {
            link_in_chain(zone, number);
            link_as_newest(zone, number);
            zone->used++;
        } else {
            entry_at(zone, number)->next = zone->unused;
            zone->unused = number;
        }
    }
}

static void empty_zone(struct limit_zone *zone)
{
    memset(zone->entries, 0, ((size_t)entry_count(zone) + 1) * sizeof(*zone->entries));
    zone->limited = (struct limited_keys){0};
    zone->damaged = 0;
    rebuild_zone(zone);
}

/* The entry after `number` in a chain of which `steps` entries have been seen. A loop or a foreign number ends it. */
static uint32_t next_in_chain(struct limit_zone *zone, uint32_t number, uint32_t *steps)
{
    if (++*steps <= LIMIT_ZONE_CHAIN)
        return entry_at(zone, number)->next;
    zone->damaged = 1;
    return NO_ENTRY;
}

/* The link to an entry in its chain; NULL if the chain does not contain it. */
static volatile uint32_t *find_link(struct limit_zone *zone, uint32_t number)
{
    volatile uint32_t *link = key_chain(zone, entry_at(zone, number)->key);

    for (uint32_t steps = 0; steps <= LIMIT_ZONE_CHAIN; steps++) {
        uint32_t linked = *link;

        if (linked == number)
            return link;
        if (linked == NO_ENTRY)
            break;
        link = &entry_at(zone, linked)->next;
    }
    zone->damaged = 1;
    return NULL;
}

static void remove_entry(struct limit_zone *zone, uint32_t number)
{
    struct zone_entry *entry = entry_at(zone, number);
    volatile uint32_t *link = find_link(zone, number);

    if (!link)
        return;
    entry->known = 0;
    *link = entry->next;
    unlink_use(zone, entry);
    entry->next = zone->unused;
    zone->unused = number;
    zone->used--;
}

/* Rebuilds the table once: its chains may be long if another process has forged them. */
static void remove_worker(struct shared_zone *shared, unsigned worker)
{
    struct limit_zone *zone = container_of(shared, struct limit_zone, shared);

    for (uint32_t number = entry_count(zone); number >= 1; number--) {
        if (entry_at(zone, number)->worker == worker)
            entry_at(zone, number)->known = 0;
    }
    rebuild_zone(zone);
}

static void lock_zone(struct limit_zone *zone)
{
    bool died = shared_zone_lock(&zone->shared);

    if (zone->damaged) {
        shared_zone_log_damage(&zone->shared);
        empty_zone(zone);
    } else if (died) {
        rebuild_zone(zone);
    }
    shared_zone_clean(&zone->shared, died, remove_worker);
}

static void unlock_zone(struct limit_zone *zone)
{
    shared_zone_unlock(&zone->shared);
}

struct limit_zone *limit_zone_create(size_t size)
{
    struct limit_zone *zone;

    if (size < sizeof(*zone) + 2 * sizeof(struct zone_entry) + sizeof(uint32_t) || size > LIMIT_ZONE_MAX)
        return NULL;
    zone = shared_zone_create(size);
    if (zone)
        rebuild_zone(zone);
    return zone;
}

struct limit_zone *limit_zone_share(struct limit_zone *zone)
{
    shared_zone_share(&zone->shared);
    return zone;
}

void limit_zone_destroy(struct limit_zone *zone)
{
    if (zone)
        shared_zone_destroy(&zone->shared);
}

static uint32_t find_entry(struct limit_zone *zone, uint64_t key, unsigned worker)
{
    uint32_t number = *key_chain(zone, key), steps = 0;

    while (number) {
        const struct zone_entry *entry = entry_at(zone, number);

        if (entry->key == key && entry->worker == worker)
            break;
        number = next_in_chain(zone, number, &steps);
    }
    return number;
}

/* Takes an entry for a key; NO_ENTRY: none is free. */
static uint32_t add_entry(struct limit_zone *zone, struct zone_entry made)
{
    uint32_t number = zone->unused;

    if (!number) {
        zone->damaged |= zone->used != entry_count(zone);
        return NO_ENTRY;
    }
    zone->unused = entry_at(zone, number)->next;
    *entry_at(zone, number) = made;
    link_in_chain(zone, number);
    link_as_newest(zone, number);
    zone->used++;
    __atomic_store_n(&entry_at(zone, number)->known, 1, __ATOMIC_RELEASE);
    return number;
}

/* The level with one more request, after draining since the last one. */
static uint64_t level_with_one(const struct zone_entry *entry, uint64_t rate, uint64_t now_ms)
{
    uint64_t passed_ms = now_ms > entry->last_ms ? now_ms - entry->last_ms : 0;
    uint64_t level = entry->level + LIMIT_DROPS;
    uint64_t drained;

    if (__builtin_mul_overflow(passed_ms, rate, &drained) || drained > level)
        return 0;
    return level - drained;
}

static bool fill_bucket(struct limit_zone *zone, uint32_t number, uint64_t rate, uint64_t max, uint64_t now_ms,
                        uint64_t *out_level)
{
    struct zone_entry *entry = entry_at(zone, number);

    *out_level = level_with_one(entry, rate, now_ms);
    unlink_use(zone, entry);
    link_as_newest(zone, number);
    if (*out_level > max)
        return false;
    entry->level = *out_level;
    if (now_ms > entry->last_ms) /* workers' clocks differ slightly: time is not counted twice */
        entry->last_ms = now_ms;
    return true;
}

bool limit_zone_fill(struct limit_zone *zone, uint64_t key, uint64_t rate, uint64_t max, uint64_t now_ms,
                     uint64_t *out_level)
{
    uint32_t number;
    bool good = true;

    lock_zone(zone);
    number = find_entry(zone, key, 0);
    if (number) {
        good = fill_bucket(zone, number, rate, max, now_ms, out_level);
    } else {
        *out_level = 0;
        if (!zone->unused)
            remove_entry(zone, zone->oldest);
        (void)add_entry(zone, (struct zone_entry){.key = key, .last_ms = now_ms});
    }
    unlock_zone(zone);
    return good;
}

void limit_zone_undo(struct limit_zone *zone, uint64_t key)
{
    uint32_t number;

    lock_zone(zone);
    number = find_entry(zone, key, 0);
    if (number) {
        struct zone_entry *entry = entry_at(zone, number);

        entry->level -= entry->level < LIMIT_DROPS ? entry->level : LIMIT_DROPS;
    }
    unlock_zone(zone);
}

static uint64_t sum_of(struct limit_zone *zone, uint64_t key)
{
    uint64_t sum = 0;
    uint32_t steps = 0;

    for (uint32_t number = *key_chain(zone, key); number; number = next_in_chain(zone, number, &steps)) {
        if (entry_at(zone, number)->key == key)
            sum += entry_at(zone, number)->level;
    }
    return sum;
}

bool limit_zone_enter(struct limit_zone *zone, uint64_t key, unsigned worker, uint64_t max)
{
    uint32_t number = NO_ENTRY;

    lock_zone(zone);
    if (sum_of(zone, key) < max) {
        number = find_entry(zone, key, worker);
        if (!number)
            number = add_entry(zone, (struct zone_entry){.key = key, .worker = worker});
        if (number)
            entry_at(zone, number)->level++;
    }
    unlock_zone(zone);
    return number != NO_ENTRY;
}

void limit_zone_leave(struct limit_zone *zone, uint64_t key, unsigned worker)
{
    uint32_t number;

    lock_zone(zone);
    number = find_entry(zone, key, worker);
    if (number && --entry_at(zone, number)->level == 0)
        remove_entry(zone, number);
    unlock_zone(zone);
}

void limit_zone_watch(struct limit_zone *zone, struct log *log, const char *directive, struct str name)
{
    shared_zone_watch(&zone->shared, log, directive, name);
}

void limit_zone_abandon(struct limit_zone *zone, unsigned worker)
{
    shared_zone_abandon(&zone->shared, worker);
}

void limit_zone_record(struct limit_zone *zone, struct str key, uint64_t hash, enum limit_action action, int64_t now_s)
{
    lock_zone(zone);
    limited_keys_add(&zone->limited, key, hash, action, now_s);
    unlock_zone(zone);
}

void limit_zone_totals(struct limit_zone *zone, struct limit_zone_totals *out)
{
    lock_zone(zone);
    *out = (struct limit_zone_totals){.keys = zone->used, .keys_max = entry_count(zone)};
    memcpy(out->counts, zone->limited.counts, sizeof(out->counts));
    unlock_zone(zone);
}

size_t limit_zone_limited(struct limit_zone *zone, struct limited_key *out)
{
    size_t count;

    lock_zone(zone);
    count = limited_keys_copy(&zone->limited, out);
    unlock_zone(zone);
    return count;
}
