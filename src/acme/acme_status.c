/*
 * Numbers are read and written atomically; an error text always has a NUL within its array.
 */
#include "acme/acme_status.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Private memory of each process: the size and the address must not come from memory that a worker can write. */
struct acme_zone {
    size_t count, size;
    bool *renewing;                 /* shared: behind the items */
    struct acme_status *items;      /* shared */
};

struct acme_zone *acme_zone_open(size_t count)
{
    struct acme_zone *zone = calloc(1, sizeof(*zone));

    if (!zone || __builtin_mul_overflow(count, sizeof(zone->items[0]), &zone->size) ||
        __builtin_add_overflow(zone->size, sizeof(bool), &zone->size)) {
        free(zone);
        return NULL;
    }
    zone->items = mmap(NULL, zone->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (zone->items == MAP_FAILED) {
        free(zone);
        return NULL;
    }
    zone->renewing = (bool *)(zone->items + count);
    zone->count = count;
    return zone;
}

void acme_zone_close(struct acme_zone *zone)
{
    if (zone)
        munmap(zone->items, zone->size);
    free(zone);
}

void acme_zone_set_renewing(struct acme_zone *zone, bool renewing)
{
    __atomic_store_n(zone->renewing, renewing, __ATOMIC_RELAXED);
}

bool acme_zone_renewing(const struct acme_zone *zone)
{
    return zone && __atomic_load_n(zone->renewing, __ATOMIC_RELAXED);
}

void acme_status_set(struct acme_zone *zone, size_t index, const struct acme_status *status)
{
    struct acme_status *item = &zone->items[index];

    __atomic_store_n(&item->not_after_s, status->not_after_s, __ATOMIC_RELAXED);
    __atomic_store_n(&item->next_s, status->next_s, __ATOMIC_RELAXED);
    __atomic_store_n(&item->failures, status->failures, __ATOMIC_RELAXED);
    __atomic_store_n(&item->window, status->window, __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof(item->error) - 1; i++)
        __atomic_store_n(&item->error[i], status->error[i], __ATOMIC_RELAXED);
}

bool acme_status_get(const struct acme_zone *zone, size_t index, struct acme_status *out_status)
{
    const struct acme_status *item;

    if (!zone || index >= zone->count)
        return false;
    item = &zone->items[index];
    out_status->not_after_s = __atomic_load_n(&item->not_after_s, __ATOMIC_RELAXED);
    out_status->next_s = __atomic_load_n(&item->next_s, __ATOMIC_RELAXED);
    out_status->failures = __atomic_load_n(&item->failures, __ATOMIC_RELAXED);
    out_status->window = __atomic_load_n(&item->window, __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof(item->error); i++)
        out_status->error[i] = __atomic_load_n(&item->error[i], __ATOMIC_RELAXED);
    out_status->error[sizeof(out_status->error) - 1] = '\0';
    return true;
}
