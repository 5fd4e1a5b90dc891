/* Hostile handshakes. */
#include "base/limits.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/err.h>

static const struct {
    const char *bytes;
    size_t length;
    bool http;
    const char *words;
} openings[] = {
#define OPENING(text) text, sizeof(text) - 1
    {OPENING("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), true, "plain HTTP"},
    {OPENING("POST /x HTTP/1.1\r\n"), true, "plain HTTP"},
    {OPENING("DELETE /x HTTP/1.0\r\n"), true, "plain HTTP"},
    {OPENING("OPTIONS * HTTP/1.1\r\n"), true, "plain HTTP"},
    {OPENING("CONNECT a:443 HTTP/1.1\r\n"), true, "plain HTTP"},
    {OPENING("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), true, "plain HTTP"},
    {OPENING("SSH-2.0-OpenSSH_9.2\r\n"), false, "does not use TLS"},
    {OPENING("\0\0\0\0\0\0\0\0\0\0"), false, "does not use TLS"},
    {OPENING("\xff\xff\xff\xff\xff\xff\xff\xff"), false, "does not use TLS"},
    {OPENING("\x16\x03\x01\xff\xff\x01\x00\x00\x00"), false, NULL}, /* an oversize record */
    {OPENING("\x16\x03\x01\x00\x00"), false, NULL},                 /* an empty handshake record */
    {OPENING("\x16\x03\x01\x00\x04\x01\xff\xff\xff"), false, NULL}, /* a ClientHello of 16 MiB */
    {OPENING("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), false, NULL}, /* a ServerHello */
    {OPENING("\x17\x03\x03\x00\x05hello"), false, NULL},            /* application data first */
    {OPENING("\x15\x03\x01\x00\x02\x02\x28"), false, NULL},         /* a fatal alert */
    {OPENING("\x14\x03\x03\x00\x01\x01"), false, NULL},             /* ChangeCipherSpec first */
    {OPENING("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80"), false, NULL}, /* SSL 2 */
};
enum { OPENINGS = sizeof(openings) / sizeof(openings[0]) };

/* Feeds the bytes, `fragment` at a time. Returns the last result of the handshake. */
static int feed_handshake(struct tls_session *session, const char *bytes, size_t length, size_t fragment)
{
    int result = -EAGAIN;

    for (size_t at = 0; at < length && result == -EAGAIN; at += fragment) {
        size_t part = length - at < fragment ? length - at : fragment;
        tls_session_set_input(session, str_of(bytes + at, part));
        result = tls_session_handshake(session);
        ck_assert_uint_eq(ERR_peek_error(), 0);
    }
    return result;
}

START_TEST(bytes_that_are_not_tls_are_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    size_t fragment = _i % 2 ? 1 : 4096;
    char byte;

    pair_open(&pair, &settings, 1);
    int result = feed_handshake(pair.session, openings[_i / 2].bytes, openings[_i / 2].length, fragment);
    ck_assert(result == -EPROTO || !openings[_i / 2].words);
    ck_assert(tls_session_got_plain_http(pair.session) == openings[_i / 2].http);
    if (openings[_i / 2].words)
        ck_assert_msg(strstr(tls_session_error(pair.session), openings[_i / 2].words), "%s",
                      tls_session_error(pair.session));
    if (openings[_i / 2].http)
        ck_assert_uint_eq(pair.wire_length, 0); /* no alert: the response will be plain HTTP */
    if (result == -EPROTO) {
        ck_assert_int_eq(tls_session_handshake(pair.session), -EPROTO);
        ck_assert_int_eq(tls_session_read(pair.session, &byte, 1), -EPROTO);
        ck_assert_int_eq(tls_session_write(pair.session, STR("x")), -EPROTO);
        ck_assert_int_eq(tls_session_update_key(pair.session), -EPROTO);
        size_t length = pair.wire_length;
        tls_session_shutdown(pair.session);
        ck_assert_uint_eq(pair.wire_length, length);
    }
    ck_assert_uint_eq(tls_session_alpn(pair.session).length, 0);
    ck_assert_uint_eq(tls_session_server_name(pair.session).length, 0);
    ck_assert_uint_eq(tls_session_cipher(pair.session).length, 0);
    pair_close(&pair);
}
END_TEST

/* Random bytes after a valid beginning; the seed is the test's number. */
START_TEST(random_bytes_fail)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char bytes[2000];
    unsigned seed = (unsigned)_i;

    pair_open(&pair, &settings, 1);
    for (int round = 0; round < 200; round++) {
        pair_reconnect(&pair);
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (char)(seed = seed * 1103515245 + 12345, seed >> 16);
        memcpy(bytes, "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11);
        ck_assert_int_eq(feed_handshake(pair.session, bytes, sizeof(bytes), 1 + seed % 700), -EPROTO);
    }
    pair_close(&pair);
}
END_TEST

/*
 * A valid first flight with one byte changed, at each position: the handshake fails or waits, and no application data
 * is read.
 */
START_TEST(changed_byte_in_the_first_flight)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char bytes[4096];

    pair_open(&pair, &settings, 1);
    int length = 1;
    for (int at = 0; at < length; at += 3) {
        pair_reconnect(&pair);
        ck_assert_int_eq(SSL_do_handshake(pair.client), -1);
        ERR_clear_error();
        length = BIO_read(SSL_get_wbio(pair.client), bytes, sizeof(bytes));
        bytes[at] = (char)(bytes[at] ^ (1 << _i));
        int result = feed_handshake(pair.session, bytes, (size_t)length, sizeof(bytes));
        ck_assert(result == -EPROTO || result == -EAGAIN);
    }
    pair_close(&pair);
}
END_TEST

/* A flight truncated at any length: the handshake waits for more bytes. */
START_TEST(truncated_flight_waits)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char bytes[4096];

    pair_open(&pair, &settings, 1);
    int length = 5;
    for (int count = 0; count < length; count += 7) {
        pair_reconnect(&pair);
        ck_assert_int_eq(SSL_do_handshake(pair.client), -1);
        ERR_clear_error();
        length = BIO_read(SSL_get_wbio(pair.client), bytes, sizeof(bytes));
        ck_assert_int_eq(feed_handshake(pair.session, bytes, (size_t)count, sizeof(bytes)), -EAGAIN);
        ck_assert_uint_eq(pair.wire_length, 0);
    }
    pair_close(&pair);
}
END_TEST

START_TEST(endless_handshake_is_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    static char bytes[64 * 1024];
    size_t total = 0;
    int result = -EAGAIN;

    /* OpenSSL accepts a limited number of warning alerts. */
    for (size_t i = 0; i + 7 <= sizeof(bytes); i += 7)
        memcpy(bytes + i, "\x15\x03\x01\x00\x02\x01\x5a", 7);
    pair_open(&pair, &settings, 1);
    while (result == -EAGAIN && total < 4 * LIMIT_HANDSHAKE_BYTES) {
        tls_session_set_input(pair.session, str_of(bytes, sizeof(bytes)));
        result = tls_session_handshake(pair.session);
        total += sizeof(bytes);
    }
    ck_assert_int_eq(result, -EPROTO);
    pair_close(&pair);
}
END_TEST

static const struct {
    const char *offered;
    size_t length;
    const char *chosen; /* NULL: rejected */
} protocols[] = {
    {OPENING("\x08http/1.1"), "http/1.1"},
    {OPENING("\x02h2\x08http/1.1"), "http/1.1"},
    {OPENING("\x08http/1.0"), "http/1.0"},
    {OPENING("\x02h2\x02h3"), NULL},
    {OPENING("\x08HTTP/1.1"), NULL},
    {OPENING("\x03"
             "foo"),
     NULL},
};

START_TEST(alpn_is_selected_or_the_handshake_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char byte;

    pair_open(&pair, &settings, 1);
    SSL_set_alpn_protos(pair.client, (const unsigned char *)protocols[_i].offered,
                        (unsigned)protocols[_i].length);
    int result = pair_handshake(&pair);
    if (protocols[_i].chosen) {
        ck_assert_int_eq(result, 0);
        ck_assert(str_equal(tls_session_alpn(pair.session), str_from(protocols[_i].chosen)));
    } else {
        ck_assert_int_eq(result, -EPROTO);
        ck_assert_uint_eq(pair.wire_length, 7);
        ck_assert_mem_eq(pair.wire, "\x15\x03\x03\x00\x02\x02\x78", 7); /* no_application_protocol */
        ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "ALPN"));
        ck_assert_int_eq(pair_client_read(&pair, &byte, 1), -SSL_ERROR_SSL);
    }
    pair_close(&pair);
}
END_TEST

START_TEST(old_versions_get_an_alert)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    SSL_CTX_set_min_proto_version(pair.client_openssl, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(pair.client_openssl, TLS1_1_VERSION);
    SSL_CTX_set_security_level(pair.client_openssl, 0);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), -EPROTO);
    ck_assert_msg(strstr(tls_session_error(pair.session), "none of ssl_protocols"), "%s",
                  tls_session_error(pair.session));
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, bytes_that_are_not_tls_are_rejected, 0, 2 * OPENINGS);
    tcase_add_loop_test(tcase, random_bytes_fail, 0, 3);
    tcase_add_loop_test(tcase, changed_byte_in_the_first_flight, 0, 8);
    tcase_add_test(tcase, truncated_flight_waits);
    tcase_add_test(tcase, endless_handshake_is_rejected);
    tcase_add_loop_test(tcase, alpn_is_selected_or_the_handshake_rejected,
                        0, sizeof(protocols) / sizeof(protocols[0]));
    tcase_add_test(tcase, old_versions_get_an_alert);
}

int main(void)
{
    return run_suite("tls_hostile", add_tests);
}
