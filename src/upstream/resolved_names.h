/*
 * The last addresses that each name of a server was resolved to, in memory that all workers of all generations share: a worker that starts
 * while DNS fails has the addresses that the workers before it used.
 */
#ifndef UPSTREAM_RESOLVED_NAMES_H
#define UPSTREAM_RESOLVED_NAMES_H

#include "base/limits.h"
#include "io/resolver.h"

struct resolved_names;

/* In shared memory, for LIMIT_RESOLVED_NAMES names; made before workers are forked. NULL when out of memory. */
struct resolved_names *resolved_names_create(void);
/* Accepts NULL. */
void resolved_names_destroy(struct resolved_names *names);

/*
 * Stores the addresses of a good answer under `key`, in the place of what was stored there; the name that was stored longest ago makes room. A
 * key of LIMIT_RESOLVED_KEY bytes or more is not stored.
 */
void resolved_names_store(struct resolved_names *names, struct str key, const struct resolver_answer *answer);
/* Copies what is stored under `key` into `out`. How many addresses; 0: none. */
size_t resolved_names_load(struct resolved_names *names, struct str key,
                           struct resolver_address out[LIMIT_UPSTREAM_ADDRESSES]);

#endif
