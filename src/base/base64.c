/*
 * Base64 decoding for credentials in header fields. Strict, so that each value has one encoding: wrong padding and
 * stray bits are rejected (RFC 4648 3.5).
 */
#include "base/base64.h"

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

struct str base64_decode(struct arena *arena, struct str text)
{
    const struct str none = {NULL, 0};
    size_t length = text.length;
    size_t written = 0;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    char *out;

    if (length % 4 != 0)
        return none;
    while (length > 0 && text.length - length < 2 && text.data[length - 1] == '=')
        length--;
    out = arena_alloc(arena, length * 3 / 4 + 1);
    if (!out)
        return none;
    for (size_t i = 0; i < length; i++) {
        int value = base64_digit(text.data[i]);

        if (value < 0)
            return none;
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[written++] = (char)(bits >> bit_count);
            bits &= (1u << bit_count) - 1;
        }
    }
    if (bits)
        return none;
    return str_of(out, written);
}
