/*
 * Header blocks of several frames, with strings that are longer than the decoder accepts.
 */
#include "http/h2/header_block.h"

#include "base/limits.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define FRAME   16384
#define LONG    (LIMIT_H2_STRING + 1)
#define TEXT(bytes) {bytes, sizeof(bytes) - 1}

static struct h2_header_block block;
static char encoded[LIMIT_H2_HEADER_BLOCK + 16];
static size_t encoded_length;
static char decoded[4096]; /* "name: value\n"; long strings as their length, NULL as "-" */

static void add_bytes(const char *bytes, size_t length)
{
    ck_assert_uint_le(length, sizeof(encoded) - encoded_length);
    memcpy(encoded + encoded_length, bytes, length);
    encoded_length += length;
}

static void add_length(unsigned flag, size_t length)
{
    encoded[encoded_length++] = (char)(flag | (length < 127 ? length : 127));
    if (length < 127)
        return;
    for (length -= 127; length >= 128; length >>= 7)
        encoded[encoded_length++] = (char)(0x80 | (length & 0x7f));
    encoded[encoded_length++] = (char)length;
}

/* A string literal: `length` bytes `fill`. */
static void add_string(unsigned flag, size_t length, char fill)
{
    add_length(flag, length);
    memset(encoded + encoded_length, fill, length);
    encoded_length += length;
}

static void print(struct str text, const char *end)
{
    char shown[100];

    if (!text.data)
        snprintf(shown, sizeof(shown), "-%s", end);
    else if (text.length > 50)
        snprintf(shown, sizeof(shown), "<%zu>%s", text.length, end);
    else
        snprintf(shown, sizeof(shown), "%.*s%s", (int)text.length, text.data, end);
    ck_assert_uint_lt(strlen(decoded) + strlen(shown), sizeof(decoded));
    strcat(decoded, shown);
}

static void field_decoded(void *owner, struct str name, struct str value)
{
    ck_assert_ptr_eq(owner, &block);
    print(name, ": ");
    print(value, "\n");
}

/* Decodes `encoded` in fragments of `piece` bytes, the last of which may be empty. */
static enum h2_error decode(size_t piece)
{
    struct str rest = str_of(encoded, encoded_length);
    enum h2_error error = h2_header_block_start(&block, 1);

    decoded[0] = '\0';
    while (!error && !str_empty(rest)) {
        error = h2_header_block_decode(&block, str_slice(rest, 0, piece), false, field_decoded, &block);
        rest = str_skip(rest, piece);
    }
    return error ? error : h2_header_block_decode(&block, STR(""), true, field_decoded, &block);
}

static const size_t pieces[] = {1, 2, 7, 1000, FRAME, LIMIT_H2_HEADER_BLOCK};

/* :method GET; "a: b" and "c: <127>" enter the table; then the long field, which empties it; then "d: e" enters. */
#define BEFORE "\x82\x40\1a\1b\x40\1c\x7f\0"

static const struct {
    unsigned first;        /* of the representation */
    size_t name, value;    /* lengths; name 0: the indexed name `first` */
    unsigned flag;         /* HUFFMAN */
    const char *fields;    /* between those before and "d: e" */
    bool keeps_table;
} long_fields[] = {
    {0x40, 1, LONG, 0, "n: -\n", false},
    {0x40, LONG, 1, 0, "<65536>: -\n", false},
    {0x40, LONG, LONG, 0, "<65536>: -\n", false},
    {0x40, 1, LONG, 0x80, "n: -\n", false},
    {0x40, 1, LIMIT_H2_STRING, 0, "n: <65536>\n", false},
    {0x44, 0, LONG, 0, ":path: -\n", false},
    {0x00, 1, LONG, 0, "n: -\n", true},
    {0x10, 1, 3 * LIMIT_H2_STRING, 0, "n: -\n", true},
    {0x04, 0, LONG, 0, ":path: -\n", true},
};

static void encode_row(int row)
{
    char first = (char)long_fields[row].first;

    encoded_length = 0;
    add_bytes(BEFORE, sizeof(BEFORE) - 1);
    memset(encoded + encoded_length, 'v', 127);
    encoded_length += 127;
    add_bytes(&first, 1);
    if (long_fields[row].name)
        add_string(0, long_fields[row].name, 'n');
    add_string(long_fields[row].flag, long_fields[row].value, 'v');
    add_bytes("\x40\1d\1e\xbe", 6); /* and an indexed field: "d: e" again */
}

START_TEST(long_strings_are_shortened)
{
    char expected[200];

    encode_row(_i);
    snprintf(expected, sizeof(expected), ":method: GET\na: b\nc: <127>\n%sd: e\nd: e\n", long_fields[_i].fields);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        block = (struct h2_header_block){0};
        ck_assert_int_eq(decode(pieces[i]), H2_NO_ERROR);
        ck_assert_str_eq(decoded, expected);
        /* Index 63 is "c" only if the long field has not emptied the table. */
        encoded[0] = (char)0xbf;
        encoded_length = 1;
        ck_assert_int_eq(decode(1), long_fields[_i].keeps_table ? H2_NO_ERROR : H2_COMPRESSION_ERROR);
        ck_assert_str_eq(decoded, long_fields[_i].keeps_table ? "c: <127>\n" : "");
        h2_header_block_close(&block);
        encode_row(_i);
    }
}
END_TEST

static const struct {
    struct str bytes;
    enum h2_error error;
} unusual[] = {
    {TEXT("\x3f\xe1\x1f\x82"), H2_NO_ERROR},                      /* a new table size of two bytes */
    {TEXT("\x7f\0\1a\x82"), H2_COMPRESSION_ERROR},                /* the name of index 63, which does not exist */
    {TEXT("\x00\x7f\xff\xff\xff\xff\x7f"), H2_COMPRESSION_ERROR}, /* a length of 35 bits */
    {TEXT("\x00\x7f\x80\x80\x80\x80\x80"), H2_COMPRESSION_ERROR},
    {TEXT("\x00\x01"), H2_COMPRESSION_ERROR},                     /* ends within a name */
    {TEXT("\x00\x01" "a"), H2_COMPRESSION_ERROR},
    {TEXT("\x00\x01" "a\x7f"), H2_COMPRESSION_ERROR},
    {TEXT("\x00\x01" "a\x7f\x82\xff\x03" "v"), H2_COMPRESSION_ERROR},
    {TEXT("\xff"), H2_COMPRESSION_ERROR},
    {TEXT("\x80"), H2_COMPRESSION_ERROR},                         /* index 0 */
    {TEXT("\x00\x01" "a\x81\xff"), H2_COMPRESSION_ERROR},         /* an invalid Huffman code */
    {TEXT("\x00\x00\x00"), H2_NO_ERROR},
};

START_TEST(unusual_blocks_are_decoded_or_rejected)
{
    for (size_t piece = 1; piece <= unusual[_i].bytes.length; piece++) {
        block = (struct h2_header_block){0};
        encoded_length = 0;
        add_bytes(unusual[_i].bytes.data, unusual[_i].bytes.length);
        ck_assert_int_eq(decode(piece), unusual[_i].error);
        h2_header_block_close(&block);
    }
}
END_TEST

int main(void)
{
    const struct suite_loop loops[] = {
        {long_strings_are_shortened, COUNT(long_fields)},
        {unusual_blocks_are_decoded_or_rejected, COUNT(unusual)},
    };

    return suite_run_loops("h2_header_block", NULL, 0, loops, COUNT(loops));
}
