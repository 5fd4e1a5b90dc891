/*
 * Memory that is freed all at once: one exchange, one configuration. Single allocations are never freed. Blocks of
 * the common size come from a pool of the worker and return to it, so that a request calls malloc rarely.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

#include <stdarg.h>

struct arena_block;

/* Free blocks kept for reuse. A zeroed pool is valid: blocks of ARENA_BLOCK_SIZE, at most `max_free` of them. */
struct arena_pool {
    struct arena_block *free_blocks;
    unsigned free_count;
    unsigned max_free;
};

struct arena {
    struct arena_block *blocks;     /* newest first */
    char *next;
    char *end;
    struct arena_pool *pool;        /* not owned; NULL: plain malloc and free */
    size_t size;                    /* bytes allocated from the system */
    size_t max_size;                /* 0: no cap */
};

/* Initialises an empty arena; the first allocation takes memory. `pool` may be NULL and must outlive the arena. */
void arena_init(struct arena *arena, struct arena_pool *pool, size_t max_size);

/* Releases every block; the arena is as after arena_init. Accepts a zeroed arena. */
void arena_reset(struct arena *arena);

/* Frees every kept block. No arena may use the pool afterwards. */
void arena_pool_finish(struct arena_pool *pool);

/* Allocates `size` bytes aligned for any type, not cleared. NULL when out of memory or past max_size. */
void *arena_alloc(struct arena *arena, size_t size);
/* Allocates count * size zeroed bytes; the product is overflow-checked. NULL as arena_alloc. */
void *arena_zalloc(struct arena *arena, size_t count, size_t size);

/* A copy of s, terminated by a NUL that its length does not count. data is NULL when out of memory. */
struct str arena_copy(struct arena *arena, struct str s);
/* Concatenates `count` texts. data is NULL when out of memory, or where the data of one part is NULL. */
struct str arena_join(struct arena *arena, const struct str *parts, size_t count);
/* Formats as printf does. data is NULL when out of memory. */
struct str arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
struct str arena_vprintf(struct arena *arena, const char *format, va_list args) PRINTF_LIKE(2, 0);

#endif
