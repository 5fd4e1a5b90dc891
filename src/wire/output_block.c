/*
 * The pool of output blocks: last in, first out, for cache locality. Pooled blocks are not wiped, except for keys. They
 * contain ciphertext, or plaintext that was passed to the socket (plain TCP, kTLS) or to SSL_write.
 */
#include "wire/output_block.h"

#include "base/limits.h"
#include "base/saturate.h"

#include <stdlib.h>

struct output_block *output_block_get(struct wire_shared *shared, size_t capacity)
{
    struct output_block *block = shared->free_blocks;

    if (block) {
        shared->free_blocks = block->next;
        shared->free_block_count--;
    }
    if (block && block->capacity != capacity) { /* of a server with other output_buffers */
        free(block);
        block = NULL;
    }
    if (!block) {
        block = malloc(sizeof *block + capacity);
        if (!block)
            return NULL;
    }
    *block = (struct output_block){.capacity = (uint32_t)capacity};
    shared->output_bytes += capacity;
    return block;
}

void output_block_release(struct wire_shared *shared, struct output_block *block)
{
    if (!block)
        return;
    shared->output_bytes = size_sub_sat(shared->output_bytes, block->capacity);
    if (block->gather)
        gather_destroy(shared, block->gather);
    block->gather = NULL;
    if (block->type == BLOCK_KEY)
        explicit_bzero(block->bytes, block->capacity);
    if (shared->free_block_count >= LIMIT_FREE_BLOCKS) {
        free(block);
        return;
    }
    block->next = shared->free_blocks;
    shared->free_blocks = block;
    shared->free_block_count++;
}

void output_block_release_all(struct wire_shared *shared, struct output_block *first)
{
    while (first) {
        struct output_block *next = first->next;

        output_block_release(shared, first);
        first = next;
    }
}

void output_block_pool_finish(struct wire_shared *shared)
{
    while (shared->free_blocks) {
        struct output_block *block = shared->free_blocks;

        shared->free_blocks = block->next;
        free(block);
    }
    shared->free_block_count = 0;
}
