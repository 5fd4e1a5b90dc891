/*
 * An anonymous shared mapping that begins with a lock, after one private page.
 */
#include "base/shared_zone.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct shared_zone_owner *zone_owner(struct shared_zone *zone)
{
    return (struct shared_zone_owner *)(void *)zone - 1;
}

/* Maps the private page and `size` shared bytes after it; NULL when out of memory. */
static struct shared_zone *map_zone(size_t size)
{
    size_t page = page_size();
    char *start;

    if (size > SIZE_MAX / 2)
        return NULL;
    start = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (mmap(start + page, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        return (struct shared_zone *)(void *)(start + page);
    munmap(start, page + size);
    return NULL;
}

static void unmap_zone(struct shared_zone *zone, size_t size)
{
    size_t page = page_size();

    munmap((char *)zone - page, page + size);
}

void *shared_zone_create(size_t size)
{
    struct shared_zone *zone = size < sizeof(*zone) ? NULL : map_zone(size);

    if (!zone)
        return NULL;
    zone_owner(zone)->size = size;
    return zone;
}

bool shared_zone_is_shared(const struct shared_zone *zone)
{
    return ((const struct shared_zone_owner *)(const void *)zone - 1)->sharers > 0;
}

void shared_zone_share(struct shared_zone *zone)
{
    zone_owner(zone)->sharers++;
}

void shared_zone_destroy(struct shared_zone *zone)
{
    if (zone && zone_owner(zone)->sharers-- == 0)
        unmap_zone(zone, shared_zone_size(zone));
}

void shared_zone_abandon(struct shared_zone *zone, unsigned slot)
{
    __atomic_fetch_or(&zone->abandoned[slot / 64], UINT64_C(1) << slot % 64, __ATOMIC_RELAXED);
    __atomic_store_n(&zone->any_abandoned, 1, __ATOMIC_RELEASE);
}

bool shared_zone_lock(struct shared_zone *zone)
{
    return shared_lock_acquire(&zone->lock);
}

void shared_zone_unlock(struct shared_zone *zone)
{
    shared_lock_release(&zone->lock);
}

void shared_zone_set_log(struct shared_zone *zone, struct log *log, const char *directive, struct str name)
{
    struct shared_zone_owner *owner = zone_owner(zone);
    int length = (int)(name.length < SHARED_ZONE_LABEL ? name.length : SHARED_ZONE_LABEL);

    owner->log = log;
    snprintf(owner->label, sizeof(owner->label), "%s \"%.*s\"", directive, length, name.data);
}

void shared_zone_log_damage(struct shared_zone *zone)
{
    struct shared_zone_owner *owner = zone_owner(zone);
    struct clock now;

    if (!owner->log)
        return;
    clock_read(&now);
    if (log_limit_allows(&owner->damage_logged, now.monotonic_ms))
        log_write(owner->log, LOG_ALERT, "%s: its shared memory is inconsistent and is emptied", owner->label);
}

/* A bit is cleared after its slot was removed: if this process dies before, the next one repeats it. */
static void remove_abandoned(struct shared_zone *zone, bool died,
                             void (*remove)(struct shared_zone *zone, unsigned slot))
{
    bool any = shared_zone_has_abandoned(zone) && __atomic_exchange_n(&zone->any_abandoned, 0, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; (any || died) && i < LIMIT_WORKERS / 64; i++) {
        uint64_t bits = __atomic_load_n(&zone->abandoned[i], __ATOMIC_RELAXED);

        for (; bits != 0; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);

            remove(zone, i * 64 + bit);
            __atomic_fetch_and(&zone->abandoned[i], ~(UINT64_C(1) << bit), __ATOMIC_RELAXED);
        }
    }
}

void shared_zone_lock_repaired(struct shared_zone *zone, const struct shared_zone_repair *repair)
{
    bool died = shared_zone_lock(zone);

    if (zone->damaged) {
        shared_zone_log_damage(zone);
        repair->empty(zone);
    } else if (died) {
        repair->rebuild(zone);
    }
    remove_abandoned(zone, died, repair->remove);
}
