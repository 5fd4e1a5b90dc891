/* Hostile records after the handshake. */
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/err.h>

#define BYTES(text) text, sizeof(text) - 1

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

/* Invalid records, sealed under the client's key. */
static const struct {
    uint8_t type;
    const char *plaintext;
    size_t length;
    ssize_t result;
    unsigned keys; /* number of keys after the record */
} forged[] = {
    {RECORD_HANDSHAKE, BYTES("\x18\0\0\x01\x00"), -EAGAIN, 1}, /* KeyUpdate, valid */
    {RECORD_HANDSHAKE, BYTES("\x18\0\0\x01\x01"), -EAGAIN, 2}, /* KeyUpdate with update_requested */
    {RECORD_HANDSHAKE, BYTES("\x18\0\0\x01\x02"), -EPROTO, 1}, /* an invalid request_update: RFC 8446 4.6.3 */
    {RECORD_HANDSHAKE, BYTES("\x18\0\0\x02\x00\x00"), -EPROTO, 1},
    {RECORD_HANDSHAKE, BYTES("\x18\0\0\0"), -EPROTO, 1},
    {RECORD_HANDSHAKE, BYTES("\x18\0\0\x01\x00\x18\0\0\x01\x00"), -EPROTO, 1}, /* two messages: RFC 8446 5.1 */
    {RECORD_HANDSHAKE, BYTES("\x18\xff\xff\xff\x00"), -EPROTO, 1},
    {RECORD_HANDSHAKE, BYTES("\x01\0\0\x04\x03\x03\0\0"), -EPROTO, 1}, /* ClientHello */
    {RECORD_HANDSHAKE, BYTES("\x04\0\0\x04\0\0\0\0"), -EPROTO, 1},     /* NewSessionTicket from the client */
    {RECORD_HANDSHAKE, BYTES("\x0b\0\0\x04\0\0\0\0"), -EPROTO, 1},     /* Certificate without a request */
    {RECORD_HANDSHAKE, BYTES(""), -EPROTO, 1},
    {RECORD_ALERT, BYTES("\x01\x00"), 0, 1}, /* close_notify */
    {RECORD_ALERT, BYTES("\x02\x28"), -EPROTO, 1},
    {RECORD_ALERT, BYTES("\x01"), -EPROTO, 1},
    {RECORD_ALERT, BYTES("\x01\x00\x00"), -EPROTO, 1},
    {RECORD_ALERT, BYTES(""), -EPROTO, 1},
    {20, BYTES("\x01"), -EPROTO, 1},              /* ChangeCipherSpec, encrypted */
    {24, BYTES("\x01\x00\x10hello"), -EPROTO, 1}, /* heartbeat */
    {99, BYTES("x"), -EPROTO, 1},
    {RECORD_APPLICATION_DATA, BYTES(""), -EAGAIN, 1},
    {RECORD_APPLICATION_DATA, BYTES("x"), 1, 1},
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
        {RECORD_ALERT, BYTES("\x01\x5a")}, /* user_canceled */
        {RECORD_APPLICATION_DATA, BYTES("")},
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

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, changed_record_is_rejected, 0, 4);
    tcase_add_loop_test(tcase, replayed_record_is_rejected, 0, 2);
    tcase_add_loop_test(tcase, oversize_record_is_rejected, 0, 2);
    tcase_add_loop_test(tcase, renegotiation_is_rejected, 0, 2);
    tcase_add_loop_test(tcase, invalid_encrypted_records, 0, FORGED);
    tcase_add_loop_test(tcase, repeated_records_end_the_connection, 0, 2);
    tcase_add_test(tcase, key_update_in_pieces);
}

int main(void)
{
    return run_suite("tls_hostile_records", add_tests);
}
