/*
 * Leaky buckets and counts of keys in a zone. Counts of a key are kept in one entry per worker.
 */
#include "limit/limit_zone_private.h"

#include <string.h>

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
    struct zone_entry *entry = limit_zone_entry(zone, number);

    *out_level = level_with_one(entry, rate, now_ms);
    limit_zone_touch(zone, number);
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

    limit_zone_lock(zone);
    number = limit_zone_find(zone, key, 0);
    if (number) {
        good = fill_bucket(zone, number, rate, max, now_ms, out_level);
    } else {
        *out_level = 0;
        if (!zone->unused)
            limit_zone_remove(zone, zone->oldest);
        (void)limit_zone_add(zone, (struct zone_entry){.key = key, .last_ms = now_ms});
    }
    limit_zone_unlock(zone);
    return good;
}

void limit_zone_undo(struct limit_zone *zone, uint64_t key)
{
    uint32_t number;

    limit_zone_lock(zone);
    number = limit_zone_find(zone, key, 0);
    if (number) {
        struct zone_entry *entry = limit_zone_entry(zone, number);

        entry->level -= entry->level < LIMIT_DROPS ? entry->level : LIMIT_DROPS;
    }
    limit_zone_unlock(zone);
}

bool limit_zone_enter(struct limit_zone *zone, uint64_t key, unsigned worker, uint64_t max)
{
    uint32_t number = NO_ENTRY;

    limit_zone_lock(zone);
    if (limit_zone_sum(zone, key) < max) {
        number = limit_zone_find(zone, key, worker);
        if (!number)
            number = limit_zone_add(zone, (struct zone_entry){.key = key, .worker = worker});
        if (number)
            limit_zone_entry(zone, number)->level++;
    }
    limit_zone_unlock(zone);
    return number != NO_ENTRY;
}

void limit_zone_leave(struct limit_zone *zone, uint64_t key, unsigned worker)
{
    uint32_t number;

    limit_zone_lock(zone);
    number = limit_zone_find(zone, key, worker);
    if (number && --limit_zone_entry(zone, number)->level == 0)
        limit_zone_remove(zone, number);
    limit_zone_unlock(zone);
}

void limit_zone_set_log(struct limit_zone *zone, struct log *log, const char *directive, struct str name)
{
    shared_zone_set_log(&zone->shared, log, directive, name);
}

void limit_zone_abandon(struct limit_zone *zone, unsigned worker)
{
    shared_zone_abandon(&zone->shared, worker);
}

void limit_zone_record(struct limit_zone *zone, struct str key, uint64_t hash, enum limit_action action, int64_t now_s)
{
    limit_zone_lock(zone);
    limited_keys_add(&zone->limited, key, hash, action, now_s);
    limit_zone_unlock(zone);
}

void limit_zone_totals(struct limit_zone *zone, struct limit_zone_totals *out)
{
    limit_zone_lock(zone);
    *out = (struct limit_zone_totals){.keys = zone->used, .keys_max = limit_zone_entry_count(zone)};
    memcpy(out->counts, zone->limited.counts, sizeof(out->counts));
    limit_zone_unlock(zone);
}

size_t limit_zone_limited(struct limit_zone *zone, struct limited_key *out)
{
    size_t count;

    limit_zone_lock(zone);
    count = limited_keys_copy(&zone->limited, out);
    limit_zone_unlock(zone);
    return count;
}
