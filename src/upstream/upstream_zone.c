/*
 * The shared state of peers, and each worker's part of the counters, so that the counts of a worker that died can be
 * subtracted. Claims are rare and take a lock; counting takes no lock.
 */
#include "upstream/upstream_zone.h"

#include "base/limits.h"
#include "base/shared_zone.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* One worker's part of one entry. Written by that worker, or by the master after the worker died. */
struct claim {
    uint32_t count;
    uint32_t active;
};

/* Every process may write the table. */
struct zone_table {
    struct shared_zone shared;
    uint64_t leader;                /* end of the leadership, and the worker in the low bits; 0: none */
    struct upstream_shared states[LIMIT_UPSTREAM_PEERS];
    struct claim claims[];          /* LIMIT_UPSTREAM_PEERS for each worker */
};

/* Each process has its own copy of these pointers. */
struct upstream_zone {
    struct zone_table *table;       /* owned, like names and changes; at the same address in all processes */
    struct resolved_names *names;
    struct upstream_changes *changes;
    uint64_t configuration;         /* of this process */
};

struct upstream_zone *upstream_zone_create(unsigned workers)
{
    size_t size = sizeof(struct zone_table) + (size_t)workers * LIMIT_UPSTREAM_PEERS * sizeof(struct claim);
    /* Not on the heap: only mapped memory points to it, in which leak checkers do not search for pointers. */
    struct upstream_zone *zone = mmap(NULL, sizeof(*zone), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (zone == MAP_FAILED)
        return NULL;
    zone->table = shared_zone_create(size);
    zone->names = resolved_names_create();
    zone->changes = upstream_changes_create();
    if (zone->table && zone->names && zone->changes)
        return zone;
    upstream_zone_destroy(zone);
    return NULL;
}

void upstream_zone_destroy(struct upstream_zone *zone)
{
    if (!zone)
        return;
    resolved_names_destroy(zone->names);
    upstream_changes_destroy(zone->changes);
    if (zone->table)
        shared_zone_destroy(&zone->table->shared);
    (void)munmap(zone, sizeof(*zone));
}

struct resolved_names *upstream_zone_names(const struct upstream_zone *zone)
{
    return zone ? zone->names : NULL;
}

struct upstream_changes *upstream_zone_changes(const struct upstream_zone *zone)
{
    return zone ? zone->changes : NULL;
}

void upstream_zone_set_configuration(struct upstream_zone *zone, uint64_t configuration)
{
    zone->configuration = configuration;
}

bool upstream_zone_is_removed(const struct upstream_zone *zone, const struct upstream_shared *state)
{
    uint64_t removed = shared_get(&state->removed);

    return removed != 0 && removed == zone->configuration;
}

/* Locks the zone. If a process died while it held the lock, an entry has at most one holder too many. */
void upstream_zone_lock(struct upstream_zone *zone)
{
    (void)shared_zone_lock(&zone->table->shared);
}

void upstream_zone_unlock(struct upstream_zone *zone)
{
    shared_zone_unlock(&zone->table->shared);
}

static struct claim *claim_of(struct upstream_zone *zone, unsigned worker, int index)
{
    return &zone->table->claims[(size_t)worker * LIMIT_UPSTREAM_PEERS + (size_t)index];
}

/* The peer's entry, also one whose holders died; else a free one, else -ENOSPC. */
static int find_slot(struct upstream_zone *zone, const struct upstream_claim *peer)
{
    int never_used = -ENOSPC;
    int unused = -ENOSPC;

    for (int i = 0; i < LIMIT_UPSTREAM_PEERS; i++) {
        const struct upstream_shared *state = &zone->table->states[i];
        struct str name = str_of(state->name, strnlen(state->name, sizeof(state->name)));

        if (state->key == peer->key && !str_empty(name) && str_equal(name, peer->name))
            return i;
        if (state->holders > 0)
            continue;
        if (!state->name[0] && never_used < 0)
            never_used = i;
        if (unused < 0)
            unused = i;
    }
    return never_used >= 0 ? never_used : unused;
}

/* Resets an entry without holders. */
static void reset_state(struct upstream_shared *state, const struct upstream_claim *peer)
{
    struct upstream_shared before = *state;

    *state = (struct upstream_shared){.key = peer->key};
    snprintf(state->group, sizeof(state->group), STR_FMT, STR_ARG(peer->group));
    snprintf(state->name, sizeof(state->name), STR_FMT, STR_ARG(peer->name));
    if (before.key != state->key || strncmp(before.name, state->name, sizeof(before.name)) != 0)
        return;
    state->mode = before.mode;
    state->weight = before.weight;
    state->configured_mode = before.configured_mode;
    state->configured_weight = before.configured_weight;
}

/* Sets weight and mode if the configuration has changed them. */
static void configure_state(struct upstream_shared *state, const struct upstream_claim *peer)
{
    uint64_t mode = peer->down ? UPSTREAM_DOWN : UPSTREAM_UP;

    if (state->configured_weight != peer->weight)
        shared_set(&state->weight, peer->weight);
    if (state->configured_mode != mode)
        shared_set(&state->mode, mode);
    state->configured_weight = peer->weight;
    state->configured_mode = mode;
}

int upstream_zone_claim(struct upstream_zone *zone, unsigned worker, const struct upstream_claim *peer)
{
    struct upstream_shared *state;
    int index;

    upstream_zone_lock(zone);
    index = find_slot(zone, peer);
    if (index >= 0) {
        state = &zone->table->states[index];
        if (state->holders == 0)
            reset_state(state, peer);
        configure_state(state, peer);
        shared_add(&state->holders, 1);
        *claim_of(zone, worker, index) = (struct claim){.count = 1};
    }
    upstream_zone_unlock(zone);
    return index;
}

/* Subtracts the connections first, because an entry without holders may be reset. */
static void release_claim(struct upstream_zone *zone, unsigned worker, int index)
{
    struct claim *claim = claim_of(zone, worker, index);

    shared_add(&zone->table->states[index].active, -(uint64_t)__atomic_exchange_n(&claim->active, 0, __ATOMIC_ACQ_REL));
    __atomic_fetch_sub(&zone->table->states[index].holders, __atomic_exchange_n(&claim->count, 0, __ATOMIC_ACQ_REL),
                       __ATOMIC_RELEASE);
}

void upstream_zone_release(struct upstream_zone *zone, unsigned worker, int index)
{
    upstream_zone_lock(zone);
    release_claim(zone, worker, index);
    if (shared_get(&zone->table->states[index].holders) == 0)
        zone->table->states[index].name[0] = '\0';
    upstream_zone_unlock(zone);
}

/*
 * Takes no lock: another worker changes an entry of the dead worker only by claiming it, which adds a holder. That is
 * correct before and after the subtraction.
 */
void upstream_zone_abandon(struct upstream_zone *zone, unsigned worker)
{
    for (int i = 0; i < LIMIT_UPSTREAM_PEERS; i++) {
        if (__atomic_load_n(&claim_of(zone, worker, i)->count, __ATOMIC_RELAXED))
            release_claim(zone, worker, i);
    }
    upstream_zone_release_leadership(zone, worker);
}

struct upstream_shared *upstream_zone_at(struct upstream_zone *zone, int index)
{
    return &zone->table->states[index];
}

void upstream_zone_count(struct upstream_zone *zone, unsigned worker, int index, int change)
{
    claim_of(zone, worker, index)->active += (uint32_t)change;
}

/*
 * One number holds the end of the leadership and the worker, so that both change atomically. A later end than a leader
 * sets is forged, and ignored.
 */
bool upstream_zone_acquire_leadership(struct upstream_zone *zone, unsigned worker, uint64_t now_ms,
                                      uint64_t leadership_ms)
{
    uint64_t seen = shared_get(&zone->table->leader);
    uint64_t end_ms = seen / LIMIT_WORKERS;
    bool is_leader = seen % LIMIT_WORKERS == worker && seen != 0;

    if (!is_leader && end_ms > now_ms && end_ms - now_ms <= leadership_ms)
        return false;
    return shared_change(&zone->table->leader, seen, (now_ms + leadership_ms) * LIMIT_WORKERS + worker);
}

void upstream_zone_release_leadership(struct upstream_zone *zone, unsigned worker)
{
    uint64_t seen = shared_get(&zone->table->leader);

    if (seen % LIMIT_WORKERS == worker)
        (void)shared_change(&zone->table->leader, seen, 0);
}
