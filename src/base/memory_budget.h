/*
 * Counts memory of many owners against one limit: of a connection, of a worker. Bytes counted in a budget are counted
 * in its parent, too. Nothing is allocated here.
 */
#ifndef BASE_MEMORY_BUDGET_H
#define BASE_MEMORY_BUDGET_H

#include "base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_budget {
    struct memory_budget *parent;   /* not owned; NULL: none */
    size_t used;                    /* bytes */
    size_t max;                     /* bytes; 0: no cap */
    uint64_t refusals;              /* times that `max` refused bytes */
};

/*
 * Counts `bytes` in the budget and its ancestors, in all or in none. False: one of them would exceed its cap, and
 * counts the refusal. A NULL budget accepts everything.
 */
MUST_CHECK bool memory_budget_take(struct memory_budget *budget, size_t bytes);
/* Takes back bytes that were counted. Accepts NULL. */
void memory_budget_give(struct memory_budget *budget, size_t bytes);
/* Counts bytes in `to` instead of `from`; never refused, so that `to` may exceed its cap. */
void memory_budget_move(struct memory_budget *from, struct memory_budget *to, size_t bytes);

#endif
