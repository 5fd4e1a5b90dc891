/*
 * A stateless HPACK encoder (RFC 7541): static table and literals without indexing, no Huffman code. Encoded fields
 * do not depend on earlier ones, so a header block may be dropped or reordered before it is sent.
 */
#ifndef HTTP_H2_HPACK_ENCODE_H
#define HTTP_H2_HPACK_ENCODE_H

#include "base/str.h"

/* Upper bound of the bytes of one field. */
static inline size_t hpack_field_bound(struct str name, struct str value)
{
    return name.length + value.length + 21; /* an octet and two lengths of at most ten octets */
}
#define HPACK_STATUS_BOUND  5

/*
 * Sets the size of the decoder's dynamic table to 0 (RFC 7541 6.3). Every header block begins with it, so that the
 * encoder can ignore SETTINGS_HEADER_TABLE_SIZE, and blocks may be sent in any order.
 */
#define HPACK_NO_TABLE      ((char)0x20)

/* Each function encodes at `at`, which has room, and returns the end. `status` is 100 to 999. */
char *hpack_encode_status(char *at, int status);
/* The name is converted to lower case (RFC 9113 8.2). */
char *hpack_encode_field(char *at, struct str name, struct str value);

#endif
