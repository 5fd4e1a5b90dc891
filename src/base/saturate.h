/*
 * Saturating subtraction of unsigned sizes, for operands that come from different sources (a setting, a peer, a
 * clock): the result is 0 instead of wrapping. Plain `-` is used where the code before it ensures that a >= b.
 */
#ifndef BASE_SATURATE_H
#define BASE_SATURATE_H

#include <stddef.h>
#include <stdint.h>

/* a - b, or 0 where b is larger. */
static inline size_t size_sub_sat(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

static inline uint64_t u64_sub_sat(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
