#include "base/limits.h"
#include "tls/aead.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/err.h>

enum { FIRST_RECORDS = 8 }; /* those that OpenSSL decrypts */
enum { HEADER = 5, ALERT_UNEXPECTED_MESSAGE = 10, ALERT_BAD_RECORD_MAC = 20, ALERT_RECORD_OVERFLOW = 22 };

static char record[HEADER + LIMIT_RECORD_PLAINTEXT + 512];
static char into[LIMIT_RECORD_PLAINTEXT + 1];

static void send_records(struct tls_pair *pair, int count)
{
    char byte;

    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(SSL_write(pair->client, "x", 1), 1);
        ck_assert_int_eq(pair_server_read(pair, &byte, 1), 1);
        pair->client_key.sequence++;
    }
}

/* `records`: sent by the client before the test begins. */
static void open_tls13(struct tls_pair *pair, struct tls_settings *settings, bool with_openssl, int records)
{
    *settings = pair_settings();
    pair_open(pair, settings, 1);
    pair->decrypts_with_openssl = with_openssl;
    SSL_CTX_set_min_proto_version(pair->client_openssl, TLS1_3_VERSION);
    pair_reconnect(pair);
    ck_assert_int_eq(pair_handshake(pair), 0);
    send_records(pair, records);
}

/* Seals a whole TLSInnerPlaintext, which may have padding, under the client's key into `record`. */
static size_t seal_inner(struct tls_pair *pair, const char *inner, size_t length)
{
    struct aead *aead = aead_open(AEAD_OPENSSL);
    struct iovec part = {(void *)(uintptr_t)inner, length};
    uint8_t nonce[AEAD_NONCE];
    struct aead_record sealed = {.parts = &part,
                                 .count = 1,
                                 .cipher = pair->client_key.cipher,
                                 .additional = (uint8_t *)record,
                                 .additional_length = HEADER,
                                 .nonce = nonce};
    void *key = NULL;

    memcpy(record, "\x17\x03\x03", 3);
    record[3] = (char)((length + AEAD_TAG) >> 8);
    record[4] = (char)(length + AEAD_TAG);
    memcpy(nonce, pair->client_key.iv, AEAD_NONCE);
    for (int i = 0; i < 8; i++)
        nonce[AEAD_NONCE - 1 - i] ^= (uint8_t)(pair->client_key.sequence >> 8 * i);
    ck_assert(aead->engine->key_set(aead, &key, sealed.cipher, false, pair->client_key.key));
    ck_assert_ptr_nonnull(aead->engine->seal(aead, key, &sealed, (uint8_t *)record + HEADER));
    pair->client_key.sequence++;
    aead->engine->key_free(key);
    aead_close(aead);
    return HEADER + length + AEAD_TAG;
}

static ssize_t read_bytes(struct tls_pair *pair, const char *bytes, size_t length, size_t size)
{
    ssize_t result;

    tls_session_set_input(pair->session, str_of(bytes, length));
    result = tls_session_read(pair->session, into, size);
    (void)tls_session_return_input(pair->session);
    return result;
}

static void expect_alert(struct tls_pair *pair, int alert)
{
    char byte;

    ck_assert_int_eq(pair_client_read(pair, &byte, 1), -SSL_ERROR_SSL);
    ck_assert_int_eq(pair->alert, alert);
}

/*
 * OpenSSL alone, OpenSSL called by the receiver, and the receiver agree, except on a record that only its padding makes
 * too long.
 */
static const struct {
    const char *content;
    size_t length, padding;
    int type;               /* -1: none */
    ssize_t result;
    int alert;              /* of the receiver; 0: none */
} inner_rows[] = {
    {"hello", 5, 0, 23, 5, 0},
    {"hello", 5, 1, 23, 5, 0},
    {"hello", 5, 300, 23, 5, 0},
    {"\0\0\0", 3, 2, 23, 3, 0},
    {"", 0, 100, 23, -EAGAIN, 0},
    {"x", 1, LIMIT_RECORD_PLAINTEXT - 1, 23, 1, 0},
    {"x", 1, LIMIT_RECORD_PLAINTEXT, 23, -EPROTO, ALERT_RECORD_OVERFLOW},
    {"", 0, 1, -1, -EPROTO, ALERT_UNEXPECTED_MESSAGE},
    {"", 0, 200, -1, -EPROTO, ALERT_UNEXPECTED_MESSAGE},
    {"hello", 5, 0, 22, -EPROTO, ALERT_UNEXPECTED_MESSAGE},
    {"hello", 5, 0, 99, -EPROTO, ALERT_UNEXPECTED_MESSAGE},
    {"\x01\x00", 2, 50, 21, 0, 0},
};
enum { INNER_ROWS = sizeof(inner_rows) / sizeof(inner_rows[0]) };

START_TEST(inner_plaintexts_are_read_as_by_openssl)
{
    struct tls_settings settings;
    struct tls_pair pair;
    static char inner[LIMIT_RECORD_PLAINTEXT + 300];
    size_t length = inner_rows[_i / 3].length;

    open_tls13(&pair, &settings, _i % 3 == 0, _i % 3 == 2 ? FIRST_RECORDS : 0);
    memset(inner, 0, sizeof(inner));
    memcpy(inner, inner_rows[_i / 3].content, length);
    if (inner_rows[_i / 3].type >= 0)
        inner[length++] = (char)inner_rows[_i / 3].type;
    length = seal_inner(&pair, inner, length + inner_rows[_i / 3].padding);
    if (inner_rows[_i / 3].alert != ALERT_RECORD_OVERFLOW || _i % 3 == 2)
        ck_assert_int_eq(read_bytes(&pair, record, length, sizeof(into)), inner_rows[_i / 3].result);
    if (inner_rows[_i / 3].result > 0)
        ck_assert_mem_eq(into, inner_rows[_i / 3].content, inner_rows[_i / 3].length);
    if (inner_rows[_i / 3].alert && _i % 3 == 2)
        expect_alert(&pair, inner_rows[_i / 3].alert);
    pair_close(&pair);
}
END_TEST

START_TEST(invalid_headers_are_rejected)
{
    static const struct {
        const char *header;
        int alert;
        const char *words;
    } rows[] = {
        {"\x16\x03\x03\x00\x20", ALERT_UNEXPECTED_MESSAGE, "unexpected type"},
        {"\x15\x03\x03\x00\x02", ALERT_UNEXPECTED_MESSAGE, "unexpected type"},
        {"\x14\x03\x03\x00\x01", ALERT_UNEXPECTED_MESSAGE, "unexpected type"},
        {"\x47\x45\x54\x20\x2f", ALERT_UNEXPECTED_MESSAGE, "unexpected type"},
        {"\x17\x03\x01\x00\x20", 70, "wrong version"},
        {"\x17\x03\x03\x41\x01", ALERT_RECORD_OVERFLOW, "too long"},
        {"\x17\x03\x03\xff\xff", ALERT_RECORD_OVERFLOW, "too long"},
        {"\x17\x03\x03\x00\x00", ALERT_BAD_RECORD_MAC, "could not be decrypted"},
        {"\x17\x03\x03\x00\x10", ALERT_BAD_RECORD_MAC, "could not be decrypted"},
    };
    struct tls_settings settings;
    struct tls_pair pair;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_tls13(&pair, &settings, false, _i / 2 * FIRST_RECORDS);
        memset(record, 0, 100);
        memcpy(record, rows[i].header, HEADER);
        if (_i % 2) /* the header in two parts */
            ck_assert_int_eq(read_bytes(&pair, record, 3, sizeof(into)), -EAGAIN);
        ck_assert_int_eq(read_bytes(&pair, record + 3 * (_i % 2), 100, sizeof(into)), -EPROTO);
        ck_assert_msg(strstr(tls_session_error(pair.session), rows[i].words), "%zu: %s", i,
                      tls_session_error(pair.session));
        ck_assert_int_eq(read_bytes(&pair, record, 1, sizeof(into)), -EPROTO);
        expect_alert(&pair, rows[i].alert);
        pair_close(&pair);
    }
}
END_TEST

/*
 * OpenSSL's count ends at the first records, and grows by one with each alert that is passed to it: a recorded record
 * that has this number is not accepted.
 */
START_TEST(replay_with_the_number_that_openssl_expects)
{
    struct tls_settings settings;
    struct tls_pair pair;
    char recorded[256];
    int length;

    open_tls13(&pair, &settings, false, FIRST_RECORDS);
    if (_i)
        ck_assert_int_eq(pair_forge(&pair, RECORD_ALERT, STR("\x01\x5a"), into, sizeof(into)), -EAGAIN);
    length = (int)seal_inner(&pair, "first\x17", 6);
    memcpy(recorded, record, (size_t)length);
    ck_assert_int_eq(read_bytes(&pair, recorded, (size_t)length, sizeof(into)), 5);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pair_forge(&pair, RECORD_APPLICATION_DATA, STR("more"), into, sizeof(into)), 4);
    ck_assert_int_eq(read_bytes(&pair, recorded, (size_t)length, sizeof(into)), -EPROTO);
    ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "could not be decrypted"));
    expect_alert(&pair, ALERT_BAD_RECORD_MAC);
    pair_close(&pair);
}
END_TEST

/* Before and after the receiver has derived each key. */
START_TEST(key_updates_between_data)
{
    struct tls_settings settings;
    struct tls_pair pair;

    open_tls13(&pair, &settings, false, 0);
    for (int round = 0; round < 8; round++) {
        send_records(&pair, round * 3);
        pair_exchange(&pair, 20000);
        ck_assert_int_eq(
            SSL_key_update(pair.client, round % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        ck_assert_int_eq(SSL_do_handshake(pair.client), 1);
    }
    send_records(&pair, 2 * FIRST_RECORDS);
    ck_assert_uint_eq(pair.keys, 1 + 4);
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

START_TEST(key_update_in_five_records)
{
    struct tls_settings settings;
    struct tls_pair pair;

    open_tls13(&pair, &settings, false, _i);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(pair.keys, 1);
        ck_assert_int_eq(pair_forge(&pair, RECORD_HANDSHAKE, str_of(&"\x18\0\0\x01\x01"[i], 1), into, sizeof(into)),
                         -EAGAIN);
    }
    ck_assert_uint_eq(pair.keys, 2);
    pair_close(&pair);
}
END_TEST

START_TEST(fatal_alert_fails_the_session)
{
    struct tls_settings settings;
    struct tls_pair pair;

    open_tls13(&pair, &settings, false, _i * FIRST_RECORDS);
    ck_assert_int_eq(pair_forge(&pair, RECORD_APPLICATION_DATA, STR("data"), into, sizeof(into)), 4);
    ck_assert_int_eq(pair_forge(&pair, RECORD_ALERT, STR("\x02\x50"), into, sizeof(into)), -EPROTO);
    ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "internal error"));
    pair_close(&pair);
}
END_TEST

START_TEST(data_after_close_notify_are_not_delivered)
{
    struct tls_settings settings;
    struct tls_pair pair;

    open_tls13(&pair, &settings, false, _i * FIRST_RECORDS);
    ck_assert_int_eq(pair_forge(&pair, RECORD_ALERT, STR("\x01\x00"), into, sizeof(into)), 0);
    ck_assert_int_eq(pair_forge(&pair, RECORD_APPLICATION_DATA, STR("data"), into, sizeof(into)), 0);
    pair_close(&pair);
}
END_TEST

START_TEST(empty_records_are_limited)
{
    struct tls_settings settings;
    struct tls_pair pair;

    open_tls13(&pair, &settings, false, FIRST_RECORDS);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LIMIT_EMPTY_RECORDS; i++)
            ck_assert_int_eq(pair_forge(&pair, RECORD_APPLICATION_DATA, STR(""), into, sizeof(into)), -EAGAIN);
        if (round < 2)
            ck_assert_int_eq(pair_forge(&pair, RECORD_APPLICATION_DATA, STR("x"), into, sizeof(into)), 1);
    }
    ck_assert_int_eq(pair_forge(&pair, RECORD_APPLICATION_DATA, STR(""), into, sizeof(into)), -EPROTO);
    ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "empty records"));
    expect_alert(&pair, ALERT_UNEXPECTED_MESSAGE);
    pair_close(&pair);
}
END_TEST

/* Records of different sizes, received in pieces of every size and read into buffers of different sizes. */
START_TEST(pieces_and_small_buffers_give_the_same_bytes)
{
    static const size_t sizes[] = {1, 7, 100, LIMIT_RECORD_PLAINTEXT - 1, LIMIT_RECORD_PLAINTEXT, sizeof(into)};
    static char data[3 * LIMIT_RECORD_PLAINTEXT], got[sizeof(data)];
    struct tls_settings settings;
    struct tls_pair pair;
    size_t total = 5000 + (size_t)_i * 4000;

    for (size_t i = 0; i < total; i++)
        data[i] = (char)(i * 13 + i / 1000);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ssize_t count = 0;
        size_t used = 0;

        open_tls13(&pair, &settings, false, (int)i % 2 * FIRST_RECORDS);
        pair.fragment = _i % 3 ? 1 + (size_t)_i * 997 : 3;
        ck_assert_int_eq(SSL_write(pair.client, data, (int)total), (int)total);
        while (used < total && (count = pair_server_read(&pair, got + used, sizes[i])) > 0)
            used += (size_t)count;
        ck_assert_uint_eq(used, total);
        ck_assert(memcmp(got, data, total) == 0);
        pair_close(&pair);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, inner_plaintexts_are_read_as_by_openssl, 0, 3 * INNER_ROWS);
    tcase_add_loop_test(tcase, invalid_headers_are_rejected, 0, 4);
    tcase_add_loop_test(tcase, replay_with_the_number_that_openssl_expects, 0, 2);
    tcase_add_test(tcase, key_updates_between_data);
    tcase_add_loop_test(tcase, key_update_in_five_records, 0, 2 * FIRST_RECORDS);
    tcase_add_loop_test(tcase, fatal_alert_fails_the_session, 0, 2);
    tcase_add_loop_test(tcase, data_after_close_notify_are_not_delivered, 0, 2);
    tcase_add_test(tcase, empty_records_are_limited);
    tcase_add_loop_test(tcase, pieces_and_small_buffers_give_the_same_bytes, 0, 11);
}

int main(void)
{
    return run_suite("tls_receiver", add_tests);
}
