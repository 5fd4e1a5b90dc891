/*
 * Decodes UTF-8: overlong sequences, surrogates and numbers above U+10FFFF are not well-formed.
 */
#include "base/utf8.h"

/* The length of a sequence by its first byte; 0: no sequence begins with it. */
static size_t sequence_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

size_t utf8_decode(struct str text, uint32_t *out_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text.data;
    size_t length = sequence_length(bytes[0]);
    uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);

    if (length == 0 || length > text.length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *out_code = code;
    return length;
}
