/*
 * Servers of groups with `zone`, added and removed while the workers run. A change is written to upstream_changes, and
 * each worker applies it to its own peers: before it selects the next server of a group with `zone`, and at the latest
 * after LIMIT_UPSTREAM_FOLLOW_MS.
 */
#ifndef UPSTREAM_UPSTREAM_FOLLOW_H
#define UPSTREAM_UPSTREAM_FOLLOW_H

#include "upstream/upstream_pool.h"

/*
 * Applies the changes made in this configuration, and follows later ones. Without groups with `zone`, or without memory
 * shared by workers, no change is ever applied. Called once, after upstream_pool_create; `configuration` is the number
 * of the configuration, at least 1.
 */
void upstream_pool_follow(struct upstream_pool *pool, uint64_t configuration);

#endif
