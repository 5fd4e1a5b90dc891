#include "pem_files.h"
#include "tls/tls_server.h"
#include "tls_pair.h"

#include "../runner.h"

#include <openssl/pem.h>

enum shown { NOTHING, GOOD, STRANGER, EXPIRED, SELF_MADE, EXPIRED_STRANGER, DEEP, REVOKED, SHOWN };

static struct pem_pair authority, other, middle, shown[SHOWN];
static struct arena arena;

static void write_list(const char *name, const struct pem_pair *issuer, X509 *revoked)
{
    X509_CRL *list = X509_CRL_new();
    ASN1_TIME *now = ASN1_TIME_adj(NULL, time(NULL), 0, -60), *next = ASN1_TIME_adj(NULL, time(NULL), 9, 0);
    X509_REVOKED *entry = X509_REVOKED_new();
    BIO *out = BIO_new_file(pem_path(name).data, "a");

    X509_CRL_set_version(list, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->certificate));
    X509_CRL_set1_lastUpdate(list, now);
    X509_CRL_set1_nextUpdate(list, next);
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked));
    X509_REVOKED_set_revocationDate(entry, now);
    X509_CRL_add0_revoked(list, entry);
    ck_assert_int_gt(X509_CRL_sign(list, issuer->key, EVP_sha256()), 0);
    ck_assert_int_eq(PEM_write_bio_X509_CRL(out, list), 1);
    BIO_free(out);
    X509_CRL_free(list);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
}

static void make_all(void)
{
    pem_directory_make();
    authority = pem_make("EC", "authority", -20, 20, NULL);
    other = pem_make("EC", "other authority", -20, 20, NULL);
    middle = pem_make("EC", "middle", -20, 20, &authority);
    shown[GOOD] = pem_make("EC", "good, client", -1, 9, &authority);
    shown[STRANGER] = pem_make("EC", "stranger", -1, 9, &other);
    shown[EXPIRED] = pem_make("EC", "expired", -9, -1, &authority);
    shown[SELF_MADE] = pem_make("EC", "self", -1, 9, NULL);
    shown[EXPIRED_STRANGER] = pem_make("EC", "late stranger", -9, -1, &other);
    shown[DEEP] = pem_make("EC", "deep", -1, 9, &middle);
    shown[REVOKED] = pem_make("EC", "revoked", -1, 9, &authority);
    pem_write_certificates("authorities.pem", (X509 *[]){authority.certificate, middle.certificate}, 2);
    pem_write_certificates("authority.pem", &authority.certificate, 1);
    pem_write_certificates("other.pem", &other.certificate, 1);
    write_list("lists.pem", &authority, shown[REVOKED].certificate);
    write_list("other-list.pem", &other, shown[REVOKED].certificate);
    arena_init(&arena, NULL, 0);
}

static void free_all(void)
{
    for (int i = 1; i < SHOWN; i++)
        pem_free(&shown[i]);
    pem_free(&authority);
    pem_free(&other);
    pem_free(&middle);
    arena_reset(&arena);
    pem_directory_remove();
}

/* Copies the rest of `whole` after the length of `part` into `into`. */
static void copy_end(const char *whole, const char *part, const char *into)
{
    static char bytes[20000];
    FILE *from = fopen(pem_path(whole).data, "rb"), *first = fopen(pem_path(part).data, "rb");

    fseek(first, 0, SEEK_END);
    fseek(from, ftell(first), SEEK_SET);
    pem_write_text(into, str_of(bytes, fread(bytes, 1, sizeof(bytes), from)));
    fclose(from);
    fclose(first);
}

static struct tls_settings verify_settings(enum tls_verify verify)
{
    struct tls_settings settings = pair_settings();

    settings.client =
        (struct tls_client_verify){.verify = verify, .depth = 1, .client_ca = pem_path("authority.pem")};
    return settings;
}

static void present_certificate(struct tls_pair *pair, enum shown what)
{
    if (what == NOTHING)
        return;
    ck_assert_int_eq(SSL_use_certificate(pair->client, shown[what].certificate), 1);
    ck_assert_int_eq(SSL_use_PrivateKey(pair->client, shown[what].key), 1);
    if (what == DEEP)
        ck_assert_int_eq((int)SSL_add1_chain_cert(pair->client, middle.certificate), 1);
}

static void limit_version(struct tls_pair *pair, int version)
{
    SSL_CTX_set_max_proto_version(pair->client_openssl, version);
    pair_reconnect(pair);
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static const struct {
    enum tls_verify verify;
    enum shown shown;
    enum tls_client_state state;
    const char *expected;
} cases[] = {
    {TLS_VERIFY_OFF, GOOD, TLS_CLIENT_ACCEPTED, "NONE"},
    {TLS_VERIFY_ON, NOTHING, TLS_CLIENT_ABSENT, "NONE"},
    {TLS_VERIFY_ON, GOOD, TLS_CLIENT_ACCEPTED, "SUCCESS"},
    {TLS_VERIFY_ON, STRANGER, TLS_CLIENT_REFUSED, "FAILED:unable to get local issuer certificate"},
    {TLS_VERIFY_ON, EXPIRED, TLS_CLIENT_REFUSED, "FAILED:certificate has expired"},
    {TLS_VERIFY_ON, SELF_MADE, TLS_CLIENT_REFUSED, "FAILED:self-signed certificate"},
    {TLS_VERIFY_OPTIONAL, NOTHING, TLS_CLIENT_ACCEPTED, "NONE"},
    {TLS_VERIFY_OPTIONAL, GOOD, TLS_CLIENT_ACCEPTED, "SUCCESS"},
    {TLS_VERIFY_OPTIONAL, STRANGER, TLS_CLIENT_REFUSED, "FAILED:"},
    {TLS_VERIFY_OPTIONAL_NO_CA, NOTHING, TLS_CLIENT_ACCEPTED, "NONE"},
    {TLS_VERIFY_OPTIONAL_NO_CA, STRANGER, TLS_CLIENT_ACCEPTED,
     "FAILED:unable to get local issuer certificate"},
    {TLS_VERIFY_OPTIONAL_NO_CA, SELF_MADE, TLS_CLIENT_ACCEPTED, "FAILED:self-signed certificate"},
    {TLS_VERIFY_OPTIONAL_NO_CA, EXPIRED, TLS_CLIENT_REFUSED, "FAILED:certificate has expired"},
    {TLS_VERIFY_OPTIONAL_NO_CA, EXPIRED_STRANGER, TLS_CLIENT_REFUSED, "FAILED:certificate has expired"},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* The handshake completes with any certificate; the result of the verification is available afterwards. */
START_TEST(client_certificate_is_verified)
{
    struct tls_settings settings = verify_settings(cases[_i / 2].verify);
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    limit_version(&pair, versions[_i % 2]);
    present_certificate(&pair, cases[_i / 2].shown);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    struct str expected = tls_session_client_verify(pair.session, &arena);
    ck_assert_int_eq(tls_session_client_state(pair.session), cases[_i / 2].state);
    ck_assert_msg(str_starts(expected, str_from(cases[_i / 2].expected)), STR_FMT, STR_ARG(expected));
    ck_assert(tls_session_has_key(pair.session));
    pair_exchange(&pair, 20000);
    pair_shutdown(&pair);
    pair_close(&pair);
}
END_TEST

/* Only a session with an accepted certificate is resumed; otherwise the server requests a certificate again. */
START_TEST(resumption_keeps_the_verification)
{
    struct tls_settings settings = verify_settings(cases[_i / 2].verify);
    bool resumes = cases[_i / 2].state == TLS_CLIENT_ACCEPTED;
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    limit_version(&pair, versions[_i % 2]);
    present_certificate(&pair, cases[_i / 2].shown);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_exchange(&pair, 10);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    pair_shutdown(&pair);
    pair_reconnect(&pair);
    SSL_set_session(pair.client, stored);
    present_certificate(&pair, cases[_i / 2].shown);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(tls_session_reused(pair.session), resumes);
    ck_assert_int_eq(tls_session_client_state(pair.session), cases[_i / 2].state);
    struct str expected = tls_session_client_verify(pair.session, &arena);
    ck_assert_msg(str_starts(expected, str_from(cases[_i / 2].expected)), STR_FMT, STR_ARG(expected));
    pair_exchange(&pair, 10);
    SSL_SESSION_free(stored);
    pair_close(&pair);
}
END_TEST

/*
 * Servers without verification, with verification, and with another authority: a session of one cannot be resumed with
 * another.
 */
START_TEST(sessions_are_bound_to_their_server)
{
    static const struct tls_certificate certificate = {{"site.pem", 8}, {"site.key", 8}};
    static const struct str names[3][1] = {{{"open.test", 9}}, {{"strict.test", 11}}, {{"other.test", 10}}};
    struct pem_pair site = pem_make("EC", "site", -1, 9, NULL);
    struct tls_certificate same = certificate;
    struct tls_settings servers[3] = {verify_settings(TLS_VERIFY_OFF), verify_settings(TLS_VERIFY_ON),
                                      verify_settings(TLS_VERIFY_ON)};
    struct tls_pair pair;

    pem_write_certificates("site.pem", &site.certificate, 1);
    pem_write_key("site.key", site.key, NULL, false);
    same.certificate = pem_path("site.pem");
    same.key = pem_path("site.key");
    for (int i = 0; i < 3; i++) {
        servers[i].names = names[i];
        servers[i].certificates = &same;
    }
    servers[2].client.client_ca = pem_path("other.pem");
    pair_open(&pair, servers, 3);
    limit_version(&pair, versions[_i % 2]);
    int from = _i / 2 % 3;
    SSL_set_tlsext_host_name(pair.client, names[from][0].data);
    present_certificate(&pair, from == 2 ? STRANGER : GOOD);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(tls_session_client_state(pair.session), TLS_CLIENT_ACCEPTED);
    pair_exchange(&pair, 10);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    pair_shutdown(&pair);
    for (int to = 0; to < 3; to++) {
        pair_reconnect(&pair);
        SSL_set_session(pair.client, stored);
        SSL_set_tlsext_host_name(pair.client, names[to][0].data);
        ck_assert_int_eq(pair_handshake(&pair), 0);
        ck_assert_int_eq(tls_session_reused(pair.session), to == from);
        ck_assert_int_eq(tls_session_client_state(pair.session),
                         to == from || to == 0 ? TLS_CLIENT_ACCEPTED : TLS_CLIENT_ABSENT);
        pair_exchange(&pair, 10);
    }
    SSL_SESSION_free(stored);
    pair_close(&pair);
    pem_free(&site);
}
END_TEST

/*
 * One server has the authority and the CRL in one file, which makes the CRL ineffective; the other has the same bytes
 * in two files. A session of one must not be resumed with the other.
 */
START_TEST(sessions_are_bound_to_the_revocation_list)
{
    static const struct str names[2][1] = {{{"before.test", 11}}, {{"after.test", 10}}};
    struct pem_pair site = pem_make("EC", "site", -1, 9, NULL);
    struct tls_certificate same = {pem_path("site.pem"), pem_path("site.key")};
    struct tls_settings servers[2] = {verify_settings(TLS_VERIFY_ON), verify_settings(TLS_VERIFY_ON)};
    struct tls_pair pair;

    pem_write_certificates("site.pem", &site.certificate, 1);
    pem_write_key("site.key", site.key, NULL, false);
    pem_write_certificates("bundle.pem", &authority.certificate, 1);
    write_list("bundle.pem", &authority, shown[REVOKED].certificate);
    copy_end("bundle.pem", "authority.pem", "its-list.pem");
    for (int i = 0; i < 2; i++) {
        servers[i].names = names[i];
        servers[i].certificates = &same;
    }
    servers[0].client.client_ca = pem_path("bundle.pem");
    servers[1].client.crl = pem_path("its-list.pem");
    pair_open(&pair, servers, 2);
    limit_version(&pair, versions[_i]);
    SSL_set_tlsext_host_name(pair.client, names[0][0].data);
    present_certificate(&pair, REVOKED);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(tls_session_client_state(pair.session), TLS_CLIENT_ACCEPTED);
    pair_exchange(&pair, 10);
    SSL_SESSION *stored = SSL_get1_session(pair.client);
    pair_shutdown(&pair);
    pair_reconnect(&pair);
    SSL_set_session(pair.client, stored);
    SSL_set_tlsext_host_name(pair.client, names[1][0].data);
    present_certificate(&pair, REVOKED);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(tls_session_client_state(pair.session), TLS_CLIENT_REFUSED);
    SSL_SESSION_free(stored);
    pair_close(&pair);
    pem_free(&site);
}
END_TEST

static const struct {
    unsigned depth;
    const char *lists; /* NULL: none */
    enum shown shown;
    const char *expected;
} chains[] = {
    {0, NULL, GOOD, "SUCCESS"},
    {0, NULL, DEEP, "FAILED:"},
    {1, NULL, DEEP, "SUCCESS"},
    {1, "lists.pem", GOOD, "SUCCESS"},
    {1, "lists.pem", REVOKED, "FAILED:certificate revoked"},
    {1, "lists.pem", DEEP, "FAILED:unable to get certificate CRL"},
    {1, "other-list.pem", GOOD, "FAILED:unable to get certificate CRL"},
};

START_TEST(chains_and_revocation_lists)
{
    struct tls_settings settings = verify_settings(TLS_VERIFY_ON);
    struct tls_pair pair;

    settings.client.depth = chains[_i].depth;
    if (chains[_i].lists)
        settings.client.crl = pem_path(chains[_i].lists);
    pair_open(&pair, &settings, 1);
    present_certificate(&pair, chains[_i].shown);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    struct str expected = tls_session_client_verify(pair.session, &arena);
    ck_assert_msg(str_starts(expected, str_from(chains[_i].expected)), STR_FMT, STR_ARG(expected));
    pair_close(&pair);
}
END_TEST

static size_t announced_names(struct tls_pair *pair)
{
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(pair->client);

    return names ? (size_t)sk_X509_NAME_num(names) : 0;
}

/* Certificates of ssl_trusted_certificate are trusted as well; their names are not sent to clients. */
START_TEST(names_of_authorities_sent_to_clients)
{
    struct tls_settings settings = verify_settings(TLS_VERIFY_ON);
    struct tls_pair pair;

    settings.client.client_ca = STR("");
    settings.client.trusted = pem_path("authorities.pem");
    if (_i)
        settings.client.client_ca = pem_path("authorities.pem");
    pair_open(&pair, &settings, 1);
    present_certificate(&pair, GOOD);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(tls_session_client_state(pair.session), TLS_CLIENT_ACCEPTED);
    ck_assert_uint_eq(announced_names(&pair), _i ? 2 : 0);
    pair_close(&pair);
}
END_TEST

static struct str fact(struct tls_pair *pair, enum tls_client_property what)
{
    return tls_session_client_property(pair->session, what, &arena);
}

START_TEST(facts_of_the_client_certificate)
{
    struct tls_settings settings = verify_settings(TLS_VERIFY_ON);
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    present_certificate(&pair, GOOD);
    ck_assert_ptr_null(fact(&pair, TLS_CLIENT_SUBJECT).data);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert(str_equal(fact(&pair, TLS_CLIENT_SUBJECT), STR("CN=good\\, client")));
    ck_assert(str_equal(fact(&pair, TLS_CLIENT_ISSUER), STR("CN=authority")));
    ck_assert_int_gt((int)fact(&pair, TLS_CLIENT_SERIAL).length, 0);
    ck_assert_uint_eq(fact(&pair, TLS_CLIENT_FINGERPRINT).length, 40);
    ck_assert(str_ends(fact(&pair, TLS_CLIENT_START), STR("GMT")) &&
              str_ends(fact(&pair, TLS_CLIENT_END), STR("GMT")));
    ck_assert(str_equal(fact(&pair, TLS_CLIENT_REMAIN), STR("8")) ||
              str_equal(fact(&pair, TLS_CLIENT_REMAIN), STR("9")));
    struct str raw = fact(&pair, TLS_CLIENT_PEM), folded = fact(&pair, TLS_CLIENT_PEM_FOLDED);
    struct str escaped = fact(&pair, TLS_CLIENT_PEM_ESCAPED);
    ck_assert(str_starts(raw, STR("-----BEGIN CERTIFICATE-----\nMII")) &&
              str_ends(raw, STR("-----END CERTIFICATE-----\n")));
    ck_assert(str_starts(folded, STR("-----BEGIN CERTIFICATE-----\n\tMII")) &&
              str_ends(folded, STR("\n\t-----END CERTIFICATE-----")));
    ck_assert(str_starts(escaped, STR("-----BEGIN%20CERTIFICATE-----%0AMII")) &&
              str_find(escaped, '\n') < 0 && str_find(escaped, '+') < 0);
    pair_reconnect(&pair);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_ptr_null(fact(&pair, TLS_CLIENT_SUBJECT).data);
    pair_close(&pair);
}
END_TEST

static void quiet(void *owner, enum log_level level, struct str line)
{
}

START_TEST(invalid_files_are_reported)
{
    static const struct {
        const char *directive, *file, *words;
    } faults[] = {
        {"named", "absent.pem", "absent.pem\" cannot be opened: No such file"},
        {"named", "empty.pem", "contains no certificate"},
        {"named", "bad.pem", "certificate number 2 in"},
        {"trusted", "lists.pem", "contains no certificate"},
        {"revoked", "authority.pem", "contains no list of revoked certificates"},
        {"revoked", "absent.pem", "cannot be opened"},
    };
    struct tls_settings settings = verify_settings(TLS_VERIFY_ON);
    struct log log = {.level = LOG_ERROR, .sink = quiet};
    char error[512] = "";
    struct str path = pem_path(faults[_i].file);

    pem_write_text("empty.pem", STR(""));
    pem_write_certificates("bad.pem", &authority.certificate, 1);
    FILE *more = fopen(pem_path("bad.pem").data, "a");
    fputs("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", more);
    fclose(more);
    if (*faults[_i].directive == 'n')
        settings.client.client_ca = path;
    else if (*faults[_i].directive == 't')
        settings.client.trusted = path;
    else
        settings.client.crl = path;
    ck_assert_ptr_null(tls_context_create(&settings, 1, &log, error, sizeof(error)));
    ck_assert_msg(strstr(error, faults[_i].words), "%s", error);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, make_all, free_all);
    tcase_add_loop_test(tcase, client_certificate_is_verified, 0, 2 * CASES);
    tcase_add_loop_test(tcase, resumption_keeps_the_verification, 0, 2 * CASES);
    tcase_add_loop_test(tcase, sessions_are_bound_to_their_server, 0, 2 * 3);
    tcase_add_loop_test(tcase, sessions_are_bound_to_the_revocation_list, 0, 2);
    tcase_add_loop_test(tcase, chains_and_revocation_lists, 0, sizeof(chains) / sizeof(chains[0]));
    tcase_add_loop_test(tcase, names_of_authorities_sent_to_clients, 0, 2);
    tcase_add_test(tcase, facts_of_the_client_certificate);
    tcase_add_loop_test(tcase, invalid_files_are_reported, 0, 6);
}

int main(void)
{
    return run_suite("tls_verify", add_tests);
}
