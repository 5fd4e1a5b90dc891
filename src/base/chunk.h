/*
 * A piece of a body for the wire: bytes in memory, a span of a file, or bytes in a pipe. A chunk owns neither the
 * memory nor the descriptor nor the pipe: see http/body.h.
 */
#ifndef BASE_CHUNK_H
#define BASE_CHUNK_H

#include "base/str.h"
#include "base/transfer.h"

struct pipe;

enum chunk_kind { CHUNK_BYTES = 1, CHUNK_FILE = 2, CHUNK_PIPE = 4 }; /* also the bits of `accept` in http/body.h */

struct chunk {
    enum chunk_kind kind;
    bool ends_turn;                 /* other responses wait that may be sent after this chunk: see wire_limit_unsent */
    union {
        struct str bytes;
        struct {
            int fd;
            /* File bytes from `at` on that this and later spans send, or UINT32_MAX; 0: unknown. */
            uint32_t run;
            int64_t at;
            uint64_t length;
            uint64_t whole;         /* bytes of the transfer that the span is a part of; at least `length` is assumed */
        } file;
        struct {
            struct pipe *source;    /* wire/pipe_pool.h */
            size_t length;
            uint64_t whole;         /* bytes of the transfer that these are a part of; UINT64_MAX: unknown */
        } pipe;
    };
    struct transfer *transfer;      /* of the response that the chunk belongs to; it outlives the chunk. NULL: none */
};

/* Bytes left in the chunk. */
static inline uint64_t chunk_length(const struct chunk *chunk)
{
    switch (chunk->kind) {
    case CHUNK_BYTES:
        return chunk->bytes.length;
    case CHUNK_FILE:
        return chunk->file.length;
    case CHUNK_PIPE:
        return chunk->pipe.length;
    }
    return 0;
}

/* Removes the first `count` bytes, at most all. */
static inline void chunk_advance(struct chunk *chunk, uint64_t count)
{
    uint64_t length = chunk_length(chunk);

    if (count > length)
        count = length;
    switch (chunk->kind) {
    case CHUNK_BYTES:
        chunk->bytes.data += count;
        chunk->bytes.length -= count;
        break;
    case CHUNK_FILE:
        chunk->file.at += (int64_t)count;
        chunk->file.length -= count;
        break;
    case CHUNK_PIPE:
        chunk->pipe.length -= count;
        break;
    }
}

#endif
