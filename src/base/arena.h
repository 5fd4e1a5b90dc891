/*
 * Memory that is freed all at once: one exchange, one configuration. Single allocations are never freed. Blocks of
 * the common size come from a pool of the worker and return to it, so that a request calls malloc rarely.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/memory_budget.h"
#include "base/str.h"

#include <stdarg.h>

struct arena_block;

/*
 * Free blocks of ARENA_BLOCK_SIZE for reuse, and the budget of all arenas that use the pool. A zeroed pool is valid:
 * it keeps no free block, and the budget has no cap.
 */
struct arena_pool {
    struct memory_budget budget;    /* bytes of the arenas; free blocks are not counted */
    struct arena_block *free_blocks;
    unsigned free_count;
    unsigned max_free;              /* further blocks are freed */
};

struct arena {
    struct arena_block *blocks;     /* newest first */
    char *next;
    char *end;
    struct arena_pool *pool;        /* not owned; NULL: plain malloc and free */
    struct memory_budget *budget;   /* not owned; NULL: not counted */
    size_t size;                    /* bytes of its blocks */
    size_t max_size;                /* 0: no cap */
};

/*
 * Initialises an empty arena; the first allocation takes memory. `pool` may be NULL and must outlive the arena. Its
 * memory is counted in the pool's budget.
 */
void arena_init(struct arena *arena, struct arena_pool *pool, size_t max_size);

/*
 * Moves the arena's memory to another budget and counts its further memory there. The budget must outlive the arena or
 * be replaced. The move never fails, even past the budget's cap; later allocations past the cap fail.
 */
void arena_set_budget(struct arena *arena, struct memory_budget *budget);

/* Releases every block; the arena is as after arena_init. Accepts a zeroed arena. */
void arena_reset(struct arena *arena);

/* Frees every free block. No arena may use the pool afterwards. */
void arena_pool_finish(struct arena_pool *pool);

/* Allocates `size` uninitialised bytes, aligned for any type. NULL: out of memory, or past max_size or the budget. */
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
/* Formats a decimal number. data is NULL when out of memory. */
struct str arena_print_number(struct arena *arena, uint64_t number);
/* Formats a time in seconds with three decimals. data is NULL when out of memory. */
struct str arena_print_seconds(struct arena *arena, uint64_t us);

#endif
