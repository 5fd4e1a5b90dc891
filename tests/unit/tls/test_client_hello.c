#include "tls/client_hello.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/ssl.h>

/*
 * A ClientHello that a test builds: its head, then its extensions. The array has room for one record per byte. The
 * ClientHello of OpenSSL 3.5 is longer than 1 KiB, because it contains a key of ML-KEM.
 */
struct made {
    unsigned char bytes[6 * LIMIT_CLIENT_HELLO];
    size_t length;
};

static void append_bytes(struct made *made, const void *bytes, size_t length)
{
    ck_assert_uint_le(length, sizeof(made->bytes) - made->length);
    memcpy(made->bytes + made->length, bytes, length);
    made->length += length;
}

static void put_number(struct made *made, size_t value, unsigned width)
{
    while (width-- > 0)
        append_bytes(made, &(unsigned char){(unsigned char)(value >> 8 * width)}, 1);
}

static struct made hello_with(const char *extensions, size_t length)
{
    struct made made = {.length = 9};
    const unsigned char head[5] = {22, 3, 1};
    size_t body;

    put_number(&made, 0x0303, 2);
    append_bytes(&made, "01234567890123456789012345678901", 32);
    append_bytes(&made, "\0", 1);              /* no session */
    append_bytes(&made, "\0\2\x13\1", 4);      /* one suite */
    append_bytes(&made, "\1\0", 2);            /* no compression */
    if (extensions) {
        put_number(&made, length, 2);
        append_bytes(&made, extensions, length);
    }
    body = made.length - 9;
    memcpy(made.bytes, head, 3);
    made.bytes[3] = (unsigned char)((body + 4) >> 8);
    made.bytes[4] = (unsigned char)(body + 4);
    made.bytes[5] = 1;
    made.bytes[6] = 0;
    made.bytes[7] = (unsigned char)(body >> 8);
    made.bytes[8] = (unsigned char)body;
    return made;
}

static int read_made(const struct made *made, struct client_hello *out)
{
    return client_hello_read(str_of((const char *)made->bytes, made->length), out);
}

#define EXTENSION(text) text, sizeof(text) - 1

static const struct {
    const char *extensions;
    size_t length;
    int result;
    const char *name;
} rows[] = {
    {NULL, 0, 0, ""},
    {EXTENSION(""), 0, ""},
    {EXTENSION("\0\0\0\x0b\0\x09\0\0\6a.test"), 0, "a.test"},
    {EXTENSION("\0\x17\0\0\0\0\0\x0b\0\x09\0\0\6A.TesT\xff\x01\0\1\0"), 0, "a.test"},
    {EXTENSION("\0\0\0\x0c\0\x0a\0\0\7a.test."), 0, "a.test"},
    {EXTENSION("\0\0\0\x0e\0\x0c\1\0\0\0\0\6a.test"), 0, "a.test"},
    {EXTENSION("\0\0\0\x0b\0\x09\0\0\7a.test"), -EPROTO, NULL},   /* the name is longer than the extension */
    {EXTENSION("\0\0\0\x0b\0\x08\0\0\6a.test"), -EPROTO, NULL},   /* the name is longer than its list */
    {EXTENSION("\0\0\0\x0b\0\x0a\0\0\6a.test"), -EPROTO, NULL},   /* the list is longer than the extension */
    {EXTENSION("\0\0\0\x0c\0\x09\0\0\6a.test"), -EPROTO, NULL},   /* the extension is longer than the list of all */
    {EXTENSION("\0\0\0\2\0\0"), -EPROTO, NULL},                   /* an empty list */
    {EXTENSION("\0\0\0\0"), -EPROTO, NULL},
    {EXTENSION("\0\0\0\5\0\3\0\0\0"), -EPROTO, NULL},             /* an empty name */
    {EXTENSION("\0\0\0\x0b\0\x09\0\0\6a\0test"), -EPROTO, NULL},
    {EXTENSION("\0\0\0\x0b\0\x09\0\0\6a/test"), -EPROTO, NULL},
    {EXTENSION("\0\0\0\x0a\0\x08\0\0\1a\0\0\1b"), -EPROTO, NULL}, /* two names */
    {EXTENSION("\0\0\0\6\0\4\0\0\1a\0\0\0\6\0\4\0\0\1a"), -EPROTO, NULL}, /* the extension twice */
    {EXTENSION("\0"), -EPROTO, NULL},
    {EXTENSION("\0\x17\0"), -EPROTO, NULL},
};

START_TEST(server_name_extension)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct made made = hello_with(rows[i].extensions, rows[i].length);
        struct client_hello hello;
        int result = read_made(&made, &hello);

        ck_assert_msg(result == rows[i].result, "row %zu: %d", i, result);
        if (result == 0)
            ck_assert_msg(str_equal(str_of(hello.name, hello.name_length), str_from(rows[i].name)), "row %zu", i);
        for (size_t length = 0; length < made.length && rows[i].result == 0; length++)
            ck_assert_int_eq(client_hello_read(str_of((const char *)made.bytes, length), &hello), -EAGAIN);
    }
}
END_TEST

static const struct {
    const char *extensions;
    size_t length;
    int result;
    unsigned version;
    const char *alpn;
} spoken[] = {
    {EXTENSION(""), 0, 0x0303, ""},
    {EXTENSION("\0\x2b\0\x05\x04\x03\x04\x03\x03"), 0, 0x0304, ""},
    {EXTENSION("\0\x2b\0\x05\x04\x7a\x7a\x03\x04"), 0, 0x0304, ""}, /* includes an unknown version (RFC 8701, GREASE) */
    {EXTENSION("\0\x2b\0\x03\x02\x03\x05"), 0, 0x0303, ""},
    {EXTENSION("\0\x10\0\x05\0\x03\x02h2"), 0, 0x0303, "h2"},
    {EXTENSION("\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1"), 0, 0x0303, "h2,http/1.1"},
    {EXTENSION("\0\x2b\0\x01\x00"), -EPROTO, 0, NULL},
    {EXTENSION("\0\x2b\0\x04\x03\x03\x04\x03"), -EPROTO, 0, NULL},
    {EXTENSION("\0\x2b\0\x05\x02\x03\x04\x03\x03"), -EPROTO, 0, NULL},
    {EXTENSION("\0\x10\0\x02\0\x00"), -EPROTO, 0, NULL},
    {EXTENSION("\0\x10\0\x05\0\x03\x00h2"), -EPROTO, 0, NULL},
    {EXTENSION("\0\x10\0\x05\0\x03\x03h2"), -EPROTO, 0, NULL},
    {EXTENSION("\0\x10\0\x05\0\x02\x01h2"), -EPROTO, 0, NULL},
};

START_TEST(versions_and_alpn)
{
    for (size_t i = 0; i < sizeof(spoken) / sizeof(spoken[0]); i++) {
        struct made made = hello_with(spoken[i].extensions, spoken[i].length);
        struct client_hello hello;
        int result = read_made(&made, &hello);

        ck_assert_msg(result == spoken[i].result, "row %zu: %d", i, result);
        if (result == 0)
            ck_assert_msg(hello.version == spoken[i].version &&
                              str_equal(str_of(hello.alpn, hello.alpn_length), str_from(spoken[i].alpn)),
                          "row %zu: %x, %.*s", i, hello.version, (int)hello.alpn_length, hello.alpn);
    }
}
END_TEST

/* If the names do not fit, the first ones are kept. */
START_TEST(excess_protocols_are_dropped)
{
    char text[4 + 2 + 3 * 121] = {0, 16, 363 >> 8, (char)(363 + 2 - 256), 363 >> 8, (char)(363 - 256)};
    struct client_hello hello;
    struct made made;

    for (size_t i = 0; i < 3; i++) {
        text[6 + i * 121] = 120;
        memset(text + 7 + i * 121, 'a' + (int)i, 120);
    }
    made = hello_with(text, sizeof(text));
    ck_assert_int_eq(read_made(&made, &hello), 0);
    ck_assert_uint_eq(hello.alpn_length, 241);
    ck_assert_int_eq(hello.alpn[240], 'b');
}
END_TEST

static const struct {
    size_t at;
    unsigned char byte;
} wrong[] = {
    {0, 23}, {0, 0x80}, {0, 'G'},  {1, 2},  {3, 0x41}, {5, 2},  {6, 1},  {8, 42},
    {9, 2},  {43, 33},  {43, 200}, {44, 1}, {45, 3},   {45, 0}, {48, 0}, {48, 9},
};

START_TEST(invalid_heads_are_rejected)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct made made = hello_with("", 0);
        struct client_hello hello;

        made.bytes[wrong[i].at] = wrong[i].byte;
        ck_assert_msg(read_made(&made, &hello) == -EPROTO, "row %zu", i);
    }
}
END_TEST

/* The name in a ClientHello of OpenSSL is found for any record size. */
START_TEST(real_hellos_in_small_records)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *out = BIO_new(BIO_s_mem());
    struct client_hello hello;
    char *bytes;
    long length;

    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    SSL_set_tlsext_host_name(ssl, "Www.Example.com");
    ck_assert_int_le(SSL_connect(ssl), 0);
    length = BIO_get_mem_data(out, &bytes);
    ck_assert_int_eq(client_hello_read(str_of(bytes, (size_t)length), &hello), 0);
    ck_assert(str_equal(str_of(hello.name, hello.name_length), STR("www.example.com")));
    for (size_t size = 1; size < 40; size++) {
        struct made fragments = {.length = 0};

        for (size_t at = 5; at < (size_t)length; at += size) {
            size_t count = (size_t)length - at < size ? (size_t)length - at : size;

            append_bytes(&fragments, "\x16\3\1", 3);
            put_number(&fragments, count, 2);
            append_bytes(&fragments, bytes + at, count);
        }
        ck_assert_int_eq(read_made(&fragments, &hello), 0);
        ck_assert(str_equal(str_of(hello.name, hello.name_length), STR("www.example.com")));
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
}
END_TEST

START_TEST(oversize_hello_is_rejected)
{
    const char large[] = "\x16\3\1\x40\0\1\1\0\0\3\3";
    const char empty[] = "\x16\3\1\0\0";
    struct client_hello hello;

    ck_assert_int_eq(client_hello_read(str_of(large, sizeof(large) - 1), &hello), -EPROTO);
    ck_assert_int_eq(client_hello_read(str_of(empty, sizeof(empty) - 1), &hello), -EPROTO);
    ck_assert_int_eq(client_hello_read(STR(""), &hello), -EAGAIN);
}
END_TEST

/*
 * The scan reports a prefix of a ClientHello in records of `size` bytes as whole if and only if it can be parsed; one
 * scan reads all prefixes in turn.
 */
static void check_prefixes(const struct made *made, size_t size)
{
    static struct made fragments;
    struct client_hello_scan scan = {0};
    struct client_hello hello;

    fragments.length = 0;
    for (size_t at = 5; at < made->length; at += size) {
        size_t part = made->length - at < size ? made->length - at : size;

        append_bytes(&fragments, "\x16\3\1", 3);
        put_number(&fragments, part, 2);
        append_bytes(&fragments, made->bytes + at, part);
    }
    for (size_t length = 0; length <= fragments.length; length++) {
        struct str bytes = str_of((const char *)fragments.bytes, length);

        ck_assert_int_eq(client_hello_is_whole(&scan, bytes), length == fragments.length);
        ck_assert_int_eq(client_hello_read(bytes, &hello), length == fragments.length ? 0 : -EAGAIN);
    }
    append_bytes(&fragments, "more", 4);
    ck_assert(client_hello_is_whole(&scan, str_of((const char *)fragments.bytes, fragments.length)));
}

START_TEST(whole_exactly_if_parsable)
{
    static const char name[] = "\0\0\0\6\0\4\0\0\1a";
    struct made made = hello_with(name, sizeof(name) - 1);

    for (size_t size = 1; size <= made.length; size++)
        check_prefixes(&made, size);
}
END_TEST

/*
 * The scan reports bytes that cannot begin a ClientHello as whole at once, so that the handshake rejects them without
 * waiting for more.
 */
START_TEST(other_bytes_are_whole_at_once)
{
    static const struct {
        const char *bytes;
        size_t length;
        bool whole;
    } cases[] = {
        {"", 0, false},
        {"G", 1, true},
        {"\x16", 1, false},
        {"\x16\3\1\0", 4, false},
        {"\x16\2\1\0\1", 5, true},
        {"\x16\3\1\0\0", 5, true},
        {"\x16\3\1\x7f\xff", 5, true},
        {"\x16\3\1\0\4\2\0\0\1", 9, true},
        {"\x16\3\1\0\4\1\xff\0\0", 9, true},
        {"\x16\3\1\0\4\1\0\0\1", 9, false},
        {"\x16\3\1\0\4\1\0\0\1\x17\3\1\0\1", 14, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct client_hello_scan scan = {0};

        ck_assert_msg(client_hello_is_whole(&scan, str_of(cases[i].bytes, cases[i].length)) == cases[i].whole,
                      "row %zu", i);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, server_name_extension);
    tcase_add_test(tcase, versions_and_alpn);
    tcase_add_test(tcase, excess_protocols_are_dropped);
    tcase_add_test(tcase, invalid_heads_are_rejected);
    tcase_add_test(tcase, real_hellos_in_small_records);
    tcase_add_test(tcase, oversize_hello_is_rejected);
    tcase_add_test(tcase, whole_exactly_if_parsable);
    tcase_add_test(tcase, other_bytes_are_whole_at_once);
}

int main(void)
{
    return run_suite("client_hello", add_tests);
}
