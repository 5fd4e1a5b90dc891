/*
 * A table with a counter. Its lock protects the rows; the counter is read without it.
 */
#include "upstream/upstream_changes.h"

#include "base/shared_zone.h"

#include <errno.h>
#include <string.h>

/* `kind` is written last: a row of a process that died while it wrote is unused. */
struct row {
    uint64_t kind;
    struct upstream_change change;
};

struct upstream_changes {
    struct shared_zone shared;
    uint64_t count;                 /* atomic */
    uint64_t configuration;
    uint64_t serial;                /* the last one assigned */
    struct row rows[LIMIT_UPSTREAM_CHANGES];
};

struct upstream_changes *upstream_changes_create(void)
{
    return shared_zone_create(sizeof(struct upstream_changes));
}

void upstream_changes_destroy(struct upstream_changes *changes)
{
    if (changes)
        shared_zone_destroy(&changes->shared);
}

uint64_t upstream_changes_count(const struct upstream_changes *changes)
{
    return __atomic_load_n(&changes->count, __ATOMIC_ACQUIRE);
}

static void count_change(struct upstream_changes *changes)
{
    __atomic_fetch_add(&changes->count, 1, __ATOMIC_ACQ_REL);
}

/* A process that died while it held the lock may have changed a row without counting it. */
void upstream_changes_lock(struct upstream_changes *changes)
{
    if (shared_zone_lock(&changes->shared))
        count_change(changes);
}

void upstream_changes_unlock(struct upstream_changes *changes)
{
    shared_zone_unlock(&changes->shared);
}

uint64_t upstream_changes_configuration(const struct upstream_changes *changes)
{
    return __atomic_load_n(&changes->configuration, __ATOMIC_RELAXED);
}

static void set_kind(struct row *row, uint64_t kind)
{
    __atomic_store_n(&row->kind, kind, __ATOMIC_RELEASE);
}

static bool is_valid(const struct upstream_change *change)
{
    return change->name[0] && memchr(change->name, '\0', sizeof(change->name)) && change->weight >= 1 &&
           change->weight <= LIMIT_UPSTREAM_WEIGHT && change->max_conns <= LIMIT_UPSTREAM_CHANGE_VALUE &&
           change->max_fails <= LIMIT_UPSTREAM_CHANGE_VALUE && change->fail_timeout_ms <= LIMIT_UPSTREAM_CHANGE_VALUE &&
           change->slow_start_ms <= LIMIT_UPSTREAM_CHANGE_VALUE;
}

/* A compromised process may have written another value than 0 and 1, which is not a bool. */
static bool read_switch(const bool *from)
{
    unsigned char value;

    memcpy(&value, from, 1);
    return value != 0;
}

/* The values are validated after they were copied: a compromised process can change them at any time. */
bool upstream_changes_read(const struct upstream_changes *changes, unsigned index, struct upstream_change *out)
{
    const struct row *row = &changes->rows[index];
    uint64_t kind = __atomic_load_n(&row->kind, __ATOMIC_ACQUIRE);

    if (kind != CHANGE_ADDED && kind != CHANGE_REMOVED)
        return false;
    *out = (struct upstream_change){.kind = (enum upstream_change_kind)kind,
                                    .serial = row->change.serial,
                                    .group = row->change.group,
                                    .weight = row->change.weight,
                                    .max_conns = row->change.max_conns,
                                    .max_fails = row->change.max_fails,
                                    .fail_timeout_ms = row->change.fail_timeout_ms,
                                    .slow_start_ms = row->change.slow_start_ms,
                                    .backup = read_switch(&row->change.backup),
                                    .down = read_switch(&row->change.down)};
    memcpy(out->name, row->change.name, sizeof(out->name));
    return is_valid(out);
}

static void erase_all(struct upstream_changes *changes)
{
    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++)
        set_kind(&changes->rows[i], CHANGE_NONE);
}

void upstream_changes_set_configuration(struct upstream_changes *changes, uint64_t configuration)
{
    __atomic_store_n(&changes->configuration, configuration, __ATOMIC_RELAXED);
    count_change(changes);
}

/* Invalid rows, which a compromised process has written, are not in use. */
static struct row *find_unused(struct upstream_changes *changes)
{
    struct upstream_change ignored;

    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++) {
        if (!upstream_changes_read(changes, i, &ignored))
            return &changes->rows[i];
    }
    return NULL;
}

int upstream_changes_write(struct upstream_changes *changes, uint64_t configuration,
                           const struct upstream_change *change, uint64_t *out_serial)
{
    struct row *row;

    if (changes->configuration > configuration)
        return -ESTALE;
    if (changes->configuration < configuration)
        erase_all(changes);
    __atomic_store_n(&changes->configuration, configuration, __ATOMIC_RELAXED);
    row = find_unused(changes);
    if (!row)
        return -ENOSPC;
    set_kind(row, CHANGE_NONE);
    row->change = *change;
    row->change.serial = *out_serial = ++changes->serial;
    set_kind(row, change->kind);
    count_change(changes);
    return 0;
}

void upstream_changes_erase(struct upstream_changes *changes, uint64_t serial)
{
    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++) {
        struct row *row = &changes->rows[i];

        if (row->kind == CHANGE_NONE || row->change.serial != serial)
            continue;
        set_kind(row, CHANGE_NONE);
        count_change(changes);
        return;
    }
}
