/*
 * Shortens the string literals of a header block that are longer than libnghttp2's decoder accepts (RFC 7541 5.2),
 * which would otherwise end the connection. A field with such a string is larger than the dynamic table and empties it
 * (RFC 7541 4.4); the shortened field does the same.
 */
#ifndef HTTP_H2_HPACK_STRINGS_H
#define HTTP_H2_HPACK_STRINGS_H

#include "http/h2/frame.h"

#define HPACK_STRING_HEAD 4         /* bytes of the encoded length of a string of at most LIMIT_H2_STRING bytes */

struct hpack_strings {
    uint8_t state;                  /* enum of hpack_strings.c; 0: before a representation of a field */
    uint8_t literals;               /* strings of the current representation that follow */
    uint8_t shift;                  /* of the next bits of `length` */
    bool huffman;                   /* the current string */
    bool shortened;                 /* a string of the current representation was shortened: the field has no meaning */
    uint32_t length;                /* of the current string; in its content: the bytes left */
    uint32_t excess;                /* the bytes after these, which are dropped */
    char head[HPACK_STRING_HEAD];
};

/*
 * Takes bytes from *in, and sets *out to the next bytes to decode, which may be empty: a part of *in, or valid until
 * the next call. They belong to one representation. H2_COMPRESSION_ERROR: a length has over four further bytes.
 */
enum h2_error hpack_strings_next(struct hpack_strings *strings, struct str *in, struct str *out);
/* True within a representation: the block must not end here. */
bool hpack_strings_incomplete(const struct hpack_strings *strings);

#endif
