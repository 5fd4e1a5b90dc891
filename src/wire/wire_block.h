/*
 * Output blocks: what is to be sent, assembled in place. Pooled per worker, so
 * that an answer costs no malloc and an idle connection holds none. Private to wire.
 *
 *      0 ..... from ........ filled ............................ capacity
 *      (sent)  ready to leave | record head, open plaintext ...
 *
 * Bytes before `filled` never change once they are there, so a block may be added to while its front is being sent.
 */
#ifndef WIRE_WIRE_BLOCK_H
#define WIRE_WIRE_BLOCK_H

#include "wire/wire.h"

/* A struct record_key for the kernel, in force behind everything before it; wiped when the block is put. */
enum { BLOCK_KEY = 1 };

struct wire_block {
    struct wire_block *next;
    uint32_t capacity;
    uint32_t from;                  /* first byte that has not left */
    uint32_t filled;                /* end of the sealed records, or of plain bytes */
    uint32_t open;                  /* plaintext bytes of the record that is still open, from filled + its head */
    struct op read;                 /* of a cold span's bytes into this block, as long as it is its wire's `reading` */
    struct wire *reader;            /* the wire that asked for it */
    struct iovec parts[2];          /* of the send in flight whose first block this is: of it, and of the next one */
    uint8_t type;                   /* RECORD_ALERT ...: one record of that type for the kernel; BLOCK_KEY; 0: bytes */
    char bytes[];
};

/* An empty block of that capacity, from the pool where one fits. NULL when out of memory. */
struct wire_block *wire_block_get(struct wire_shared *shared, size_t capacity);
/* Back to the pool. Accepts NULL. */
void wire_block_put(struct wire_shared *shared, struct wire_block *block);
/* Puts the block and all that follow it. */
void wire_block_put_all(struct wire_shared *shared, struct wire_block *first);
/* Frees what the pool keeps. */
void wire_block_pool_finish(struct wire_shared *shared);

#endif
