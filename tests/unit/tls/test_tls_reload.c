/* A running server reads its certificates again: new handshakes use them, and invalid files change nothing. */
#include "pem_files.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include "../runner.h"

#include <unistd.h>

static struct pem_pair first, second;
static struct tls_certificate certificate;

/* Once for all tests: the generation of an RSA key takes long. */
static void make_pairs(void)
{
    first = pem_make("EC", "first", -1, 9, NULL);
    second = pem_make("RSA", "second", -1, 9, NULL);
}

static void free_pairs(void)
{
    pem_free(&first);
    pem_free(&second);
}

static void write_pair(const struct pem_pair *pair)
{
    pem_write_certificates("site.pem", &pair->certificate, 1);
    pem_write_key("site.key", pair->key, NULL, false);
}

static void write_first(void)
{
    pem_directory_make();
    write_pair(&first);
    certificate = (struct tls_certificate){pem_path("site.pem"), pem_path("site.key")};
}

static void report_fault(void *owner, const struct tls_fault *fault)
{
    snprintf(owner, 300, "%s", fault->text);
}

static bool reload(struct tls_pair *pair, size_t server, const struct tls_settings *settings, char *fault_text)
{
    struct tls_files files = {NULL, 0};

    fault_text[0] = '\0';
    bool good = tls_files_read(settings, &files, report_fault, fault_text) &&
                tls_context_reload(pair->context, server, &files, &pair->log, report_fault, fault_text);
    tls_files_finish(&files);
    return good;
}

static bool client_sees(const struct tls_pair *pair, X509 *expected)
{
    X509 *seen = SSL_get1_peer_certificate(pair->client);
    bool same = seen && X509_cmp(seen, expected) == 0;

    X509_free(seen);
    return same;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/* Reloads the certificates of the default server, whose context every connection has first, and of a server for SNI. */
START_TEST(new_connections_get_the_new_certificate)
{
    static const struct str names[2][1] = {{{"one.test", 8}}, {{"two.test", 8}}};
    struct tls_settings servers[2] = {pair_settings(), pair_settings()};
    int which = _i / 2;
    struct tls_pair pair;
    char fault_text[300];

    for (int i = 0; i < 2; i++)
        servers[i].names = names[i];
    servers[which].certificates = &certificate;
    pair_open(&pair, servers, 2);
    SSL_CTX_set_max_proto_version(pair.client_openssl, versions[_i % 2]);
    pair_reconnect(&pair);
    SSL_set_tlsext_host_name(pair.client, names[which][0].data);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(client_sees(&pair, first.certificate));
    pair_exchange(&pair, 100);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    write_pair(&second);
    ck_assert_msg(reload(&pair, (size_t)which, &servers[which], fault_text), "%s", fault_text);
    pair_exchange(&pair, 20000); /* the existing connection continues */
    pair_shutdown(&pair);
    pair_reconnect(&pair);
    SSL_set_session(pair.client, stored);
    SSL_set_tlsext_host_name(pair.client, names[which][0].data);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(!tls_session_reused(pair.session));
    ck_assert(client_sees(&pair, second.certificate));
    ck_assert_ptr_eq(tls_session_settings(pair.session), &servers[which]);
    pair_exchange(&pair, 100);
    pair_reconnect(&pair);
    SSL_set_tlsext_host_name(pair.client, names[!which][0].data);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(!client_sees(&pair, second.certificate));
    SSL_SESSION_free(stored);
    pair_close(&pair);
}
END_TEST

/* The connection was accepted before the reload, and the ClientHello arrives after it. */
START_TEST(pending_connection_gets_the_new_certificate)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char fault_text[300];

    settings.certificates = &certificate;
    pair_open(&pair, &settings, 1);
    write_pair(&second);
    ck_assert(reload(&pair, 0, &settings, fault_text));
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(client_sees(&pair, second.certificate));
    pair_exchange(&pair, 100);
    pair_close(&pair);
}
END_TEST

static void store_other_certificate(void)
{
    pem_write_certificates("site.pem", &second.certificate, 1);
}

static void truncate_certificate(void)
{
    pem_write_text("site.pem", STR("-----BEGIN CERTIFICATE-----\nMIIB"));
}

static void empty_key(void)
{
    pem_write_text("site.key", STR(""));
}

static void remove_key(void)
{
    unlink(certificate.key.data);
}

static const struct {
    void (*change)(void);
    const char *words;
} invalid_files[] = {
    {store_other_certificate, "site.key\" does not belong to the certificate \""},
    {truncate_certificate, "certificate number 1 in \""},
    {empty_key, "site.key\" is empty"},
    {remove_key, "site.key\" cannot be opened: No such file"},
};

START_TEST(invalid_files_change_nothing)
{
    struct tls_settings settings = pair_settings();
    uint64_t before, after;
    struct tls_pair pair;
    char fault_text[300];

    settings.certificates = &certificate;
    pair_open(&pair, &settings, 1);
    before = tls_files_stamp(&settings);
    ck_assert_uint_eq(tls_files_stamp(&settings), before);
    invalid_files[_i].change();
    after = tls_files_stamp(&settings);
    ck_assert_uint_ne(after, before);
    ck_assert(!reload(&pair, 0, &settings, fault_text));
    ck_assert_msg(strstr(fault_text, invalid_files[_i].words), "%s", fault_text);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(client_sees(&pair, first.certificate));
    write_pair(&second);
    ck_assert_uint_ne(tls_files_stamp(&settings), after);
    ck_assert(reload(&pair, 0, &settings, fault_text));
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(client_sees(&pair, second.certificate));
    pair_close(&pair);
}
END_TEST

/* The packed files come from another process, so they may be truncated. */
START_TEST(truncated_files_are_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_files files = {NULL, 0};
    struct tls_pair pair;
    char fault_text[300];

    settings.certificates = &certificate;
    pair_open(&pair, &settings, 1);
    ck_assert(tls_files_read(&settings, &files, report_fault, fault_text));
    ck_assert(tls_context_reload(pair.context, 0, &files, &pair.log, report_fault, fault_text));
    size_t whole = files.length, head = 4 + (size_t) * (uint32_t *)(void *)files.bytes;
    size_t lengths[] = {0, 3, 4, head - 1, head, head + 4};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        files.length = lengths[i];
        ck_assert_msg(!tls_context_reload(pair.context, 0, &files, &pair.log, report_fault, fault_text), "%zu",
                      lengths[i]);
        ck_assert_ptr_nonnull(strstr(fault_text, "was not read"));
    }
    files.length = whole;
    tls_files_finish(&files);
    ck_assert_ptr_null(files.bytes);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_close(&pair);
}
END_TEST

START_TEST(self_signed_certificate_is_preserved)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char fault_text[300];

    ck_assert_uint_eq(tls_files_stamp(&settings), 0);
    pair_open(&pair, &settings, 1);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    X509 *made = SSL_get1_peer_certificate(pair.client);
    ck_assert(reload(&pair, 0, &settings, fault_text));
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(client_sees(&pair, made));
    X509_free(made);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, 60);
    tcase_add_unchecked_fixture(tcase, make_pairs, free_pairs);
    tcase_add_checked_fixture(tcase, write_first, pem_directory_remove);
    tcase_add_loop_test(tcase, new_connections_get_the_new_certificate, 0, 4);
    tcase_add_test(tcase, pending_connection_gets_the_new_certificate);
    tcase_add_loop_test(tcase, invalid_files_change_nothing, 0, 4);
    tcase_add_test(tcase, truncated_files_are_rejected);
    tcase_add_test(tcase, self_signed_certificate_is_preserved);
}

int main(void)
{
    return run_suite("tls_reload", add_tests);
}
