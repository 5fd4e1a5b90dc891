/*
 * Builds each length-prefixed part in its own buffer.
 */
#include "binary.h"

#include <check.h>

enum { HANDSHAKE = 22, CLIENT_HELLO = 1, SERVER_NAME = 0, ALPN = 16, VERSIONS = 43, UNKNOWN = 0x7777 };

static void append_bytes(struct buffer *into, const char *bytes, size_t length)
{
    if (buffer_append(into, str_of(bytes, length)) < 0)
        ck_abort_msg("out of memory");
}

static void put_number(struct buffer *into, size_t number, unsigned width)
{
    while (width-- > 0)
        append_bytes(into, &(char){(char)(number >> 8 * width)}, 1);
}

static void put_times(struct buffer *into, const char *bytes, size_t length, size_t times)
{
    while (times-- > 0)
        append_bytes(into, bytes, length);
}

/* Appends the length of the part and the part. Frees the part. */
static void put_part(struct buffer *into, unsigned width, struct buffer *part)
{
    put_number(into, part->length, width);
    append_bytes(into, part->data, part->length);
    buffer_finish(part);
}

void make_tlvs(struct buffer *into, size_t n)
{
    struct buffer rest = {0};

    append_bytes(&rest, "\12\0\0\1\12\0\0\2\22\147\0\120", 12); /* 10.0.0.1:4711 to 10.0.0.2:80 */
    put_times(&rest, "\356\0\0", 3, n);
    append_bytes(into, "\r\n\r\n\0\r\nQUIT\n\x21\x11", 14);
    put_part(into, 2, &rest);
    append_bytes(into, "GET /return HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 61);
}

static void put_extension(struct buffer *into, size_t type, struct buffer *content)
{
    put_number(into, type, 2);
    put_part(into, 2, content);
}

/* Appends a ClientHello with these suites and extensions, in records of at most `record` bytes, and an empty line. */
static void put_hello(struct buffer *into, struct buffer *suites, struct buffer *extensions, size_t record)
{
    struct buffer body = {0}, message = {0};
    struct str rest;

    append_bytes(&body, "\3\3", 2);
    put_times(&body, "r", 1, 32); /* random */
    put_number(&body, 0, 1);      /* no session */
    put_part(&body, 2, suites);
    append_bytes(&body, "\1\0", 2);        /* no compression */
    put_part(&body, 2, extensions);
    put_number(&message, CLIENT_HELLO, 1);
    put_part(&message, 3, &body);
    for (rest = buffer_str(&message); rest.length > 0; rest = str_skip(rest, record)) {
        struct str piece = str_slice(rest, 0, record);

        put_number(into, HANDSHAKE, 1);
        append_bytes(into, "\3\1", 2);
        put_number(into, piece.length, 2);
        append_bytes(into, piece.data, piece.length);
    }
    buffer_finish(&message);
    append_bytes(into, "\r\n\r\n", 4);
}

static void put_usual_hello(struct buffer *into, struct buffer *extensions, size_t record)
{
    struct buffer suites = {0};

    append_bytes(&suites, "\x13\1", 2);
    put_hello(into, &suites, extensions, record);
}

/* A ClientHello with one extension, whose content is a length-prefixed list. */
static void put_hello_with_list(struct buffer *into, size_t type, unsigned width, struct buffer *list)
{
    struct buffer content = {0}, extensions = {0};

    put_part(&content, width, list);
    put_extension(&extensions, type, &content);
    put_usual_hello(into, &extensions, 16384);
}

void make_hello_extensions(struct buffer *into, size_t n)
{
    struct buffer extensions = {0};

    put_times(&extensions, "\x77\x77\0\0", 4, n);
    put_usual_hello(into, &extensions, 16384);
}

void make_hello_name(struct buffer *into, size_t n)
{
    struct buffer name = {0}, list = {0};

    put_times(&name, "a", 1, n);
    put_number(&list, 0, 1);
    put_part(&list, 2, &name);
    put_hello_with_list(into, SERVER_NAME, 2, &list);
}

void make_hello_names(struct buffer *into, size_t n)
{
    struct buffer list = {0};

    put_times(&list, "\1\0\0", 3, n);
    put_hello_with_list(into, SERVER_NAME, 2, &list);
}

void make_hello_alpn(struct buffer *into, size_t n)
{
    struct buffer list = {0};

    put_times(&list, "\1a", 2, n);
    put_hello_with_list(into, ALPN, 2, &list);
}

void make_hello_versions(struct buffer *into, size_t n)
{
    struct buffer list = {0};

    put_times(&list, "\3\4", 2, n);
    put_hello_with_list(into, VERSIONS, 1, &list);
}

void make_hello_ciphers(struct buffer *into, size_t n)
{
    struct buffer suites = {0}, extensions = {0};

    put_times(&suites, "\x13\1", 2, n);
    put_hello(into, &suites, &extensions, 16384);
}

void make_hello_records(struct buffer *into, size_t n)
{
    struct buffer content = {0}, extensions = {0};

    put_times(&content, "a", 1, n);
    put_extension(&extensions, UNKNOWN, &content);
    put_usual_hello(into, &extensions, 1);
}
