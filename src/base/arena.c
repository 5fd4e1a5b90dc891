/*
 * Bump allocation in blocks. An allocation larger than a block gets a separate block, and the current block stays in
 * use.
 */
#include "base/arena.h"

#include "base/limits.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT alignof(max_align_t)

struct arena_block {
    alignas(max_align_t) struct arena_block *next;
    size_t size;                    /* of the block, this header included */
};

void arena_init(struct arena *arena, struct arena_pool *pool, size_t max_size)
{
    *arena = (struct arena){.pool = pool, .budget = pool ? &pool->budget : NULL, .max_size = max_size};
}

void arena_set_budget(struct arena *arena, struct memory_budget *budget)
{
    memory_budget_move(arena->budget, budget, arena->size);
    arena->budget = budget;
}

static void block_release(struct arena_pool *pool, struct arena_block *block)
{
    if (!pool || block->size != ARENA_BLOCK_SIZE || pool->free_count >= pool->max_free) {
        free(block);
        return;
    }
    block->next = pool->free_blocks;
    pool->free_blocks = block;
    pool->free_count++;
}

void arena_reset(struct arena *arena)
{
    struct arena_block *block = arena->blocks;

    while (block) {
        struct arena_block *next = block->next;

        block_release(arena->pool, block);
        block = next;
    }
    memory_budget_release(arena->budget, arena->size);
    arena_init(arena, arena->pool, arena->max_size);
}

void arena_pool_finish(struct arena_pool *pool)
{
    while (pool->free_blocks) {
        struct arena_block *block = pool->free_blocks;

        pool->free_blocks = block->next;
        free(block);
    }
    pool->free_count = 0;
}

static struct arena_block *block_allocate(struct arena_pool *pool, size_t size)
{
    struct arena_block *block;

    if (size != ARENA_BLOCK_SIZE || !pool || !pool->free_blocks)
        return malloc(size);
    block = pool->free_blocks;
    pool->free_blocks = block->next;
    pool->free_count--;
    return block;
}

static struct arena_block *block_get(struct arena *arena, size_t size)
{
    struct arena_block *block;

    if (arena->max_size && (size > arena->max_size || arena->size > arena->max_size - size))
        return NULL;
    if (!memory_budget_reserve(arena->budget, size))
        return NULL;
    block = block_allocate(arena->pool, size);
    if (!block) {
        memory_budget_release(arena->budget, size);
        return NULL;
    }
    block->size = size;
    arena->size += size;
    return block;
}

static void *alloc_large(struct arena *arena, size_t size)
{
    struct arena_block *block = block_get(arena, sizeof(*block) + size);

    if (!block)
        return NULL;
    if (arena->blocks) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = NULL;
        arena->blocks = block;
    }
    return block + 1;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block;
    char *memory;

    if (size > SIZE_MAX - sizeof(*block) - ALIGNMENT)
        return NULL;
    size = size ? (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1) : ALIGNMENT;
    if (size > (size_t)(arena->end - arena->next)) {
        if (size > ARENA_BLOCK_SIZE - sizeof(*block))
            return alloc_large(arena, size);
        block = block_get(arena, ARENA_BLOCK_SIZE);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->next = (char *)(block + 1);
        arena->end = (char *)block + block->size;
    }
    memory = arena->next;
    arena->next += size;
    return memory;
}

void *arena_zalloc(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    void *memory;

    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    memory = arena_alloc(arena, total);
    if (memory)
        memset(memory, 0, total);
    return memory;
}

struct str arena_copy(struct arena *arena, struct str s)
{
    char *memory = s.length == SIZE_MAX ? NULL : arena_alloc(arena, s.length + 1);

    if (!memory)
        return (struct str){NULL, 0};
    if (s.length)
        memcpy(memory, s.data, s.length);
    memory[s.length] = '\0';
    return (struct str){memory, s.length};
}

struct str arena_join(struct arena *arena, const struct str *parts, size_t count)
{
    size_t length = 0;
    char *memory, *at;

    for (size_t i = 0; i < count; i++) {
        if (!parts[i].data || __builtin_add_overflow(length, parts[i].length, &length))
            return (struct str){NULL, 0};
    }
    memory = at = length == SIZE_MAX ? NULL : arena_alloc(arena, length + 1);
    if (!memory)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < count; i++) {
        memcpy(at, parts[i].data, parts[i].length);
        at += parts[i].length;
    }
    *at = '\0';
    return (struct str){memory, length};
}

struct str arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    char *memory;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    memory = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (memory)
        vsnprintf(memory, (size_t)length + 1, format, again);
    va_end(again);
    return (struct str){memory, memory ? (size_t)length : 0};
}

struct str arena_printf(struct arena *arena, const char *format, ...)
{
    struct str text;
    va_list args;

    va_start(args, format);
    text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

struct str arena_print_number(struct arena *arena, uint64_t number)
{
    return arena_printf(arena, "%llu", (unsigned long long)number);
}

struct str arena_print_seconds(struct arena *arena, uint64_t us)
{
    unsigned long long ms = us / 1000;

    return arena_printf(arena, "%llu.%03llu", ms / 1000, ms % 1000);
}
