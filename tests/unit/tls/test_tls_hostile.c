#include "base/limits.h"
#include "tls_pair.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>

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

static void open_version(struct tls_pair *pair, struct tls_settings *settings, int version)
{
    *settings = pair_settings();
    settings->ciphers = STR("ALL");
    pair_open(pair, settings, 1);
    SSL_CTX_set_max_proto_version(pair->client_openssl, version);
    pair_reconnect(pair);
    ck_assert_int_eq(pair_handshake(pair), 0);
}

START_TEST(changed_record_is_rejected)
{
    struct tls_settings settings;
    struct tls_pair pair;
    char bytes[256], into[64];

    open_version(&pair, &settings, _i / 2 ? TLS1_3_VERSION : TLS1_2_VERSION);
    pair_exchange(&pair, 30);
    ck_assert_int_eq(SSL_write(pair.client, "hello", 5), 5);
    int length = BIO_read(SSL_get_wbio(pair.client), bytes, sizeof(bytes));
    bytes[_i % 2 ? length - 1 : 6] ^= 1;
    tls_session_set_input(pair.session, str_of(bytes, (size_t)length));
    unsigned records = pair.records;
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), -EPROTO);
    ck_assert_uint_eq(pair.records, records + 1); /* the alert, sealed by the record layer */
    ck_assert_msg(strstr(tls_session_error(pair.session), "could not be decrypted"), "%s",
                  tls_session_error(pair.session));
    ck_assert_int_eq(pair_client_read(&pair, into, 1), -SSL_ERROR_SSL);
    pair_close(&pair);
}
END_TEST

START_TEST(replayed_record_is_rejected)
{
    struct tls_settings settings;
    struct tls_pair pair;
    char bytes[256], into[64];

    open_version(&pair, &settings, _i ? TLS1_3_VERSION : TLS1_2_VERSION);
    ck_assert_int_eq(SSL_write(pair.client, "hello", 5), 5);
    int length = BIO_read(SSL_get_wbio(pair.client), bytes, sizeof(bytes));
    tls_session_set_input(pair.session, str_of(bytes, (size_t)length));
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), 5);
    tls_session_set_input(pair.session, str_of(bytes, (size_t)length));
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), -EPROTO);
    pair_close(&pair);
}
END_TEST

START_TEST(oversize_record_is_rejected)
{
    struct tls_settings settings;
    struct tls_pair pair;
    static char bytes[5 + 65535] = "\x17\x03\x03\xff\xff";
    char into[64];

    open_version(&pair, &settings, _i ? TLS1_3_VERSION : TLS1_2_VERSION);
    tls_session_set_input(pair.session, str_of(bytes, sizeof(bytes)));
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), -EPROTO);
    pair_close(&pair);
}
END_TEST

/* RFC 5246 7.4.1.1: the server sends the warning no_renegotiation and does not renegotiate. */
START_TEST(renegotiation_is_rejected)
{
    static const char *const ciphers[] = {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256"};
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char into[64];

    settings.ciphers = STR("ALL");
    pair_open(&pair, &settings, 1);
    SSL_CTX_set_max_proto_version(pair.client_openssl, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(pair.client_openssl, ciphers[_i]);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 100);
    size_t length = pair.wire_length;
    ck_assert_int_eq(SSL_renegotiate(pair.client), 1);
    ck_assert_int_le(SSL_do_handshake(pair.client), 0);
    ck_assert_uint_gt(BIO_ctrl_pending(SSL_get_wbio(pair.client)), 100);
    ck_assert_int_eq(pair_server_read(&pair, into, sizeof(into)), -EAGAIN);
    ck_assert_uint_gt(pair.wire_length, length);
    ck_assert_uint_lt(pair.wire_length, length + 100);
    ck_assert_uint_eq((uint8_t)pair.wire[length], RECORD_ALERT);
    ck_assert_uint_eq(pair.keys, _i ? 0 : 1);
    ck_assert_int_le(SSL_do_handshake(pair.client), 0);
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
    ERR_clear_error();
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

/* Invalid records, sealed under the client's key. */
static const struct {
    uint8_t type;
    const char *plaintext;
    size_t length;
    ssize_t result;
    unsigned keys; /* number of keys after the record */
} forged[] = {
    {RECORD_HANDSHAKE, OPENING("\x18\0\0\x01\x00"), -EAGAIN, 1}, /* KeyUpdate, valid */
    {RECORD_HANDSHAKE, OPENING("\x18\0\0\x01\x01"), -EAGAIN, 2}, /* KeyUpdate with update_requested */
    {RECORD_HANDSHAKE, OPENING("\x18\0\0\x01\x02"), -EPROTO, 1}, /* an invalid request_update: RFC 8446 4.6.3 */
    {RECORD_HANDSHAKE, OPENING("\x18\0\0\x02\x00\x00"), -EPROTO, 1},
    {RECORD_HANDSHAKE, OPENING("\x18\0\0\0"), -EPROTO, 1},
    {RECORD_HANDSHAKE, OPENING("\x18\0\0\x01\x00\x18\0\0\x01\x00"), -EPROTO, 1}, /* two messages: RFC 8446 5.1 */
    {RECORD_HANDSHAKE, OPENING("\x18\xff\xff\xff\x00"), -EPROTO, 1},
    {RECORD_HANDSHAKE, OPENING("\x01\0\0\x04\x03\x03\0\0"), -EPROTO, 1}, /* ClientHello */
    {RECORD_HANDSHAKE, OPENING("\x04\0\0\x04\0\0\0\0"), -EPROTO, 1},     /* NewSessionTicket from the client */
    {RECORD_HANDSHAKE, OPENING("\x0b\0\0\x04\0\0\0\0"), -EPROTO, 1},     /* Certificate without a request */
    {RECORD_HANDSHAKE, OPENING(""), -EPROTO, 1},
    {RECORD_ALERT, OPENING("\x01\x00"), 0, 1}, /* close_notify */
    {RECORD_ALERT, OPENING("\x02\x28"), -EPROTO, 1},
    {RECORD_ALERT, OPENING("\x01"), -EPROTO, 1},
    {RECORD_ALERT, OPENING("\x01\x00\x00"), -EPROTO, 1},
    {RECORD_ALERT, OPENING(""), -EPROTO, 1},
    {20, OPENING("\x01"), -EPROTO, 1},              /* ChangeCipherSpec, encrypted */
    {24, OPENING("\x01\x00\x10hello"), -EPROTO, 1}, /* heartbeat */
    {99, OPENING("x"), -EPROTO, 1},
    {RECORD_APPLICATION_DATA, OPENING(""), -EAGAIN, 1},
    {RECORD_APPLICATION_DATA, OPENING("x"), 1, 1},
};
enum { FORGED = sizeof(forged) / sizeof(forged[0]) };

START_TEST(invalid_encrypted_records)
{
    struct tls_settings settings;
    struct tls_pair pair;
    char into[16];

    open_version(&pair, &settings, TLS1_3_VERSION);
    ssize_t result = pair_forge(&pair, forged[_i].type, str_of(forged[_i].plaintext, forged[_i].length), into,
                                sizeof(into));
    ck_assert_int_eq(result, forged[_i].result);
    ck_assert_uint_eq(pair.keys, forged[_i].keys);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    pair_close(&pair);
}
END_TEST

/* A record that is valid once, repeated many times: the connection ends. */
START_TEST(repeated_records_end_the_connection)
{
    static const struct {
        uint8_t type;
        const char *plaintext;
        size_t length;
    } floods[] = {
        {RECORD_ALERT, OPENING("\x01\x5a")}, /* user_canceled */
        {RECORD_APPLICATION_DATA, OPENING("")},
    };
    struct tls_settings settings;
    struct tls_pair pair;
    char into[16];
    ssize_t result = -EAGAIN;
    int rounds = 0;

    open_version(&pair, &settings, TLS1_3_VERSION);
    while (result == -EAGAIN && rounds++ < 1000)
        result = pair_forge(&pair, floods[_i].type, str_of(floods[_i].plaintext, floods[_i].length), into,
                            sizeof(into));
    ck_assert_int_eq(result, -EPROTO);
    pair_close(&pair);
}
END_TEST

/* A KeyUpdate in five records of one byte is one KeyUpdate. */
START_TEST(key_update_in_pieces)
{
    struct tls_settings settings;
    struct tls_pair pair;
    char into[16];

    open_version(&pair, &settings, TLS1_3_VERSION);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(pair.keys, 1);
        ck_assert_int_eq(
            pair_forge(&pair, RECORD_HANDSHAKE, str_of(&"\x18\0\0\x01\x01"[i], 1), into, sizeof(into)),
            -EAGAIN);
    }
    ck_assert_uint_eq(pair.keys, 2);
    pair_close(&pair);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls_hostile");
    TCase *opening = tcase_create("opening"), *later = tcase_create("later");
    SRunner *runner;

    tcase_set_timeout(opening, 60);
    tcase_add_loop_test(opening, bytes_that_are_not_tls_are_rejected, 0, 2 * OPENINGS);
    tcase_add_loop_test(opening, random_bytes_fail, 0, 3);
    tcase_add_loop_test(opening, changed_byte_in_the_first_flight, 0, 8);
    tcase_add_test(opening, truncated_flight_waits);
    tcase_add_test(opening, endless_handshake_is_rejected);
    tcase_add_loop_test(opening, alpn_is_selected_or_the_handshake_rejected,
                        0, sizeof(protocols) / sizeof(protocols[0]));
    tcase_add_test(opening, old_versions_get_an_alert);
    suite_add_tcase(suite, opening);
    tcase_add_loop_test(later, changed_record_is_rejected, 0, 4);
    tcase_add_loop_test(later, replayed_record_is_rejected, 0, 2);
    tcase_add_loop_test(later, oversize_record_is_rejected, 0, 2);
    tcase_add_loop_test(later, renegotiation_is_rejected, 0, 2);
    tcase_add_loop_test(later, invalid_encrypted_records, 0, FORGED);
    tcase_add_loop_test(later, repeated_records_end_the_connection, 0, 2);
    tcase_add_test(later, key_update_in_pieces);
    suite_add_tcase(suite, later);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
