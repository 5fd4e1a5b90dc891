#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

static struct tls_challenge pending;
static unsigned searches;

/* The challenge of one name: `owner`. */
static bool find(void *owner, struct str server_name, struct tls_challenge *out_challenge)
{
    searches++;
    if (!owner || !str_equal(server_name, str_from(owner)))
        return false;
    *out_challenge = pending;
    return true;
}

static void set_up(struct tls_pair *pair, const struct tls_settings *settings, char *name, const char *identifier)
{
    pair_open(pair, settings, 1);
    pending = (struct tls_challenge){.digest = {1, 2, [31] = 32}};
    snprintf(pending.identifier, sizeof(pending.identifier), "%s", identifier);
    ck_assert(tls_context_answer_challenges(pair->context, find, name));
    searches = 0;
}

static int connect_with(struct tls_pair *pair, const char *name, const char *alpn, int version)
{
    pair_reconnect(pair);
    pair->alert = 0;
    SSL_set_max_proto_version(pair->client, version);
    if (name)
        SSL_set_tlsext_host_name(pair->client, name);
    if (*alpn)
        SSL_set_alpn_protos(pair->client, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    int result = pair_handshake(pair);
    (void)SSL_do_handshake(pair->client); /* reads an alert */
    ERR_clear_error();
    return result;
}

static void check_alternative_name(X509 *certificate, int type, const char *bytes, int length)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int found;
    const ASN1_STRING *value;

    ck_assert_int_eq(sk_GENERAL_NAME_num(names), 1);
    value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &found);
    ck_assert_int_eq(found, type);
    ck_assert_int_eq(ASN1_STRING_length(value), length);
    ck_assert(memcmp(ASN1_STRING_get0_data(value), bytes, (size_t)length) == 0);
    GENERAL_NAMES_free(names);
}

/* RFC 8737 3: critical, and the DER of an OCTET STRING of 32 bytes. */
static void check_digest(X509 *certificate)
{
    ASN1_OBJECT *identifier = OBJ_txt2obj("1.3.6.1.5.5.7.1.31", 1);
    X509_EXTENSION *extension = X509_get_ext(certificate, X509_get_ext_by_OBJ(certificate, identifier, -1));
    const ASN1_OCTET_STRING *value = X509_EXTENSION_get_data(extension);
    const unsigned char *bytes = ASN1_STRING_get0_data(value);

    ck_assert_int_eq(X509_EXTENSION_get_critical(extension), 1);
    ck_assert_int_eq(ASN1_STRING_length(value), 34);
    ck_assert(bytes[0] == 4 && bytes[1] == 32 && memcmp(bytes + 2, pending.digest, 32) == 0);
    ASN1_OBJECT_free(identifier);
}

static void check_answer(struct tls_pair *pair, int type, const char *bytes, int length)
{
    const unsigned char *alpn;
    unsigned alpn_length;
    X509 *certificate = SSL_get0_peer_certificate(pair->client);

    SSL_get0_alpn_selected(pair->client, &alpn, &alpn_length);
    ck_assert(alpn_length == 10 && memcmp(alpn, "acme-tls/1", 10) == 0);
    ck_assert_int_eq(X509_verify(certificate, X509_get0_pubkey(certificate)), 1);
    check_alternative_name(certificate, type, bytes, length);
    check_digest(certificate);
}

START_TEST(a_pending_challenge_is_answered)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    settings.early_data = true;
    set_up(&pair, &settings, (char[]){"a.test"}, "a.test");
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x0a" "acme-tls/1", TLS1_3_VERSION), TLS_SESSION_CHALLENGE);
    check_answer(&pair, GEN_DNS, "a.test", 6);
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x0a" "acme-tls/1", TLS1_2_VERSION), TLS_SESSION_CHALLENGE);
    check_answer(&pair, GEN_DNS, "a.test", 6);
    /* The next connection has the certificate of the server. */
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x08http/1.1", TLS1_3_VERSION), 0);
    ck_assert_int_lt(X509_get_ext_by_NID(SSL_get0_peer_certificate(pair.client), NID_subject_key_identifier, -1), 0);
    ck_assert_uint_eq(searches, 2);
    pair_close(&pair);
}
END_TEST

START_TEST(an_address_is_named_as_such)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    set_up(&pair, &settings, (char[]){"1.2.0.192.in-addr.arpa"}, "192.0.2.1");
    ck_assert_int_eq(connect_with(&pair, "1.2.0.192.in-addr.arpa", "\x0a" "acme-tls/1", TLS1_3_VERSION),
                     TLS_SESSION_CHALLENGE);
    check_answer(&pair, GEN_IPADD, "\xc0\x00\x02\x01", 4);
    pair_close(&pair);
}
END_TEST

START_TEST(no_session_of_a_challenge_is_resumed)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    SSL_SESSION *session;

    set_up(&pair, &settings, (char[]){"a.test"}, "a.test");
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x0a" "acme-tls/1", TLS1_2_VERSION), TLS_SESSION_CHALLENGE);
    session = SSL_get1_session(pair.client);
    ck_assert(!SSL_SESSION_has_ticket(session));
    pair_reconnect(&pair);
    SSL_set_max_proto_version(pair.client, TLS1_2_VERSION);
    SSL_set_tlsext_host_name(pair.client, "a.test");
    SSL_set_session(pair.client, session);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    ck_assert_int_eq(SSL_session_reused(pair.client), 0);
    SSL_SESSION_free(session);
    pair_close(&pair);
}
END_TEST

START_TEST(other_handshakes_are_rejected)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    set_up(&pair, &settings, (char[]){"a.test"}, "a.test");
    const char *const names[] = {"b.test", NULL};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_int_eq(connect_with(&pair, names[i], "\x0a" "acme-tls/1", TLS1_3_VERSION), -EPROTO);
        ck_assert_int_eq(pair.alert, SSL_AD_NO_APPLICATION_PROTOCOL);
        ck_assert_ptr_nonnull(strstr(tls_session_error(pair.session), "no challenge tls-alpn-01 is pending"));
    }
    ck_assert_uint_eq(searches, 2);
    pair_close(&pair);
}
END_TEST

START_TEST(the_protocol_is_unknown_in_longer_lists)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    const unsigned char *alpn;
    unsigned length;

    settings.http2 = true;
    set_up(&pair, &settings, (char[]){"a.test"}, "a.test");
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x0a" "acme-tls/1\x02h2", TLS1_3_VERSION), 0);
    SSL_get0_alpn_selected(pair.client, &alpn, &length);
    ck_assert(length == 2 && memcmp(alpn, "h2", 2) == 0);
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x0a" "acme-tls/1\x0a" "acme-tls/1", TLS1_3_VERSION), -EPROTO);
    ck_assert_int_eq(pair.alert, SSL_AD_NO_APPLICATION_PROTOCOL);
    ck_assert_int_eq(connect_with(&pair, "a.test", "", TLS1_3_VERSION), 0);
    ck_assert_uint_eq(searches, 0);
    pair_close(&pair);
}
END_TEST

START_TEST(a_context_without_challenges_does_not_know_the_protocol)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    ck_assert_int_eq(connect_with(&pair, "a.test", "\x0a" "acme-tls/1", TLS1_3_VERSION), -EPROTO);
    ck_assert_int_eq(pair.alert, SSL_AD_NO_APPLICATION_PROTOCOL);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_pending_challenge_is_answered);
    tcase_add_test(tcase, an_address_is_named_as_such);
    tcase_add_test(tcase, no_session_of_a_challenge_is_resumed);
    tcase_add_test(tcase, other_handshakes_are_rejected);
    tcase_add_test(tcase, the_protocol_is_unknown_in_longer_lists);
    tcase_add_test(tcase, a_context_without_challenges_does_not_know_the_protocol);
}

int main(void)
{
    return run_suite("tls_challenge", add_tests);
}
