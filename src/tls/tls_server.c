/*
 * Loads one virtual server: an SSL_CTX with all its settings.
 */
#include "tls/tls_session_private.h"

#include "base/limits.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>

/* OpenSSL confirms the name (RFC 6066 3) and keeps it only with this callback; the server is already selected. */
static int name_confirmed(SSL *ssl, int *alert, void *argument)
{
    return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

/* RFC 9113 9.2.2: in TLS 1.2 only suites with ephemeral keys and an AEAD are outside of the blocklist (appendix A). */
static bool is_suite_for_http2(const SSL *ssl)
{
    const SSL_CIPHER *cipher = SSL_get_pending_cipher(ssl);
    int exchange = cipher ? SSL_CIPHER_get_kx_nid(cipher) : NID_undef;

    return cipher && SSL_CIPHER_is_aead(cipher) &&
           (exchange == NID_kx_any || exchange == NID_kx_ecdhe || exchange == NID_kx_dhe);
}

/* True if the list begins with "h2". */
static bool prefers_http2(const struct tls_server *server)
{
    return server->alpn_length > 3 && memcmp(server->alpn, "\2h2", 3) == 0;
}

/* RFC 7301 3.2: the server's order decides; without a common protocol the handshake fails with an alert. */
static int protocol_chosen(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *offered, unsigned offered_length, void *argument)
{
    const struct tls_server *server = tls_session_of(ssl)->server;
    unsigned skipped = prefers_http2(server) && !is_suite_for_http2(ssl) ? 3 : 0;
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, out_length, server->alpn + skipped, server->alpn_length - skipped, offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_alpn(struct tls_server *server, const struct tls_reporter *reporter)
{
    const struct str usual[] = {STR("h2"), STR("http/1.1"), STR("http/1.0")};
    const struct str *names = server->settings->alpn;
    size_t count = server->settings->alpn_count, length = 0;
    struct tls_reporter at = tls_reporter_at(reporter, "ssl_alpn", 0);

    if (!names) {
        names = server->settings->http2 ? usual : usual + 1;
        count = server->settings->http2 ? 3 : 2;
    }
    if (count == 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (str_empty(names[i]) || names[i].length > 255)
            return tls_fail(&at, "\"" STR_FMT "\" is not an ALPN protocol name\nwrite: ssl_alpn: [h2, http/1.1]",
                            STR_ARG(names[i]));
        length += 1 + names[i].length;
    }
    unsigned char *list = malloc(length), *next = list;
    if (!list)
        return tls_fail(reporter, "out of memory");
    for (size_t i = 0; i < count; i++) {
        *next++ = (unsigned char)names[i].length;
        memcpy(next, names[i].data, names[i].length);
        next += names[i].length;
    }
    server->alpn = list;
    server->alpn_length = (unsigned)length;
    SSL_CTX_set_alpn_select_cb(server->openssl, protocol_chosen, NULL);
    return true;
}

static bool set_protocols(struct tls_server *server, const struct tls_reporter *reporter)
{
    unsigned protocols = server->settings->protocols;
    int min = protocols == TLS_PROTOCOL_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    int max = protocols == TLS_PROTOCOL_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;

    if (SSL_CTX_set_min_proto_version(server->openssl, min) == 1 &&
        SSL_CTX_set_max_proto_version(server->openssl, max) == 1)
        return true;
    return tls_fail(reporter, "ssl_protocols cannot be set: %s", tls_openssl_reason());
}

struct list_setting {
    const char *directive;
    int (*set)(SSL_CTX *openssl, const char *list);
    const char *hint;
};

/* Calls an OpenSSL setter that takes a list as text. */
static bool set_list(SSL_CTX *openssl, const struct list_setting *setting, struct str list,
                     const struct tls_reporter *reporter)
{
    struct tls_reporter at = tls_reporter_at(reporter, setting->directive, 0);
    char *text = strndup(list.data, list.length);

    if (!text)
        return tls_fail(reporter, "out of memory");
    bool good = setting->set(openssl, text) == 1;
    free(text);
    if (!good)
        return tls_fail(&at, "%s: \"" STR_FMT "\" is rejected by OpenSSL: %s\n%s", setting->directive,
                        STR_ARG(list), tls_openssl_reason(), setting->hint);
    return true;
}

static bool set_ciphers(struct tls_server *server, const struct tls_reporter *reporter)
{
    const struct tls_settings *settings = server->settings;
    struct str ciphers = str_empty(settings->ciphers) ? STR(TLS_CIPHERS_DEFAULT) : settings->ciphers;
    struct str suites =
        str_empty(settings->ciphersuites) ? STR(TLS_CIPHERSUITES_DEFAULT) : settings->ciphersuites;

    static const struct list_setting old = {
        "ssl_ciphers", SSL_CTX_set_cipher_list,
        "openssl ciphers -v lists the available ones; set those of TLS 1.3 in "
        "ssl_ciphersuites"};
    static const struct list_setting new = {"ssl_ciphersuites", SSL_CTX_set_ciphersuites,
                                            "openssl ciphers -v -s -tls1_3 lists the available ones"};
    bool good = set_list(server->openssl, &old, ciphers, reporter);

    return set_list(server->openssl, &new, suites, reporter) && good;
}

static int set_groups_text(SSL_CTX *openssl, const char *groups)
{
    return *groups && SSL_CTX_set1_groups_list(openssl, groups) == 1; /* OpenSSL 3.5 accepts an empty list */
}

bool tls_has_group(const char *name)
{
    SSL_CTX *openssl = SSL_CTX_new(TLS_server_method());
    bool has = openssl && SSL_CTX_set1_groups_list(openssl, name) == 1;

    SSL_CTX_free(openssl);
    ERR_clear_error();
    return has;
}

/*
 * The groups that this OpenSSL supports: "?X" is X if it has the group. OpenSSL 3.5 and later interprets "?" itself.
 */
static char *known_groups(struct str list)
{
    char *known = calloc(1, list.length + 1), *end = known, *one = malloc(list.length + 1);

    while (known && one && list.data) {
        struct str name = str_cut(&list, ':');
        bool optional = str_starts(name, STR("?"));

        if (optional)
            name = str_skip(name, 1);
        memcpy(one, name.data, name.length);
        one[name.length] = '\0';
        if (!optional || tls_has_group(one))
            end += sprintf(end, "%s%s", end == known ? "" : ":", one);
    }
    free(one);
    return known;
}

static bool set_curves(struct tls_server *server, const struct tls_reporter *reporter)
{
    static const struct list_setting setting = {"ssl_ecdh_curve", set_groups_text,
                                                "for example X25519:prime256v1; auto selects OpenSSL's default list"};
    struct str curves = server->settings->curves;

    if (str_empty(curves) || str_equal(curves, STR("auto")))
        return true;
    server->groups = known_groups(curves);
    if (!server->groups)
        return tls_fail(reporter, "out of memory");
    return set_list(server->openssl, &setting, str_from(server->groups), reporter);
}

static void set_options(struct tls_server *server)
{
    SSL_CTX_set_options(server->openssl,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS);
    if (server->settings->prefer_server_ciphers)
        SSL_CTX_set_options(server->openssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(server->openssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(server->openssl, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_tlsext_servername_callback(server->openssl, name_confirmed);
}

/*
 * The session id context is a digest of the certificate and of all settings that verify clients: a ticket of one
 * virtual server resumes no session of another.
 */
static bool set_session_context(struct tls_server *server, const struct tls_reporter *reporter)
{
    unsigned char digest[EVP_MAX_MD_SIZE], leaf[EVP_MAX_MD_SIZE];
    unsigned length = 0, leaf_length = 0;
    const X509 *certificate = SSL_CTX_get0_certificate(server->openssl);

    if (server->settings->reject && !certificate)
        return true;
    if (certificate && X509_digest(certificate, EVP_sha256(), leaf, &leaf_length) == 1 &&
        EVP_DigestUpdate(server->digest, leaf, leaf_length) == 1 &&
        EVP_DigestFinal_ex(server->digest, digest, &length) == 1 &&
        SSL_CTX_set_session_id_context(server->openssl, digest, length) == 1)
        return true;
    return tls_fail(reporter, "the session context cannot be set: %s", tls_openssl_reason());
}

/* A reload keeps a generated certificate, and a certificate whose file was removed. */
static bool use_previous_certificate(struct tls_server *server, const struct tls_reporter *reporter)
{
    STACK_OF(X509) *chain = NULL; /* only of a certificate from a file that was removed */

    if (SSL_CTX_get0_chain_certs(server->previous, &chain) == 1 &&
        SSL_CTX_use_cert_and_key(server->openssl, SSL_CTX_get0_certificate(server->previous),
                                 SSL_CTX_get0_privatekey(server->previous), chain, 1) == 1)
        return true;
    return tls_fail(reporter, "the previous certificate cannot be used: %s", tls_openssl_reason());
}

static bool make_self_signed(struct tls_server *server, struct log *log, const struct tls_reporter *reporter)
{
    return server->previous ? use_previous_certificate(server, reporter) : tls_self_signed_make(server, log, reporter);
}

static bool load_passwords(struct tls_server *server, const struct tls_reporter *reporter)
{
    struct tls_reporter at = tls_reporter_at(reporter, "ssl_password_file", 0);

    if (str_empty(server->settings->passwords))
        return true;
    server->passwords = calloc(1, sizeof(*server->passwords));
    if (!server->passwords)
        return tls_fail(reporter, "out of memory");
    return tls_file_open(server->passwords, server, server->settings->passwords, &at);
}

static void wipe_passwords(struct tls_server *server)
{
    if (server->passwords)
        tls_file_finish(server->passwords);
    free(server->passwords);
    server->passwords = NULL;
}

static bool load_certificates(struct tls_server *server, struct log *log, const struct tls_reporter *reporter)
{
    const struct tls_settings *settings = server->settings;
    bool good = load_passwords(server, reporter);

    if (settings->certificate_count == 0 && settings->reject)
        return good;
    if (settings->certificate_count == 0)
        return tls_fail(reporter, "no ssl_certificate is given\nuse a PEM file, or self-signed");
    for (size_t i = 0; i < settings->certificate_count; i++) {
        bool self_signed = str_equal(settings->certificates[i].certificate, STR("self-signed")) ||
                           tls_certificate_absent(server, &settings->certificates[i]);

        good &= self_signed ? make_self_signed(server, log, reporter)
                            : tls_certificate_load(server, &settings->certificates[i], i, log, reporter);
    }
    return good;
}

bool tls_server_load(struct tls_server *server, struct log *log, const struct tls_reporter *reporter)
{
    server->openssl = SSL_CTX_new(TLS_server_method());
    server->digest = EVP_MD_CTX_new();
    if (!server->openssl || !server->digest || EVP_DigestInit_ex(server->digest, EVP_sha256(), NULL) != 1)
        return tls_fail(reporter, "OpenSSL: %s", tls_openssl_reason());
    set_options(server);
    /* Runs all loaders, so that every fault is reported. */
    bool good = tls_tickets_set(server, reporter);
    good &= set_protocols(server, reporter);
    good &= set_ciphers(server, reporter);
    good &= set_curves(server, reporter);
    good &= tls_dh_set(server, reporter);
    good &= tls_commands_set(server, reporter);
    good &= set_alpn(server, reporter);
    tls_early_set(server);
    good &= tls_verify_set(server, reporter);
    good &= load_certificates(server, log, reporter);
    wipe_passwords(server);
    good = good && set_session_context(server, reporter);
    EVP_MD_CTX_free(server->digest);
    server->digest = NULL;
    return good;
}

void tls_server_finish(struct tls_server *server)
{
    SSL_CTX_free(server->openssl);
    EVP_MD_CTX_free(server->digest);
    free(server->alpn);
    free(server->groups);
    OPENSSL_clear_free(server->ticket_keys, server->ticket_key_count * sizeof(struct ticket_key));
}
