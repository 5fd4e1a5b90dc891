/*
 * Parses a ClientHello with one cursor over the message and the records that carry it. Each length is subtracted
 * from the enclosing one, so that no part exceeds its container.
 */
#include "tls/client_hello.h"

#include <errno.h>
#include <stdint.h>

enum {
    RECORD_HANDSHAKE_TYPE = 22,
    RECORD_HEADER = 5,
    MESSAGE_CLIENT_HELLO = 1,
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_VERSIONS = 43,
    VERSION_OLDEST = 0x0301,
    VERSION_NEWEST = 0x0304,
    NAME_HOST = 0,
    RANDOM_BYTES = 32,
    SESSION_ID_MAX = 32,
};

struct cursor {
    struct str rest;
    size_t record;                  /* bytes left of the current record */
    int error;                      /* the first error; all later reads return 0 */
};

static void cursor_fail(struct cursor *cursor, int error)
{
    if (!cursor->error)
        cursor->error = error;
}

static uint8_t raw_byte(struct cursor *cursor)
{
    uint8_t byte;

    if (str_empty(cursor->rest))
        cursor_fail(cursor, -EAGAIN);
    if (cursor->error)
        return 0;
    byte = (uint8_t)cursor->rest.data[0];
    cursor->rest = str_skip(cursor->rest, 1);
    return byte;
}

/* Reads a record header: type, version 3.x, length, neither empty nor too long. */
static void next_record(struct cursor *cursor)
{
    uint8_t type = raw_byte(cursor);

    if (!cursor->error && type != RECORD_HANDSHAKE_TYPE)
        cursor_fail(cursor, -EPROTO);
    if (raw_byte(cursor) != 3)
        cursor_fail(cursor, -EPROTO);
    (void)raw_byte(cursor);
    cursor->record = (size_t)raw_byte(cursor) << 8;
    cursor->record |= raw_byte(cursor);
    if (cursor->record == 0 || cursor->record > LIMIT_RECORD_PLAINTEXT)
        cursor_fail(cursor, -EPROTO);
}

/* Reads a number of `width` bytes out of the `left` bytes of the enclosing part. */
static size_t read_uint(struct cursor *cursor, unsigned width, size_t *left)
{
    size_t value = 0;

    if (*left < width) {
        cursor_fail(cursor, -EPROTO);
        return 0;
    }
    *left -= width;
    while (width-- > 0 && !cursor->error) {
        if (cursor->record == 0)
            next_record(cursor);
        if (cursor->error)
            return 0;
        value = value << 8 | raw_byte(cursor);
        cursor->record--;
    }
    return cursor->error ? 0 : value;
}

/* Reads the length of a part and subtracts it from the enclosing one. */
static size_t read_part_length(struct cursor *cursor, unsigned width, size_t *left)
{
    size_t length = read_uint(cursor, width, left);

    if (length > *left) {
        cursor_fail(cursor, -EPROTO);
        return 0;
    }
    *left -= length;
    return length;
}

static void skip_bytes(struct cursor *cursor, size_t count)
{
    while (count > 0 && !cursor->error)
        (void)read_uint(cursor, 1, &count);
}

/* Letters, digits, "-" and "_": other bytes occur in no certificate and no configuration. */
static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
}

static void read_host_name(struct cursor *cursor, size_t length, struct client_hello *hello)
{
    if (length == 0 || length > sizeof(hello->name) || hello->name_length > 0) {
        cursor_fail(cursor, -EPROTO);
        return;
    }
    while (length > 0 && !cursor->error) {
        char byte = str_lower((char)read_uint(cursor, 1, &length));

        if (!cursor->error && !is_name_byte(byte))
            cursor_fail(cursor, -EPROTO);
        hello->name[hello->name_length++] = byte;
    }
    if (hello->name_length > 1 && hello->name[hello->name_length - 1] == '.')
        hello->name_length--;
}

static void read_server_name(struct cursor *cursor, size_t left, struct client_hello *hello)
{
    size_t list = read_part_length(cursor, 2, &left);

    if (left > 0 || list == 0)
        cursor_fail(cursor, -EPROTO);
    while (list > 0 && !cursor->error) {
        size_t type = read_uint(cursor, 1, &list);
        size_t length = read_part_length(cursor, 2, &list);

        if (type == NAME_HOST)
            read_host_name(cursor, length, hello);
        else
            skip_bytes(cursor, length);
    }
}

static void record_version(struct client_hello *hello, size_t version)
{
    if (version >= VERSION_OLDEST && version <= VERSION_NEWEST && version > hello->version)
        hello->version = (unsigned)version;
}

static void read_versions(struct cursor *cursor, size_t left, struct client_hello *hello)
{
    size_t list = read_part_length(cursor, 1, &left);

    if (left > 0 || list == 0 || list % 2)
        cursor_fail(cursor, -EPROTO);
    while (list > 0 && !cursor->error)
        record_version(hello, read_uint(cursor, 2, &list));
}

static void add_alpn(struct client_hello *hello, char byte)
{
    hello->alpn[hello->alpn_length++] = byte;
}

/* Names that do not fit are left out. */
static void read_alpn(struct cursor *cursor, size_t left, struct client_hello *hello)
{
    size_t list = read_part_length(cursor, 2, &left);

    if (left > 0 || list == 0)
        cursor_fail(cursor, -EPROTO);
    while (list > 0 && !cursor->error) {
        size_t length = read_part_length(cursor, 1, &list);

        if (length == 0)
            cursor_fail(cursor, -EPROTO);
        if (hello->alpn_length + length + 1 > sizeof(hello->alpn)) {
            skip_bytes(cursor, length);
            continue;
        }
        if (hello->alpn_length > 0)
            add_alpn(hello, ',');
        while (length > 0 && !cursor->error)
            add_alpn(hello, (char)read_uint(cursor, 1, &length));
    }
}

static void read_extensions(struct cursor *cursor, size_t left, struct client_hello *hello)
{
    bool named = false;

    while (left > 0 && !cursor->error) {
        size_t type = read_uint(cursor, 2, &left);
        size_t length = read_part_length(cursor, 2, &left);

        if (type == EXTENSION_SERVER_NAME && named)
            cursor_fail(cursor, -EPROTO);
        named |= type == EXTENSION_SERVER_NAME;
        if (type == EXTENSION_SERVER_NAME)
            read_server_name(cursor, length, hello);
        else if (type == EXTENSION_ALPN)
            read_alpn(cursor, length, hello);
        else if (type == EXTENSION_VERSIONS)
            read_versions(cursor, length, hello);
        else
            skip_bytes(cursor, length);
    }
}

static void read_body(struct cursor *cursor, size_t left, struct client_hello *hello)
{
    size_t length;

    if (read_uint(cursor, 1, &left) != 3)
        cursor_fail(cursor, -EPROTO);
    record_version(hello, 0x0300 + read_uint(cursor, 1, &left));
    if (left < RANDOM_BYTES) {
        cursor_fail(cursor, -EPROTO);
        return;
    }
    left -= RANDOM_BYTES;
    skip_bytes(cursor, RANDOM_BYTES);
    length = read_part_length(cursor, 1, &left);
    if (length > SESSION_ID_MAX)
        cursor_fail(cursor, -EPROTO);
    skip_bytes(cursor, length);
    length = read_part_length(cursor, 2, &left);
    if (!cursor->error && (length == 0 || length % 2))
        cursor_fail(cursor, -EPROTO);
    skip_bytes(cursor, length);
    length = read_part_length(cursor, 1, &left);
    if (!cursor->error && length == 0)
        cursor_fail(cursor, -EPROTO);
    skip_bytes(cursor, length);
    if (left == 0) /* TLS 1.2 may have no extensions at all */
        return;
    length = read_part_length(cursor, 2, &left);
    if (left > 0)
        cursor_fail(cursor, -EPROTO);
    read_extensions(cursor, length, hello);
}

/* Copies the message's type and length from this record. False if they have not arrived. */
static bool scan_message_header(struct client_hello_scan *scan, struct str bytes, size_t at, size_t length)
{
    for (size_t i = scan->content; i < sizeof(scan->message_header) && i < scan->content + length; i++) {
        if (at + i - scan->content >= bytes.length)
            return false;
        scan->message_header[i] = (uint8_t)bytes.data[at + i - scan->content];
    }
    return true;
}

/* The length of the message, with its type and length fields. */
static size_t message_length(const struct client_hello_scan *scan)
{
    return 4 + ((size_t)scan->message_header[1] << 16 | (size_t)scan->message_header[2] << 8 | scan->message_header[3]);
}

bool client_hello_is_whole(struct client_hello_scan *scan, struct str bytes)
{
    while (scan->content < 4 || scan->content < message_length(scan)) {
        const uint8_t *header = (const uint8_t *)bytes.data + scan->record_offset;
        size_t length;

        if (scan->content >= 4 &&
            (scan->message_header[0] != MESSAGE_CLIENT_HELLO || message_length(scan) > 4 + LIMIT_CLIENT_HELLO))
            return true;
        if (scan->record_offset + RECORD_HEADER > bytes.length)
            return bytes.length > 0 && (uint8_t)bytes.data[0] != RECORD_HANDSHAKE_TYPE;
        length = (size_t)header[3] << 8 | header[4];
        if (header[0] != RECORD_HANDSHAKE_TYPE || header[1] != 3 || length == 0 || length > LIMIT_RECORD_PLAINTEXT)
            return true;
        if (!scan_message_header(scan, bytes, scan->record_offset + RECORD_HEADER, length))
            return false;
        scan->record_offset += RECORD_HEADER + length;
        scan->content += length;
    }
    return bytes.length >= scan->record_offset - (scan->content - message_length(scan));
}

int client_hello_read(struct str bytes, struct client_hello *out_hello)
{
    struct cursor cursor = {.rest = bytes};
    struct client_hello hello = {.name_length = 0};
    size_t left = 4;
    size_t type = read_uint(&cursor, 1, &left);
    size_t length = read_uint(&cursor, 3, &left);

    if (!cursor.error && (type != MESSAGE_CLIENT_HELLO || length > LIMIT_CLIENT_HELLO))
        cursor_fail(&cursor, -EPROTO);
    read_body(&cursor, length, &hello);
    if (cursor.error == 0)
        *out_hello = hello;
    return cursor.error;
}
