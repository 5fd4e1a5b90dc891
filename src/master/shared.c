/*
 * The mapping shared by master and workers: anonymous, created before fork, one slot per worker on its own cache
 * lines. It outlives every generation, so counters continue after a reload.
 */
#include "master/shared.h"

#include <errno.h>
#include <sys/mman.h>

struct shared *shared_create(unsigned slots)
{
    size_t size = sizeof(struct shared) + slots * sizeof(struct shared_worker);
    struct shared *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return NULL;
    if (mmap(shared, SHARED_PRIVATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
        munmap(shared, size);
        return NULL;
    }
    shared->upstreams = upstream_zone_create(slots);
    if (!shared->upstreams) {
        munmap(shared, size);
        return NULL;
    }
    shared->size = size;
    shared->slot_count = slots;
    return shared;
}

void shared_destroy(struct shared *shared)
{
    if (!shared)
        return;
    upstream_zone_destroy(shared->upstreams);
    ticket_keys_wipe(&shared->tickets);
    munmap(shared, shared->size);
}

int shared_slot_acquire(struct shared *shared)
{
    for (unsigned i = 0; i < shared->slot_count; i++) {
        if (shared->in_use[i])
            continue;
        shared->in_use[i] = true;
        if (i >= shared->slots_used)
            __atomic_store_n(&shared->slots_used, i + 1, __ATOMIC_RELAXED);
        return (int)i;
    }
    return -ENOSPC;
}

void shared_slot_reset(struct shared *shared, unsigned slot)
{
    counters_reset_current(&shared->workers[slot].counters);
    shared->workers[slot].denied_call = 0;
    __atomic_store_n(&shared->workers[slot].facts.pid, 0, __ATOMIC_RELEASE);
    upstream_zone_abandon(shared->upstreams, slot);
}

void shared_slot_release(struct shared *shared, unsigned slot)
{
    shared_slot_reset(shared, slot);
    shared->in_use[slot] = false;
}

void shared_set_generation(struct shared *shared, uint64_t generation, unsigned workers)
{
    __atomic_store_n(&shared->worker_count, workers, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->generation, generation, __ATOMIC_RELAXED);
}

void shared_total(const struct shared *shared, struct counters_total *out_total)
{
    unsigned used = __atomic_load_n(&shared->slots_used, __ATOMIC_RELAXED);

    *out_total = (struct counters_total){
        .workers = __atomic_load_n(&shared->worker_count, __ATOMIC_RELAXED),
        .restarts = __atomic_load_n(&shared->restarts, __ATOMIC_RELAXED),
        .generation = __atomic_load_n(&shared->generation, __ATOMIC_RELAXED),
        .started_s = shared->started_s,
        .spans_sent = __atomic_load_n(&shared->spans.sent, __ATOMIC_RELAXED),
        .spans_dropped = {__atomic_load_n(&shared->spans.dropped_full, __ATOMIC_RELAXED),
                          __atomic_load_n(&shared->spans.dropped_failed, __ATOMIC_RELAXED)},
    };
    for (unsigned cipher = 0; cipher < RECORD_CIPHERS; cipher++) {
        uint32_t kernel_ns, user_ns;

        out_total->aead_ipsec_mb[cipher] = shared->aead.kind[cipher] == AEAD_IPSEC_MB;
        ktls_figures_per_kib(&shared->ktls_choice.figures[cipher], &kernel_ns, &user_ns);
        out_total->ktls_kernel_ns[cipher] = kernel_ns;
        out_total->ktls_user_ns[cipher] = user_ns;
    }
    for (unsigned i = 0; i < used && i < shared->slot_count; i++)
        counters_add(&out_total->sum, &shared->workers[i].counters);
}
