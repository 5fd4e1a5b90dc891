/* Sessions with each cipher suite: data in both directions, nonces, tickets. */
#include "suites.h"

#include <errno.h>

START_TEST(every_suite_transfers_both_ways)
{
    const struct suite *suite = &suites[_i / 2];
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    open_suite(&pair, suite, &settings);
    pair.fragment = _i % 2 ? 1 : 0;
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_uint_eq(pair.keys, suite->cipher ? 1 : 0);
    ck_assert_uint_eq(pair.key.cipher, suite->cipher);
    ck_assert(tls_session_has_key(pair.session) == (suite->cipher != RECORD_NONE));
    ck_assert(str_equal(tls_session_cipher(pair.session), str_from(suite->name)));
    ck_assert(str_equal(tls_session_protocol(pair.session), str_from(SSL_get_version(pair.client))));
    for (size_t size = 1; size < 70000; size = size * 5 + 3)
        pair_exchange(&pair, size);
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

/*
 * The controls that OpenSSL sends to a BIO: the BIO accepts a key for sending, and declines a key for receiving or of
 * an unknown kind.
 */
START_TEST(rule_01_offers_to_receive_are_declined)
{
    enum { SET_KTLS = 72, GET_SEND = 73, GET_RECEIVE = 76 };
    struct tls_settings settings = pair_settings();
    struct record_key key = {.version = RECORD_TLS_1_3, .cipher = RECORD_AES_128_GCM};
    union ktls_key layout;
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    BIO *bio = SSL_get_wbio(pair.session->ssl);
    ck_assert_uint_gt(ktls_key_write(&key, &layout), 0);
    ck_assert_int_eq(BIO_ctrl(bio, SET_KTLS, 0, &layout), 0);
    ck_assert_uint_eq(pair.keys, 0);
    ck_assert_int_eq(BIO_ctrl(bio, GET_SEND, 0, NULL), 0);
    layout.head.cipher_type = TLS_CIPHER_AES_CCM_128;
    ck_assert_int_eq(BIO_ctrl(bio, SET_KTLS, 1, &layout), 0);
    layout.head.cipher_type = TLS_CIPHER_AES_GCM_128;
    ck_assert_int_eq(BIO_ctrl(bio, SET_KTLS, 1, &layout), 1);
    ck_assert_uint_eq(pair.keys, 1);
    ck_assert_int_eq(BIO_ctrl(bio, GET_SEND, 0, NULL), 1);
    ck_assert_int_eq(BIO_ctrl(bio, GET_RECEIVE, 0, NULL), 0);
    pair_close(&pair);
}
END_TEST

/* Calls `seen` with type and payload of each encrypted record from the server. */
static void each_protected(const struct tls_pair *pair,
                           void (*seen)(void *, uint8_t, const uint8_t *, size_t), void *owner)
{
    const uint8_t *wire = (const uint8_t *)pair->wire;
    bool protected = false;

    for (size_t at = 0; at < pair->wire_length;) {
        size_t length = (size_t)wire[at + 3] << 8 | wire[at + 4];
        ck_assert_uint_le(at + 5 + length, pair->wire_length);
        if (protected)
            seen(owner, wire[at], wire + at + 5, length);
        protected = protected || wire[at] == 20;
        at += 5 + length;
    }
}

struct nonces {
    uint64_t last;
    unsigned count;
};

static void nonce_seen(void *owner, uint8_t type, const uint8_t *payload, size_t length)
{
    struct nonces *nonces = owner;
    uint64_t nonce = 0;

    ck_assert_uint_ge(length, 24);
    for (int i = 0; i < 8; i++)
        nonce = nonce << 8 | payload[i];
    if (nonces->count++)
        ck_assert_msg(nonce == nonces->last + 1, "nonce %016lx after %016lx", nonce, nonces->last);
    nonces->last = nonce;
}

START_TEST(rule_07_explicit_nonces_never_repeat)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    struct nonces nonces = {0};
    char byte;

    open_suite(&pair, &suites[4 + _i], &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_uint_eq(pair.records, 1); /* Finished */
    ck_assert_uint_eq(pair.key.sequence, 1);
    for (int i = 0; i < 300; i++)
        pair_exchange(&pair, 100);
    tls_session_shutdown(pair.session);
    ck_assert_int_eq(pair_client_read(&pair, &byte, 1), -SSL_ERROR_ZERO_RETURN);
    each_protected(&pair, nonce_seen, &nonces);
    ck_assert_uint_eq(nonces.count, 302);
    ck_assert_uint_eq(pair.key.sequence, 302);
    pair_close(&pair);
}
END_TEST

START_TEST(rule_06_tickets_are_counted)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    open_suite(&pair, &suites[0], &settings);
    SSL_CTX_set_num_tickets(pair.context->servers[0].openssl, (size_t)_i);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_uint_eq(pair.records, (unsigned)_i);
    ck_assert_uint_eq(pair.key.sequence, (unsigned)_i);
    pair_exchange(&pair, 1000);
    ck_assert_uint_eq(pair.key.sequence, (unsigned)_i + 1);
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

START_TEST(no_tickets_when_switched_off)
{
    const struct suite *suite = &suites[_i ? 0 : 4];
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    settings.session_tickets = false;
    open_suite(&pair, suite, &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 10);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    ck_assert(!SSL_SESSION_has_ticket(stored));
    pair_shutdown(&pair);
    pair_reconnect(&pair);
    SSL_set_session(pair.client, stored);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(!tls_session_reused(pair.session));
    SSL_SESSION_free(stored);
    pair_close(&pair);
}
END_TEST

START_TEST(rule_06_a_ticket_resumes)
{
    const struct suite *suite = &suites[_i];
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char id[80];

    open_suite(&pair, suite, &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(!tls_session_reused(pair.session));
    pair_exchange(&pair, 100);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    pair_shutdown(&pair);
    pair_reconnect(&pair);
    SSL_set_session(pair.client, stored);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(tls_session_reused(pair.session) && SSL_session_reused(pair.client));
    ck_assert_uint_eq(tls_session_id(pair.session, id, sizeof(id)).length % 2, 0);
    pair_exchange(&pair, 20000);
    SSL_SESSION_free(stored);
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

START_TEST(unread_bytes_are_returned)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char lent[4096], into[10];

    open_suite(&pair, &suites[0], &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(SSL_write(pair.client, "0123456789", 10), 10);
    ck_assert_int_eq(SSL_write(pair.client, "abcdefghij", 10), 10);
    int length = BIO_read(SSL_get_wbio(pair.client), lent, sizeof(lent));
    tls_session_set_input(pair.session, str_of(lent, (size_t)length));
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), 10);
    struct str rest = tls_session_return_input(pair.session);
    ck_assert_uint_eq(rest.length, (size_t)length / 2);
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), -EAGAIN);
    tls_session_set_input(pair.session, rest);
    ck_assert_int_eq(tls_session_read(pair.session, into, 4), 4);
    ck_assert_uint_eq(tls_session_input_left(pair.session), 0);
    ck_assert_int_eq(tls_session_read(pair.session, into + 4, 6), 6);
    ck_assert(memcmp(into, "abcdefghij", 10) == 0);
    pair_close(&pair);
}
END_TEST

START_TEST(rule_08_only_the_record_layer_writes)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    open_suite(&pair, &suites[0], &settings);
    ck_assert_int_eq(tls_session_write(pair.session, STR("early")), -EPROTO);
    tls_session_shutdown(pair.session); /* no alert before the handshake */
    ck_assert_uint_eq(pair.wire_length, 0);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(tls_session_write(pair.session, STR("late")), -EINVAL);
    pair_exchange(&pair, 10);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, every_suite_transfers_both_ways, 0, 2 * SUITES);
    tcase_add_test(tcase, rule_01_offers_to_receive_are_declined);
    tcase_add_loop_test(tcase, rule_07_explicit_nonces_never_repeat, 0, 2);
    tcase_add_loop_test(tcase, rule_06_tickets_are_counted, 0, 4);
    tcase_add_loop_test(tcase, no_tickets_when_switched_off, 0, 2);
    tcase_add_loop_test(tcase, rule_06_a_ticket_resumes, 0, SUITES);
    tcase_add_test(tcase, unread_bytes_are_returned);
    tcase_add_test(tcase, rule_08_only_the_record_layer_writes);
}

int main(void)
{
    return run_suite("tls_session", add_tests);
}
