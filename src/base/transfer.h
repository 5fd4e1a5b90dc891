/*
 * The accounting of one response: its bytes, and the way most of them were sent. The owner of a response passes it with
 * each chunk; the wire updates it until the chunk is sent (wire/wire.h defines the values of path and reason).
 */
#ifndef BASE_TRANSFER_H
#define BASE_TRANSFER_H

#include <stdint.h>

struct file_view;

struct transfer {
    uint64_t largest;               /* bytes of the longest chunk, which determines path and reason */
    uint64_t total;                 /* bytes so far */
    uint64_t in_memory;             /* of these, the bytes of chunks in memory (CHUNK_BYTES) */
    uint64_t zero_copy;             /* $bytes_zero_copy */
    struct file_view *view;         /* set by the wire: the mapped part of the file being sent; NULL: none */
    uint8_t path;                   /* enum wire_path */
    uint8_t reason;                 /* enum ktls_reason or wire_reason */
    /* Set by the wire: readahead was requested up to this KiB of the file; 0: the page cache had all its bytes. */
    uint32_t fetched_kib;
};

#endif
