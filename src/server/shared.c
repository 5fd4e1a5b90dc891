/*
 * The mapping that master and workers share: anonymous, made before fork, one slot a
 * worker, each on cache lines of its own.
 */
#include "server/shared.h"

#include <sys/mman.h>

struct shared *shared_create(unsigned workers)
{
    size_t size = sizeof(struct shared) + workers * sizeof(struct shared_worker);
    struct shared *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return NULL;
    shared->upstreams = upstream_zone_create(workers);
    if (!shared->upstreams) {
        munmap(shared, size);
        return NULL;
    }
    shared->size = size;
    shared->worker_count = workers;
    shared->generation = 1;
    return shared;
}

void shared_destroy(struct shared *shared)
{
    if (!shared)
        return;
    upstream_zone_destroy(shared->upstreams);
    munmap(shared, shared->size);
}

void shared_total(const struct shared *shared, struct counters_total *out_total)
{
    *out_total = (struct counters_total){
        .workers = shared->worker_count,
        .restarts = __atomic_load_n(&shared->restarts, __ATOMIC_RELAXED),
        .generation = __atomic_load_n(&shared->generation, __ATOMIC_RELAXED),
        .started_s = shared->started_s,
    };
    for (unsigned i = 0; i < shared->worker_count; i++)
        counters_add(&out_total->sum, &shared->workers[i].counters);
}
