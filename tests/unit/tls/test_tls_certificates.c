/* Certificates and keys of TLS servers: files, dates, kinds, chains, and the self-signed certificate. */
#include "base/limits.h"
#include "pem_files.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

static void count_line(void *owner, enum log_level level, struct str line)
{
    (*(int *)owner)++;
}

/* Loads one server with this certificate. Expects an error that contains `words`, or success if `words` is NULL. */
static void assert_loads(struct str certificate, struct str key, const char *words)
{
    struct tls_certificate files = {certificate, key};
    struct tls_settings settings = pair_settings();
    int lines = 0;
    struct log log = {.level = LOG_DEBUG, .sink = count_line, .owner = &lines};
    char error[512] = "";

    settings.certificates = &files;
    struct tls_context *context = tls_context_create(&settings, 1, &log, error, sizeof(error));
    if (words)
        ck_assert_msg(!context && strstr(error, words), "expected \"%s\", got \"%s\"", words, error);
    else
        ck_assert_msg(context, "%s", error);
    tls_context_destroy(context);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}

START_TEST(file_errors_are_reported)
{
    struct pem_pair one = pem_make("EC", "one", -1, 9, NULL), two = pem_make("EC", "two", -1, 9, NULL);
    char *many = calloc(1, LIMIT_PEM_FILE + 10);

    pem_directory_make();
    pem_write_certificates("one.pem", &one.certificate, 1);
    pem_write_certificates("reversed.pem", (X509 *[]){two.certificate, one.certificate}, 2);
    pem_write_key("one.key", one.key, NULL, false);
    pem_write_key("old.key", one.key, NULL, true);
    pem_write_key("two.key", two.key, NULL, false);
    pem_write_key("secret.key", one.key, "pass", false);
    pem_write_key("oldsecret.key", one.key, "pass", true);
    pem_write_text("empty.pem", STR(""));
    pem_write_text("der.pem", STR("\x30\x82\x01\x02zzz"));
    pem_write_text("truncated.pem", STR("-----BEGIN CERTIFICATE-----\nMIIB"));
    pem_write_text("bad.pem", STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
    pem_write_text("bad.key", STR("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
    pem_write_text("huge.pem", str_of(many, LIMIT_PEM_FILE + 10));
    assert_loads(pem_path("one.pem"), pem_path("one.key"), NULL);
    assert_loads(pem_path("one.pem"), pem_path("old.key"), NULL);
    assert_loads(pem_path("one.pem"), pem_path("two.key"), "does not belong to the certificate");
    assert_loads(pem_path("reversed.pem"), pem_path("one.key"), "must come first");
    assert_loads(pem_path("one.pem"), pem_path("secret.key"), "decrypt it with: openssl pkey -in /tmp/");
    assert_loads(pem_path("one.pem"), pem_path("oldsecret.key"), "is encrypted");
    assert_loads(pem_path("none.pem"), pem_path("one.key"), "cannot be opened: No such file");
    assert_loads(pem_path("one.pem"), pem_path("none.key"), "none.key\" cannot be opened: No such file");
    assert_loads(pem_path("empty.pem"), pem_path("one.key"), "is empty");
    assert_loads(pem_path("der.pem"), pem_path("one.key"), "openssl x509 -inform der");
    assert_loads(pem_path("one.pem"), pem_path("der.pem"), "openssl pkey -inform der");
    assert_loads(pem_path("one.key"), pem_path("one.key"), "contains no certificate");
    assert_loads(pem_path("one.pem"), pem_path("one.pem"), "contains no private key");
    assert_loads(pem_path("one.pem"), STR(""), "contains no private key");
    assert_loads(pem_path("truncated.pem"), pem_path("one.key"), "certificate number 1 in");
    assert_loads(pem_path("bad.pem"), pem_path("one.key"), "certificate number 1 in");
    assert_loads(pem_path("one.pem"), pem_path("bad.key"), "cannot be read");
    assert_loads(pem_path("huge.pem"), pem_path("one.key"), "too large");
    assert_loads(pem_path(""), pem_path("one.key"), "cannot be read: Is a directory");
    assert_loads(str_of(many, 5000), pem_path("one.key"), "too long");
    pem_directory_remove();
    pem_free(&one);
    pem_free(&two);
    free(many);
}
END_TEST

static void open_with(struct tls_pair *pair, struct tls_settings *settings,
                      const struct tls_certificate *certificates, size_t count)
{
    *settings = pair_settings();
    settings->certificates = certificates;
    settings->certificate_count = count;
    pair_open(pair, settings, 1);
}

START_TEST(expiry_dates_are_reported)
{
    static const struct {
        int from, to;
        const char *words;
    } cases[] = {{-10, -1, "has expired"}, {1, 10, "not valid yet"}, {-1, 1, NULL}};
    struct pem_pair made = pem_make("EC", "dated", cases[_i].from, cases[_i].to, NULL);
    struct tls_certificate files;
    struct tls_settings settings;
    struct tls_pair pair;

    pem_directory_make();
    pem_write_certificates("c.pem", &made.certificate, 1);
    pem_write_key("c.key", made.key, NULL, false);
    files = (struct tls_certificate){pem_path("c.pem"), pem_path("c.key")};
    open_with(&pair, &settings, &files, 1);
    ck_assert_uint_eq(pair.log_lines, cases[_i].words ? 1 : 0);
    if (cases[_i].words)
        ck_assert_msg(strstr(pair.last_log, cases[_i].words) && strstr(pair.last_log, "[warn]"), "%s",
                      pair.last_log);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_close(&pair);
    pem_directory_remove();
    pem_free(&made);
}
END_TEST

/* With both kinds of certificates, each client gets the one that it can verify, with its chain. */
START_TEST(ecdsa_and_rsa_with_chains)
{
    struct pem_pair root = pem_make("EC", "root", -1, 9, NULL),
                    middle = pem_make("RSA", "middle", -1, 9, &root);
    struct pem_pair ec = pem_make("EC", "leaf", -1, 9, &middle),
                    rsa = pem_make("RSA", "leaf", -1, 9, &middle);
    struct tls_certificate files[2], twice[2];
    struct tls_settings settings;
    struct tls_pair pair;
    char error[512];

    pem_directory_make();
    pem_write_certificates("ec.pem", (X509 *[]){ec.certificate, middle.certificate}, 2);
    pem_write_certificates("rsa.pem", (X509 *[]){rsa.certificate, middle.certificate}, 2);
    pem_write_key("ec.key", ec.key, NULL, false);
    pem_write_key("rsa.key", rsa.key, NULL, false);
    files[0] = (struct tls_certificate){pem_path("ec.pem"), pem_path("ec.key")};
    files[1] = (struct tls_certificate){pem_path("rsa.pem"), pem_path("rsa.key")};
    open_with(&pair, &settings, files, 2);
    SSL_CTX_set_verify(pair.client_openssl, SSL_VERIFY_PEER, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(pair.client_openssl), root.certificate);
    for (int i = 0; i < 4; i++) {
        bool wants_rsa = i % 2;
        pair_reconnect(&pair);
        if (i < 2)
            SSL_set1_sigalgs_list(pair.client, wants_rsa ? "RSA-PSS+SHA256" : "ECDSA+SHA256:RSA-PSS+SHA256");
        else
            SSL_set_cipher_list(pair.client,
                                wants_rsa ? "ECDHE-RSA-AES128-GCM-SHA256" : "ECDHE-ECDSA-AES128-GCM-SHA256");
        SSL_set_max_proto_version(pair.client, i < 2 ? TLS1_3_VERSION : TLS1_2_VERSION);
        ck_assert_msg(pair_handshake(&pair) == 0, "%d: %s", i, tls_session_error(pair.session));
        X509 *seen = SSL_get1_peer_certificate(pair.client);
        ck_assert_int_eq(X509_cmp(seen, wants_rsa ? rsa.certificate : ec.certificate), 0);
        X509_free(seen);
        ck_assert_int_eq(SSL_get_verify_result(pair.client), X509_V_OK);
        pair_exchange(&pair, 5000);
    }
    twice[0] = twice[1] = files[0];
    settings.certificates = twice;
    ck_assert_ptr_null(tls_context_create(&settings, 1, &pair.log, error, sizeof(error)));
    ck_assert_msg(strstr(error, "second EC certificate"), "%s", error);
    pair_close(&pair);
    pem_directory_remove();
    pem_free(&root);
    pem_free(&middle);
    pem_free(&ec);
    pem_free(&rsa);
}
END_TEST

/*
 * The server sends more than 20 KiB of certificates in one flight: no write is short, and OpenSSL still offers the key
 * (rule 3).
 */
START_TEST(rule_03_long_chain_and_key_offer)
{
    char long_name[64];
    struct pem_pair made[12];
    X509 *chain[12];
    struct tls_certificate files;
    struct tls_settings settings;
    struct tls_pair pair;

    memset(long_name, 'x', 63);
    long_name[63] = '\0';
    for (int i = 0; i < 12; i++) {
        made[i] = i ? pem_make(NULL, long_name, -1, 9, &made[i - 1]) : pem_make("RSA", long_name, -1, 9, NULL);
        chain[11 - i] = made[i].certificate;
    }
    pem_directory_make();
    pem_write_certificates("long.pem", chain, 12);
    pem_write_key("long.key", made[11].key, NULL, false);
    files = (struct tls_certificate){pem_path("long.pem"), pem_path("long.key")};
    open_with(&pair, &settings, &files, 1);
    SSL_CTX_set_max_proto_version(pair.client_openssl, _i ? TLS1_3_VERSION : TLS1_2_VERSION);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_uint_gt(pair.wire_length, 9000);
    ck_assert_uint_eq(pair.keys, 1);
    pair_exchange(&pair, 40000);
    pair_close(&pair);
    pem_directory_remove();
    for (int i = 0; i < 12; i++)
        pem_free(&made[i]);
}
END_TEST

START_TEST(self_signed_certificate_has_the_names)
{
    static const struct str names[] = {
        {"Example.com", 11}, {"*.example.com", 13}, {".example.org", 12}, {"10.1.2.3", 8}, {"_", 1},
        {"www.*", 5},        {"~^a(b)$", 7},        {"fe80::1", 7}};
    static const char *const good[] = {"example.com", "www.example.com", "example.org", "a.example.org",
                                       "localhost"};
    static const char *const good_addresses[] = {"10.1.2.3", "127.0.0.1", "::1", "fe80::1"};
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    settings.names = names;
    settings.name_count = sizeof(names) / sizeof(names[0]);
    pair_open(&pair, &settings, 1);
    ck_assert_uint_eq(pair.log_lines, 1);
    ck_assert_ptr_nonnull(strstr(pair.last_log, "self-signed certificate for \"Example.com\""));
    ck_assert_ptr_nonnull(strstr(pair.last_log, "SHA-256 "));
    ck_assert_int_eq(pair_handshake(&pair), 0);
    X509 *seen = SSL_get1_peer_certificate(pair.client);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(X509_check_host(seen, good[i], 0, 0, NULL) == 1, "%s", good[i]);
    for (size_t i = 0; i < sizeof(good_addresses) / sizeof(good_addresses[0]); i++)
        ck_assert_msg(X509_check_ip_asc(seen, good_addresses[i], 0) == 1, "%s", good_addresses[i]);
    ck_assert_int_eq(X509_check_host(seen, "example.net", 0, 0, NULL), 0);
    ck_assert_int_eq(X509_check_host(seen, "www.example.net", 0, 0, NULL), 0);
    ck_assert_int_eq(EVP_PKEY_get_base_id(X509_get0_pubkey(seen)), EVP_PKEY_EC);
    ck_assert_int_eq(X509_verify(seen, X509_get0_pubkey(seen)), 1);
    ck_assert_int_le(X509_cmp_current_time(X509_get0_notBefore(seen)), 0);
    ck_assert_int_gt(X509_cmp_current_time(X509_get0_notAfter(seen)), 0);
    X509_free(seen);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, file_errors_are_reported);
    tcase_add_loop_test(tcase, expiry_dates_are_reported, 0, 3);
    tcase_add_test(tcase, ecdsa_and_rsa_with_chains);
    tcase_add_loop_test(tcase, rule_03_long_chain_and_key_offer, 0, 2);
    tcase_add_test(tcase, self_signed_certificate_has_the_names);
}

int main(void)
{
    return run_suite("tls_certificates", add_tests);
}
