/*
 * Zones of `status_zone`: one mapping per zone, so that a reload carries over those that remain.
 */
#include "base/status_zone.h"

#include "base/limits.h"
#include "base/shared_zone.h"

#include <errno.h>
#include <string.h>

/* Aligned, so that it shares no cache line with another row. */
struct status_zone_row {
    _Alignas(64) struct status_zone_counts counts;
};

struct status_zone_table {
    struct shared_zone shared;
    struct status_zone_row rows[];  /* by slot */
};

static struct status_zone *find_zone(const struct status_zones *zones, enum status_zone_kind kind, struct str name)
{
    for (size_t i = 0; zones && i < zones->count; i++) {
        if (zones->items[i]->kind == kind && str_equal(zones->items[i]->name, name))
            return zones->items[i];
    }
    return NULL;
}

static int grow_zones(struct status_zones *zones, struct arena *arena)
{
    size_t capacity = zones->capacity ? 2 * zones->capacity : 16;
    struct status_zone **items = arena_zalloc(arena, capacity, sizeof(*items));

    if (!items)
        return -ENOMEM;
    if (zones->count > 0)
        memcpy(items, zones->items, zones->count * sizeof(*items));
    zones->items = items;
    zones->capacity = capacity;
    return 0;
}

int status_zones_add(struct status_zones *zones, struct arena *arena, enum status_zone_kind kind, struct str name,
                     struct status_zone **out_zone)
{
    struct status_zone *zone = find_zone(zones, kind, name);

    if (zone) {
        *out_zone = zone;
        return 0;
    }
    if (zones->count >= LIMIT_STATUS_ZONES)
        return -ENOSPC;
    zone = arena_zalloc(arena, 1, sizeof(*zone));
    if (!zone || (zones->count == zones->capacity && grow_zones(zones, arena) < 0))
        return -ENOMEM;
    zone->kind = kind;
    zone->name = name;
    zones->items[zones->count++] = zone;
    *out_zone = zone;
    return 0;
}

int status_zones_open(struct status_zones *zones, const struct status_zones *before, unsigned slots)
{
    size_t size = sizeof(struct status_zone_table) + (size_t)slots * sizeof(struct status_zone_row);

    for (size_t i = 0; i < zones->count; i++) {
        struct status_zone *zone = zones->items[i];
        const struct status_zone *former = find_zone(before, zone->kind, zone->name);

        if (former && former->table) {
            shared_zone_share(&former->table->shared);
            zone->table = former->table;
            zone->slots = former->slots;
            continue;
        }
        zone->table = shared_zone_create(size);
        if (!zone->table)
            return -ENOMEM;
        zone->slots = slots;
    }
    return 0;
}

void status_zones_close(struct status_zones *zones)
{
    for (size_t i = 0; i < zones->count; i++) {
        if (zones->items[i]->table)
            shared_zone_destroy(&zones->items[i]->table->shared);
        zones->items[i]->table = NULL;
        zones->items[i]->slots = 0;
    }
}

/* NULL if the zone is not open or has no such slot. */
static struct status_zone_counts *row_of(const struct status_zone *zone, unsigned slot)
{
    return zone && slot < zone->slots ? &zone->table->rows[slot].counts : NULL;
}

void status_zone_count(const struct status_zone *zone, unsigned slot, const struct status_zone_request *request)
{
    struct status_zone_counts *row = row_of(zone, slot);
    int class = request->status / 100;

    if (!row)
        return;
    row->latency.counts[latency_bucket(request->took_us)]++;
    row->latency.sum_us += request->took_us;
    row->classes[class > 0 && class < STATUS_ZONE_CLASSES ? class : 0]++;
    row->sent += request->sent;
    row->received += request->received;
}

void status_zone_enter(const struct status_zone *zone, unsigned slot)
{
    struct status_zone_counts *row = row_of(zone, slot);

    if (row)
        row->active++;
}

void status_zone_leave(const struct status_zone *zone, unsigned slot)
{
    struct status_zone_counts *row = row_of(zone, slot);

    if (row && row->active > 0)
        row->active--;
}

void status_zones_abandon(const struct status_zones *zones, unsigned slot)
{
    for (size_t i = 0; i < zones->count; i++) {
        struct status_zone_counts *row = row_of(zones->items[i], slot);

        if (row)
            row->active = 0;
    }
}

void status_zone_sum(const struct status_zone *zone, unsigned slots, struct status_zone_counts *out_sum)
{
    uint64_t *to = (uint64_t *)(void *)out_sum;

    memset(out_sum, 0, sizeof(*out_sum));
    for (size_t slot = 0; slot < slots && slot < zone->slots; slot++) {
        const uint64_t *from = (const uint64_t *)(const void *)&zone->table->rows[slot].counts;

        for (size_t i = 0; i < sizeof(*out_sum) / sizeof(uint64_t); i++)
            to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
}
