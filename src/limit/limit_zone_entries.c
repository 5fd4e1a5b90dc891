/*
 * The structure of a zone: a hash table with chains over a fixed array of entries, and an LRU list. The entries alone
 * are authoritative: chains and list can be rebuilt from them.
 *
 * A compromised process can write anything at any time. The layout therefore follows from the private size of the zone,
 * every number is limited to the table when it is used, and an inconsistent table is emptied.
 */
#include "limit/limit_zone_private.h"

#include "base/limits.h"
#include "base/list.h"

#include <string.h>

static volatile uint32_t *chains_of(struct limit_zone *zone)
{
    return (volatile uint32_t *)(void *)(zone->entries + limit_zone_entry_count(zone) + 1);
}

static volatile uint32_t *key_chain(struct limit_zone *zone, uint64_t key)
{
    return &chains_of(zone)[key % limit_zone_entry_count(zone)];
}

static void link_as_newest(struct limit_zone *zone, uint32_t number)
{
    struct zone_entry *entry = limit_zone_entry(zone, number);

    entry->newer = NO_ENTRY;
    entry->older = zone->newest;
    *(zone->newest ? &limit_zone_entry(zone, zone->newest)->newer : &zone->oldest) = number;
    zone->newest = number;
}

static void unlink_use(struct limit_zone *zone, const struct zone_entry *entry)
{
    *(entry->newer ? &limit_zone_entry(zone, entry->newer)->older : &zone->newest) = entry->older;
    *(entry->older ? &limit_zone_entry(zone, entry->older)->newer : &zone->oldest) = entry->newer;
}

void limit_zone_touch(struct limit_zone *zone, uint32_t number)
{
    unlink_use(zone, limit_zone_entry(zone, number));
    link_as_newest(zone, number);
}

static void link_in_chain(struct limit_zone *zone, uint32_t number)
{
    volatile uint32_t *chain = key_chain(zone, limit_zone_entry(zone, number)->key);

    limit_zone_entry(zone, number)->next = *chain;
    *chain = number;
}

/* Rebuilds chains and list: a process that died holding the lock may have left them inconsistent. */
static void rebuild_zone(struct shared_zone *shared)
{
    struct limit_zone *zone = container_of(shared, struct limit_zone, shared);
    uint32_t count = limit_zone_entry_count(zone);

    for (uint32_t i = 0; i < count; i++)
        chains_of(zone)[i] = NO_ENTRY;
    zone->newest = zone->oldest = zone->unused = NO_ENTRY;
    zone->used = 0;
    for (uint32_t number = count; number >= 1; number--) {
        if (limit_zone_entry(zone, number)->known) {
            link_in_chain(zone, number);
            link_as_newest(zone, number);
            zone->used++;
        } else {
            limit_zone_entry(zone, number)->next = zone->unused;
            zone->unused = number;
        }
    }
}

static void empty_zone(struct shared_zone *shared)
{
    struct limit_zone *zone = container_of(shared, struct limit_zone, shared);

    memset(zone->entries, 0, ((size_t)limit_zone_entry_count(zone) + 1) * sizeof(*zone->entries));
    zone->limited = (struct limited_keys){0};
    zone->shared.damaged = 0;
    rebuild_zone(&zone->shared);
}

/* The entry after `number` in a chain of which `steps` entries have been seen. A loop or a foreign number ends it. */
static uint32_t next_in_chain(struct limit_zone *zone, uint32_t number, uint32_t *steps)
{
    if (++*steps <= LIMIT_ZONE_CHAIN)
        return limit_zone_entry(zone, number)->next;
    zone->shared.damaged = 1;
    return NO_ENTRY;
}

/* The link to an entry in its chain; NULL if the chain does not contain it. */
static volatile uint32_t *find_link(struct limit_zone *zone, uint32_t number)
{
    volatile uint32_t *link = key_chain(zone, limit_zone_entry(zone, number)->key);

    for (uint32_t steps = 0; steps <= LIMIT_ZONE_CHAIN; steps++) {
        uint32_t linked = *link;

        if (linked == number)
            return link;
        if (linked == NO_ENTRY)
            break;
        link = &limit_zone_entry(zone, linked)->next;
    }
    zone->shared.damaged = 1;
    return NULL;
}

void limit_zone_remove(struct limit_zone *zone, uint32_t number)
{
    struct zone_entry *entry = limit_zone_entry(zone, number);
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

    for (uint32_t number = limit_zone_entry_count(zone); number >= 1; number--) {
        if (limit_zone_entry(zone, number)->worker == worker)
            limit_zone_entry(zone, number)->known = 0;
    }
    rebuild_zone(&zone->shared);
}

void limit_zone_lock(struct limit_zone *zone)
{
    static const struct shared_zone_repair repair = {empty_zone, rebuild_zone, remove_worker};

    shared_zone_lock_repaired(&zone->shared, &repair);
}

void limit_zone_unlock(struct limit_zone *zone)
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
        rebuild_zone(&zone->shared);
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

uint32_t limit_zone_find(struct limit_zone *zone, uint64_t key, unsigned worker)
{
    uint32_t number = *key_chain(zone, key), steps = 0;

    while (number) {
        const struct zone_entry *entry = limit_zone_entry(zone, number);

        if (entry->key == key && entry->worker == worker)
            break;
        number = next_in_chain(zone, number, &steps);
    }
    return number;
}

uint32_t limit_zone_add(struct limit_zone *zone, struct zone_entry made)
{
    uint32_t number = zone->unused;

    if (!number) {
        zone->shared.damaged |= zone->used != limit_zone_entry_count(zone);
        return NO_ENTRY;
    }
    zone->unused = limit_zone_entry(zone, number)->next;
    *limit_zone_entry(zone, number) = made;
    link_in_chain(zone, number);
    link_as_newest(zone, number);
    zone->used++;
    __atomic_store_n(&limit_zone_entry(zone, number)->known, 1, __ATOMIC_RELEASE);
    return number;
}

uint64_t limit_zone_sum(struct limit_zone *zone, uint64_t key)
{
    uint64_t sum = 0;
    uint32_t steps = 0;

    for (uint32_t number = *key_chain(zone, key); number; number = next_in_chain(zone, number, &steps)) {
        if (limit_zone_entry(zone, number)->key == key)
            sum += limit_zone_entry(zone, number)->level;
    }
    return sum;
}
