/*
 * A header block being received: HEADERS and its CONTINUATION frames, decoded piece by piece by libnghttp2.
 */
#ifndef HTTP_H2_HEADER_BLOCK_H
#define HTTP_H2_HEADER_BLOCK_H

#include "http/h2/frame.h"
#include "http/h2/hpack_strings.h"

struct nghttp2_hd_inflater;

struct h2_header_block {
    /* Owned; created with the first block. Its table lasts as long as the connection. */
    struct nghttp2_hd_inflater *inflater;
    uint32_t stream;                /* of the unfinished block; 0: none, any frame may follow */
    uint32_t encoded;               /* bytes of the unfinished block received so far */
    uint32_t decoded;               /* size of its fields (RFC 9113 10.5.1) */
    struct hpack_strings strings;   /* of a block of several frames: only such a block can have too long strings */
};

typedef void h2_field_decoded(void *owner, struct str name, struct str value);

/* Starts the block of a stream. H2_NO_ERROR or H2_INTERNAL_ERROR: out of memory. */
enum h2_error h2_header_block_start(struct h2_header_block *block, uint32_t stream);
/*
 * Decodes the next fragment and calls `field` for each field; name and value are valid until it returns. value.data
 * is NULL if name or value is longer than LIMIT_H2_STRING. `last`: the block ends with the fragment. H2_NO_ERROR, or
 * the code of a connection error, also when a limit is exceeded.
 */
enum h2_error h2_header_block_decode(struct h2_header_block *block, struct str fragment, bool last,
                                     h2_field_decoded *field, void *owner);
/* Frees the decoder. Accepts a zeroed struct. */
void h2_header_block_close(struct h2_header_block *block);

#endif
