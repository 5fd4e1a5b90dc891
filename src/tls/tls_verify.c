/*
 * Verification of client certificates by one virtual server. The handshake completes in any case, so that a client
 * with an invalid or missing certificate gets an error page: tls_session_client_state returns the stored result.
 */
#include "tls/tls_session_private.h"

#include "base/clock.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

/* True if the only fault is an unknown issuer. */
static bool is_unknown_issuer(int error)
{
    switch (error) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        return true;
    default:
        return false;
    }
}

/* Examines all faults and keeps the first of the most severe. */
static int record_fault(int good, X509_STORE_CTX *store)
{
    int *worst = X509_STORE_CTX_get_app_data(store);

    if (!good && (*worst == X509_V_OK || is_unknown_issuer(*worst)) &&
        (*worst == X509_V_OK || !is_unknown_issuer(X509_STORE_CTX_get_error(store))))
        *worst = X509_STORE_CTX_get_error(store);
    return 1;
}

static int certificate_verified(X509_STORE_CTX *store, void *unused)
{
    int worst = X509_V_OK;

    X509_STORE_CTX_set_app_data(store, &worst);
    X509_STORE_CTX_set_verify_cb(store, record_fault);
    if (X509_verify_cert(store) <= 0 && worst == X509_V_OK)
        worst = X509_STORE_CTX_get_error(store) ? X509_STORE_CTX_get_error(store) : X509_V_ERR_UNSPECIFIED;
    X509_STORE_CTX_set_error(store, worst);
    ERR_clear_error();
    return 1;
}

static bool has_expired(const X509 *certificate)
{
    struct clock clock;
    time_t now;

    clock_read(&clock);
    now = (time_t)clock_wall_s(&clock);
    return X509_cmp_time(X509_get0_notAfter(certificate), &now) < 0;
}

enum tls_client_state tls_session_client_state(const struct tls_session *session)
{
    enum tls_verify mode = session->server->settings->client.verify;
    int result = (int)SSL_get_verify_result(session->ssl);

    if (mode == TLS_VERIFY_OFF)
        return TLS_CLIENT_ACCEPTED;
    if (!SSL_get0_peer_certificate(session->ssl))
        return mode == TLS_VERIFY_ON ? TLS_CLIENT_ABSENT : TLS_CLIENT_ACCEPTED;
    if (result == X509_V_OK || (mode == TLS_VERIFY_OPTIONAL_NO_CA && is_unknown_issuer(result)))
        return TLS_CLIENT_ACCEPTED;
    return TLS_CLIENT_REFUSED;
}

/* A session without an accepted certificate is not resumed: the full handshake requests a certificate again. */
bool tls_verify_resumes(const struct tls_server *server, SSL_SESSION *resumed, const struct ticket_appdata *appdata)
{
    const X509 *certificate = SSL_SESSION_get0_peer(resumed);

    if (server->settings->client.verify == TLS_VERIFY_OFF)
        return true;
    return appdata && appdata->accepted && (!certificate || !has_expired(certificate));
}

static bool add_authority(struct tls_server *server, X509 *certificate, bool named)
{
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(server->openssl), certificate) == 1 &&
           (!named || SSL_CTX_add_client_CA(server->openssl, certificate) == 1);
}

static bool add_list(struct tls_server *server, X509_CRL *list)
{
    return X509_STORE_add_crl(SSL_CTX_get_cert_store(server->openssl), list) == 1;
}

/* Reads the items of a PEM file; a session verified with other contents of the file is not resumed. */
static bool read_items(struct tls_server *server, const char *directive, struct str path,
                       const struct tls_reporter *reporter)
{
    struct tls_reporter at = tls_reporter_at(reporter, directive, 0);
    bool lists = strcmp(directive, "ssl_crl") == 0, named = strcmp(directive, "ssl_client_certificate") == 0;
    struct tls_file file = {0};
    bool good = tls_file_open(&file, server, path, &at) &&
                EVP_DigestUpdate(server->digest, directive, strlen(directive) + 1) == 1 &&
                EVP_DigestUpdate(server->digest, file.text, file.length) == 1;
    BIO *reader = good ? BIO_new_mem_buf(file.text, (int)file.length) : NULL;
    size_t count = 0;

    while (reader && good) {
        X509 *certificate = lists ? NULL : PEM_read_bio_X509(reader, NULL, tls_no_password, NULL);
        X509_CRL *list = lists ? PEM_read_bio_X509_CRL(reader, NULL, tls_no_password, NULL) : NULL;

        if (!certificate && !list)
            break;
        good = lists ? add_list(server, list) : add_authority(server, certificate, named);
        count += good;
        X509_free(certificate);
        X509_CRL_free(list);
    }
    BIO_free(reader);
    bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (file.text && reader && (!ended || !good))
        good = tls_fail(&at, "%s number %zu in \"%s\" cannot be read: %s\nit is damaged: copy the file again",
                        lists ? "list" : "certificate", count + 1, file.name, tls_openssl_reason());
    else if (good && count == 0)
        good = tls_fail(&at, "\"%s\" contains no %s\nname a file of PEM text", file.name,
                        lists ? "list of revoked certificates (-----BEGIN X509 CRL-----)" : "certificate");
    ERR_clear_error();
    tls_file_finish(&file);
    return good;
}

bool tls_verify_set(struct tls_server *server, const struct tls_reporter *reporter)
{
    const struct tls_client_verify *client = &server->settings->client;
    SSL_CTX *openssl = server->openssl;
    const unsigned char terms[] = {(unsigned char)client->verify, (unsigned char)client->depth};
    bool good = EVP_DigestUpdate(server->digest, terms, sizeof(terms)) == 1;

    if (client->verify == TLS_VERIFY_OFF)
        return good || tls_fail(reporter, "out of memory");
    SSL_CTX_set_verify(openssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_verify_depth(openssl, (int)client->depth);
    SSL_CTX_set_cert_verify_callback(openssl, certificate_verified, NULL);
    if (!str_empty(client->client_ca))
        good &= read_items(server, "ssl_client_certificate", client->client_ca, reporter);
    if (!str_empty(client->trusted))
        good &= read_items(server, "ssl_trusted_certificate", client->trusted, reporter);
    if (str_empty(client->crl))
        return good;
    good &= read_items(server, "ssl_crl", client->crl, reporter);
    X509_STORE_set_flags(SSL_CTX_get_cert_store(openssl), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return good;
}
