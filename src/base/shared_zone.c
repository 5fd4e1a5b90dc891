/*
 * An anonymous shared mapping that begins with a robust mutex.
 */
#include "base/shared_zone.h"

#include <errno.h>
#include <sys/mman.h>

static bool make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    bool good;

    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    good = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutex_init(lock, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return good;
}

void *shared_zone_create(size_t size)
{
    struct shared_zone *zone;

    if (size < sizeof(*zone))
        return NULL;
    zone = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (zone == MAP_FAILED)
        return NULL;
    if (!make_lock(&zone->lock)) {
        munmap(zone, size);
        return NULL;
    }
    zone->size = size;
    return zone;
}

void shared_zone_share(struct shared_zone *zone)
{
    zone->sharers++;
}

void shared_zone_destroy(struct shared_zone *zone)
{
    if (zone && zone->sharers-- == 0)
        munmap(zone, zone->size);
}

bool shared_zone_lock(struct shared_zone *zone)
{
    if (pthread_mutex_lock(&zone->lock) != EOWNERDEAD)
        return false;
    pthread_mutex_consistent(&zone->lock);
    return true;
}

void shared_zone_unlock(struct shared_zone *zone)
{
    pthread_mutex_unlock(&zone->lock);
}
