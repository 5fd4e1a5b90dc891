/*
 * Counts the memory of several owners against one cap, for example that of a connection or of a worker. Bytes counted
 * in a budget are counted in its parent, too. A budget allocates nothing.
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
    uint64_t rejections;            /* calls of memory_budget_reserve that failed because of `max` */
};

/*
 * Counts `bytes` in the budget and in all its ancestors. Returns false, and counts nothing except a rejection, if one
 * of them would exceed its cap. A NULL budget has no cap.
 */
MUST_CHECK bool memory_budget_reserve(struct memory_budget *budget, size_t bytes);
/* Subtracts bytes that were counted. Accepts NULL. */
void memory_budget_release(struct memory_budget *budget, size_t bytes);
/* Counts bytes in `to` instead of `from`; never rejected, so that `to` may exceed its cap. */
void memory_budget_move(struct memory_budget *from, struct memory_budget *to, size_t bytes);

#endif
