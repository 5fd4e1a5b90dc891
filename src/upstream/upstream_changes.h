/*
 * Servers that `sluice ctl upstreams add` and `remove` have added to groups and removed from them, in memory that all
 * workers share. Each worker applies the rows to its own peers (upstream_follow.c). The rows belong to one
 * configuration; a later one begins without any.
 */
#ifndef UPSTREAM_UPSTREAM_CHANGES_H
#define UPSTREAM_UPSTREAM_CHANGES_H

#include "base/limits.h"
#include "base/must_check.h"

#include <stdbool.h>
#include <stdint.h>

enum upstream_change_kind {
    CHANGE_NONE,
    CHANGE_ADDED,
    CHANGE_REMOVED,                 /* all servers of the configuration with this name */
};

struct upstream_change {
    enum upstream_change_kind kind;
    uint64_t serial;                /* unique; assigned by upstream_changes_write */
    uint64_t group;                 /* index among the groups of the configuration; not checked against their number */
    char name[128];                 /* "127.0.0.1:9001", as listen_address_format writes it; terminated, not empty */
    uint64_t weight;                /* of an added server: as in struct upstream_server */
    uint64_t max_conns;
    uint64_t max_fails;
    uint64_t fail_timeout_ms;
    uint64_t slow_start_ms;
    bool backup;
    bool down;
};

struct upstream_changes;

/* Creates the table in shared memory, before workers are forked. NULL when out of memory. */
struct upstream_changes *upstream_changes_create(void);
/* Accepts NULL. */
void upstream_changes_destroy(struct upstream_changes *changes);

/*
 * The number of changes so far, read without the lock: when it has changed, a worker applies the rows again.
 */
uint64_t upstream_changes_count(const struct upstream_changes *changes);

/* The master never locks the table, and reads none of it. */
void upstream_changes_lock(struct upstream_changes *changes);
void upstream_changes_unlock(struct upstream_changes *changes);

/*
 * The functions below need the lock. upstream_changes_configuration may be called without it, if the number may change
 * at any time.
 */

/* The number of the configuration that the rows belong to; 0: there have been no rows. It may be forged. */
uint64_t upstream_changes_configuration(const struct upstream_changes *changes);
/* Replaces a forged number. The rows remain. */
void upstream_changes_set_configuration(struct upstream_changes *changes, uint64_t configuration);
/*
 * Copies row `index`, below LIMIT_UPSTREAM_CHANGES. False: it is unused, or not valid. A compromised worker may write
 * any value: those of a copied row are within the limits of base/limits.h, but its name need not be an address.
 */
MUST_CHECK bool upstream_changes_read(const struct upstream_changes *changes, unsigned index,
                                      struct upstream_change *out);
/*
 * Adds a row for that configuration, and removes those of an older one. A row that is not valid is replaced.
 * `change->serial` is ignored; the row gets the next one. Returns 0, -ENOSPC if the table is full, or -ESTALE if it has
 * rows of a newer configuration.
 */
MUST_CHECK int upstream_changes_write(struct upstream_changes *changes, uint64_t configuration,
                                      const struct upstream_change *change, uint64_t *out_serial);
/* Removes the row with this serial. No effect if there is none. */
void upstream_changes_erase(struct upstream_changes *changes, uint64_t serial);

#endif
