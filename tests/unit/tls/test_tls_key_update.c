/* Replacement of keys: KeyUpdate of TLS 1.3. */
#include "suites.h"

#include <errno.h>

enum { TICKETS = 1 }; /* per handshake */

static void client_updates(struct tls_pair *pair, int kind)
{
    ck_assert_int_eq(SSL_key_update(pair->client, kind), 1);
    ck_assert_int_eq(SSL_do_handshake(pair->client), 1);
}

START_TEST(key_update_by_the_peer)
{
    const struct suite *suite = &suites[_i / 4];
    bool requested = _i % 4 / 2;
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char into[16];

    open_suite(&pair, suite, &settings);
    pair.fragment = _i % 2;
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 100);
    for (unsigned round = 1; round < 4; round++) {
        unsigned records = pair.records;
        client_updates(&pair, requested ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        ck_assert_int_eq(pair_server_read(&pair, into, sizeof(into)), -EAGAIN);
        if (suite->cipher) {
            ck_assert_uint_eq(pair.records, records + requested);
            ck_assert_uint_eq(pair.keys, requested ? 1 + round : 1);
            ck_assert_uint_eq(pair.key.sequence, requested ? 0 : TICKETS + round);
        }
        ck_assert_uint_eq(pair.asked_update, requested ? round : 0);
        pair_exchange(&pair, 100);
    }
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

START_TEST(key_update_by_the_server)
{
    const struct suite *suite = &suites[_i];
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    open_suite(&pair, suite, &settings);
    ck_assert_int_eq(tls_session_update_key(pair.session), -EPROTO);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 100);
    int result = tls_session_update_key(pair.session);
    ck_assert_int_eq(result, suite->version == TLS1_3_VERSION ? 0 : -EOPNOTSUPP);
    if (result == 0 && suite->cipher)
        ck_assert_uint_eq(pair.keys, 2);
    pair_exchange(&pair, 50000);
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

/* The kernel's key cannot be replaced: the session sends no answer and uses the old key until the close. */
START_TEST(rule_09_forbidden_update_is_not_answered)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char into[32];

    open_suite(&pair, &suites[_i], &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair.forbid_update = true;
    unsigned records = pair.records;
    for (int i = 0; i < 3; i++) {
        client_updates(
            &pair, SSL_KEY_UPDATE_REQUESTED); /* three in one buffer: an answer is already due at the second */
        ck_assert_int_eq(SSL_write(pair.client, "more", 4), 4);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pair_server_read(&pair, into, sizeof(into)), -EAGAIN);
        ck_assert_uint_eq(tls_session_input_left(pair.session), 0);
        client_updates(&pair, SSL_KEY_UPDATE_REQUESTED);
        pair_server_write(&pair, STR("the rest of the answer"));
        ck_assert_int_eq(pair_client_read(&pair, into, 22), 22);
    }
    ck_assert_uint_eq(pair.asked_update, 1);
    ck_assert_uint_eq(pair.records, records);
    ck_assert_uint_eq(pair.keys, 1);
    tls_session_shutdown(pair.session);
    ck_assert_int_eq(pair_client_read(&pair, into, 1), -SSL_ERROR_ZERO_RETURN);
    ck_assert_uint_eq(pair.records, records + 1);
    pair_close(&pair);
}
END_TEST

START_TEST(rule_09_excess_key_updates_are_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char into[16];
    ssize_t result = -EAGAIN;
    int rounds = 0;

    open_suite(&pair, &suites[0], &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    for (int i = 0; i < 3 * LIMIT_KEY_UPDATES; i++) { /* requests at the greatest permitted rate, for a long time */
        pair.now_ms += LIMIT_KEY_UPDATES_MS / LIMIT_KEY_UPDATES + 1;
        client_updates(&pair, i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        if (i % 8 == 7)
            pair_exchange(&pair, 1);
    }
    pair.now_ms += LIMIT_KEY_UPDATES_MS;
    while (result == -EAGAIN && rounds++ <= 2 * LIMIT_KEY_UPDATES) {
        client_updates(&pair, _i ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        result = pair_server_read(&pair, into, sizeof(into));
        if (result == -EAGAIN)
            pair_exchange(&pair, 1); /* application data does not raise the limit */
    }
    ck_assert_int_eq(result, -EPROTO);
    ck_assert_int_eq(rounds, LIMIT_KEY_UPDATES + 1);
    ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "too many KeyUpdate or renegotiation requests"));
    ck_assert_int_eq(pair_client_read(&pair, into, sizeof(into)), -SSL_ERROR_SSL);
    ck_assert_int_eq(pair.alert, 10); /* unexpected_message */
    ck_assert_int_eq(tls_session_read(pair.session, into, sizeof(into)), -EPROTO);
    pair_close(&pair);
}
END_TEST

/* All messages are in one buffer: the limit must apply within a single read. */
START_TEST(excess_key_updates_in_one_buffer)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char into[16];

    open_suite(&pair, &suites[0], &settings);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    for (int i = 0; i < 400; i++)
        client_updates(&pair, SSL_KEY_UPDATE_NOT_REQUESTED);
    ck_assert_int_eq(pair_server_read(&pair, into, sizeof(into)), -EPROTO);
    ck_assert_uint_gt(tls_session_return_input(pair.session).length, 300 * 27);
    ck_assert_uint_eq(tls_session_input_left(pair.session), 0);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, key_update_by_the_peer, 0, 4 * 4);
    tcase_add_loop_test(tcase, key_update_by_the_server, 0, SUITES);
    tcase_add_loop_test(tcase, rule_09_forbidden_update_is_not_answered, 0, 3);
    tcase_add_loop_test(tcase, rule_09_excess_key_updates_are_rejected, 0, 2);
    tcase_add_test(tcase, excess_key_updates_in_one_buffer);
}

int main(void)
{
    return run_suite("tls_key_update", add_tests);
}
