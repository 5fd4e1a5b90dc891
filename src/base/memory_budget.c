/*
 * Budgets: all caps are checked before any count changes.
 */
#include "base/memory_budget.h"

bool memory_budget_reserve(struct memory_budget *budget, size_t bytes)
{
    for (struct memory_budget *level = budget; level; level = level->parent) {
        if (level->max && (bytes > level->max || level->used > level->max - bytes)) {
            level->rejections++;
            return false;
        }
    }
    for (struct memory_budget *level = budget; level; level = level->parent)
        level->used += bytes;
    return true;
}

void memory_budget_release(struct memory_budget *budget, size_t bytes)
{
    for (struct memory_budget *level = budget; level; level = level->parent)
        level->used -= bytes;
}

void memory_budget_move(struct memory_budget *from, struct memory_budget *to, size_t bytes)
{
    for (struct memory_budget *level = to; level; level = level->parent)
        level->used += bytes;
    memory_budget_release(from, bytes);
}
