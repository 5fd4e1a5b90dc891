/*
 * Reads the structure of representations (RFC 7541 6) byte by byte. Lengths of strings are held back until they are
 * complete, and encoded again.
 */
#include "http/h2/hpack_strings.h"

#include "base/limits.h"

enum { FIELD, INDEX, LENGTH, LENGTH_REST, CONTENT, EXCESS };

#define HUFFMAN 0x80
#define MORE    0x80                /* the integer continues (RFC 7541 5.1) */
#define PREFIX  127                 /* the length does not fit into the first byte */

_Static_assert(LIMIT_H2_STRING < 1u << 21, "HPACK_STRING_HEAD: three bytes after the first");

/* The state after an integer or a string. */
static void next_part(struct hpack_strings *strings)
{
    strings->state = strings->literals ? LENGTH : FIELD;
}

/* The first byte of a representation: the number of its strings, and whether its index continues. */
static void start_field(struct hpack_strings *strings, uint8_t first)
{
    unsigned mask = first & 0x80 ? 0x7f : first & 0x40 ? 0x3f : first & 0x20 ? 0x1f : 0xf;
    unsigned index = first & mask;
    bool literal = !(first & 0x80) && (first & 0xe0) != 0x20;

    strings->shortened = false;
    strings->literals = !literal ? 0 : index ? 1 : 2;
    if (index == mask)
        strings->state = INDEX;
    else
        next_part(strings);
}

static void start_content(struct hpack_strings *strings)
{
    strings->excess = strings->length > LIMIT_H2_STRING ? strings->length - LIMIT_H2_STRING : 0;
    strings->length -= strings->excess;
    strings->shortened |= strings->excess != 0;
    strings->literals--;
    strings->state = CONTENT;
    if (strings->length == 0)
        next_part(strings);
}

/* Encodes the length. A shortened string is marked as plain, since a truncated Huffman code is invalid. */
static struct str encode_length(struct hpack_strings *strings)
{
    uint8_t flag = strings->huffman && !strings->excess ? HUFFMAN : 0;
    uint32_t rest = strings->length - PREFIX;
    size_t at = 0;

    strings->head[at++] = (char)(flag | PREFIX);
    for (; rest >= MORE && at < sizeof(strings->head) - 1; rest >>= 7)
        strings->head[at++] = (char)(rest | MORE);
    strings->head[at++] = (char)rest;
    return str_of(strings->head, at);
}

static void start_length(struct hpack_strings *strings, uint8_t first)
{
    strings->huffman = first & HUFFMAN;
    strings->length = first & PREFIX;
    strings->shift = 0;
    strings->state = LENGTH_REST;
    if (strings->length < PREFIX)
        start_content(strings);
}

/* Adds the next byte of a length. At most four are accepted (28 bits), which suffices for any permitted block. */
static enum h2_error continue_length(struct hpack_strings *strings, uint8_t byte, struct str *out)
{
    if (strings->shift > 21)
        return H2_COMPRESSION_ERROR;
    strings->length += (uint32_t)(byte & 0x7f) << strings->shift;
    strings->shift += 7;
    if (byte & MORE)
        return H2_NO_ERROR;
    start_content(strings);
    *out = encode_length(strings);
    return H2_NO_ERROR;
}

static enum h2_error decode_byte(struct hpack_strings *strings, struct str byte, struct str *out)
{
    uint8_t value = (uint8_t)byte.data[0];

    switch (strings->state) {
    case FIELD:
        start_field(strings, value);
        break;
    case INDEX:
        if (!(value & MORE))
            next_part(strings);
        break;
    case LENGTH:
        start_length(strings, value);
        if (strings->state == LENGTH_REST)
            return H2_NO_ERROR; /* held back */
        break;
    case LENGTH_REST:
        return continue_length(strings, value, out);
    }
    *out = byte;
    return H2_NO_ERROR;
}

static struct str consume_content(struct hpack_strings *strings, struct str *in)
{
    uint32_t *left = strings->state == CONTENT ? &strings->length : &strings->excess;
    struct str part = str_slice(*in, 0, *left);
    bool dropped = strings->state == EXCESS;

    *in = str_skip(*in, part.length);
    *left -= (uint32_t)part.length;
    if (*left == 0 && !dropped && strings->excess)
        strings->state = EXCESS;
    else if (*left == 0)
        next_part(strings);
    return dropped ? (struct str){NULL, 0} : part;
}

enum h2_error hpack_strings_next(struct hpack_strings *strings, struct str *in, struct str *out)
{
    struct str byte = str_slice(*in, 0, 1);

    *out = (struct str){NULL, 0};
    if (strings->state == CONTENT || strings->state == EXCESS) {
        *out = consume_content(strings, in);
        return H2_NO_ERROR;
    }
    *in = str_skip(*in, 1);
    return decode_byte(strings, byte, out);
}

bool hpack_strings_incomplete(const struct hpack_strings *strings)
{
    return strings->state != FIELD;
}
