/*
 * Blocks of memory in which output is assembled. Pooled per worker: a response needs no malloc, and an idle connection
 * holds no block. Private to wire/.
 *
 *      0 ..... from ........ filled ............................ capacity
 *      (sent)  ready to send | record head, open plaintext ...
 *
 * Bytes before `filled` never change, so that bytes can be appended while the front is being sent.
 */
#ifndef WIRE_OUTPUT_BLOCK_H
#define WIRE_OUTPUT_BLOCK_H

#include "wire/gather.h"

/*
 * A value of output_block.type: the block contains a struct record_key, which is passed to the kernel after all earlier
 * blocks were sent. The key is wiped when the block is released.
 */
enum { BLOCK_KEY = 1 };

struct output_block {
    struct output_block *next;
    uint32_t capacity;
    uint32_t from;                  /* first unsent byte */
    uint32_t filled;                /* end of the sealed records, or of plain bytes */
    uint32_t open;                  /* plaintext bytes of the open record, which begin at filled + its head */
    struct op read;                 /* disk read of an uncached span into this block while it is its wire's `reading` */
    struct wire *reader;            /* the wire of `read` */
    struct gather *gather;          /* owned: parts of mapped files between the bytes; NULL: none */
    struct iovec parts[2];          /* of the send in flight that begins with this block: this one and the next one */
    uint8_t type;                   /* RECORD_ALERT ...: one record of that type for the kernel; BLOCK_KEY; 0: bytes */
    char bytes[];
};

/* True if bytes, or parts of mapped files, are ready to send. */
static inline bool output_block_is_ready(const struct output_block *block)
{
    return block->filled > block->from || gather_is_waiting(block->gather);
}
/* Takes an empty block of the given capacity, from the pool if possible. NULL when out of memory. */
struct output_block *output_block_get(struct wire_shared *shared, size_t capacity);
/* Returns a block to the pool. Accepts NULL. */
void output_block_release(struct wire_shared *shared, struct output_block *block);
/* Releases the block and all that follow it. */
void output_block_release_all(struct wire_shared *shared, struct output_block *first);
/* Frees the pooled blocks. */
void output_block_pool_finish(struct wire_shared *shared);

#endif
