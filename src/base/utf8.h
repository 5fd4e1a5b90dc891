/*
 * Characters of texts in UTF-8 (RFC 3629).
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Decodes the character at the start of a text that is not empty. Returns its length in bytes; 0: it is not
 * well-formed.
 */
size_t utf8_decode(struct str text, uint32_t *out_code);

/* Returns the length of the character at the start of a text that is not empty, as utf8_decode. */
static inline size_t utf8_length(struct str text)
{
    uint32_t code;

    return (unsigned char)text.data[0] < 0x80 ? 1 : utf8_decode(text, &code);
}

/* True for control characters: C0, DEL and C1. Terminals interpret them. */
static inline bool utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

#endif
