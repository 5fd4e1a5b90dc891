#include "base/limits.h"
#include "tls_pair.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>

static const struct suite {
    const char *name;
    int version;
    uint8_t cipher; /* RECORD_NONE: not offered, or declined */
} suites[] = {
    {"TLS_AES_128_GCM_SHA256", TLS1_3_VERSION, RECORD_AES_128_GCM},
    {"TLS_AES_256_GCM_SHA384", TLS1_3_VERSION, RECORD_AES_256_GCM},
    {"TLS_CHACHA20_POLY1305_SHA256", TLS1_3_VERSION, RECORD_CHACHA20_POLY1305},
    {"TLS_AES_128_CCM_SHA256", TLS1_3_VERSION, RECORD_NONE},
    {"ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, RECORD_AES_128_GCM},
    {"ECDHE-ECDSA-AES256-GCM-SHA384", TLS1_2_VERSION, RECORD_AES_256_GCM},
    {"ECDHE-ECDSA-CHACHA20-POLY1305", TLS1_2_VERSION, RECORD_CHACHA20_POLY1305},
    {"ECDHE-ECDSA-AES128-SHA256", TLS1_2_VERSION, RECORD_NONE},
};
enum { SUITES = sizeof(suites) / sizeof(suites[0]) };

static void open_suite(struct tls_pair *pair, const struct suite *suite, struct tls_settings *settings)
{
    settings->ciphers = STR("ALL");
    settings->ciphersuites = STR(
        "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256");
    pair_open(pair, settings, 1);
    SSL_CTX_set_min_proto_version(pair->client_openssl, suite->version);
    SSL_CTX_set_max_proto_version(pair->client_openssl, suite->version);
    if (suite->version == TLS1_3_VERSION)
        SSL_CTX_set_ciphersuites(pair->client_openssl, suite->name);
    else
        SSL_CTX_set_cipher_list(pair->client_openssl, suite->name);
    pair_reconnect(pair);
}

static void assert_closed(struct tls_pair *pair)
{
    char byte;

    tls_session_shutdown(pair->session);
    tls_session_shutdown(pair->session);
    ck_assert_int_eq(pair_client_read(pair, &byte, 1), -SSL_ERROR_ZERO_RETURN);
    SSL_shutdown(pair->client);
    ck_assert_int_eq(pair_server_read(pair, &byte, 1), 0);
}

START_TEST(every_suite_speaks_both_ways)
{
    const struct suite *suite = &suites[_i / 2];
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    open_suite(&pair, suite, &settings);
    pair.fragment = _i % 2 ? 1 : 0;
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_uint_eq(pair.keys, suite->cipher ? 1 : 0);
    ck_assert_uint_eq(pair.key.cipher, suite->cipher);
    ck_assert(tls_session_key_taken(pair.session) == (suite->cipher != RECORD_NONE));
    ck_assert(str_equal(tls_session_cipher(pair.session), str_from(suite->name)));
    ck_assert(str_equal(tls_session_protocol(pair.session), str_from(SSL_get_version(pair.client))));
    for (size_t size = 1; size < 70000; size = size * 5 + 3)
        pair_exchange(&pair, size);
    assert_closed(&pair);
    pair_close(&pair);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls_session");
    TCase *talk = tcase_create("talk");
    SRunner *runner;

    tcase_add_loop_test(talk, every_suite_speaks_both_ways, 0, 2 * SUITES);
    suite_add_tcase(suite, talk);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
