/*
 * Subtraction of unsigned sizes whose order another part of the program decides (a setting, a peer, a clock): the
 * result stops at 0 instead of wrapping to a huge number. Where the order is a matter of course, plain `-` stays.
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
