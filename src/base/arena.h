/*
 * Memory that is freed all at once: an exchange's, a configuration's. Nothing in
 * an arena is freed singly. Blocks of the common size come from and return to a
 * pool that the worker holds, so that a request costs no malloc.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

#include <stdarg.h>

struct arena_block;

/* Blocks kept for reuse. Zero-initialised is valid: blocks of ARENA_BLOCK_SIZE, at most `max_kept` of them. */
struct arena_pool {
    struct arena_block *free_blocks;
    unsigned kept;
    unsigned max_kept;
};

struct arena {
    struct arena_block *blocks;     /* newest first */
    char *next;
    char *end;
    struct arena_pool *pool;        /* not owned; NULL: plain malloc and free */
    size_t size;                    /* bytes asked of the system */
    size_t max_size;                /* 0: no cap */
};

/* An empty arena: no memory is taken until the first allocation. `pool` may be NULL and must outlive the arena. */
void arena_init(struct arena *arena, struct arena_pool *pool, size_t max_size);

/* Gives every block back; the arena is as after arena_init. Accepts a zeroed arena. */
void arena_reset(struct arena *arena);

/* Frees every kept block. No arena may still draw on the pool. */
void arena_pool_finish(struct arena_pool *pool);

/* `size` bytes aligned for any type, not cleared; NULL when out of memory or past max_size. */
void *arena_alloc(struct arena *arena, size_t size);
/* The same, zeroed; count * size is overflow-checked. */
void *arena_zalloc(struct arena *arena, size_t count, size_t size);

/* A copy of s, terminated by a NUL that its length does not count. data is NULL when out of memory. */
struct str arena_copy(struct arena *arena, struct str s);
/* Texts, one after the other; data is NULL when out of memory, or where one of theirs is. */
struct str arena_join(struct arena *arena, const struct str *parts, size_t count);
/* printf into the arena; data is NULL when out of memory. */
struct str arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
struct str arena_vprintf(struct arena *arena, const char *format, va_list args) PRINTF_LIKE(2, 0);

#endif
