/*
 * The last resolved addresses of each upstream name, in memory shared by all workers of all generations: a worker
 * that starts while DNS fails uses the addresses that earlier workers stored.
 */
#ifndef UPSTREAM_RESOLVED_NAMES_H
#define UPSTREAM_RESOLVED_NAMES_H

#include "base/limits.h"
#include "io/resolver.h"

struct resolved_names;

/*
 * Creates the table in shared memory, with LIMIT_RESOLVED_NAMES entries, before workers are forked. NULL when out of
 * memory.
 */
struct resolved_names *resolved_names_create(void);
/* Accepts NULL. */
void resolved_names_destroy(struct resolved_names *names);

/*
 * Stores the addresses of a successful answer under `key`, replacing earlier ones. If the table is full, evicts the
 * name that was stored least recently. Keys of LIMIT_RESOLVED_KEY bytes or more are not stored.
 */
void resolved_names_store(struct resolved_names *names, struct str key, const struct resolver_answer *answer);
/* Copies the addresses under `key` to `out`. Returns their number; 0: none. */
size_t resolved_names_load(struct resolved_names *names, struct str key,
                           struct resolver_address out[LIMIT_UPSTREAM_ADDRESSES]);

#endif
