/*
 * The challenge tls-alpn-01 of ACME (RFC 8737): a virtual server of its own, which selects "acme-tls/1" only and
 * presents a self-signed certificate with the digest of the key authorization. It makes no tickets, and resumes no
 * sessions.
 */
#include "tls/tls_server.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define PROTOCOL "acme-tls/1"
#define ACME_IDENTIFIER "1.3.6.1.5.5.7.1.31" /* id-pe-acmeIdentifier */

enum { DAY = 24 * 60 * 60 };

bool tls_challenge_offered(SSL *ssl)
{
    static const unsigned char only[] = {0, sizeof(PROTOCOL), sizeof(PROTOCOL) - 1, 'a', 'c', 'm', 'e', '-', 't', 'l',
                                         's', '/', '1'};
    const unsigned char *bytes;
    size_t length;

    return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes, &length) == 1 &&
           length == sizeof(only) && memcmp(bytes, only, sizeof(only)) == 0;
}

static void ignore_fault(void *owner, const struct tls_fault *fault)
{
}

bool tls_challenge_load(struct tls_context *context)
{
    static const struct str names[] = {{PROTOCOL, sizeof(PROTOCOL) - 1}};
    static const struct tls_settings settings = {
        .alpn = names, .alpn_count = 1, .reject = true /* needs no certificate */};
    const struct tls_reporter reporter = {ignore_fault, NULL, {.directive = ""}};
    struct tls_server *server = &context->challenge_server;

    *server = (struct tls_server){.context = context, .settings = &settings};
    return tls_server_load(server, NULL, &reporter) &&
           SSL_CTX_set_session_id_context(server->openssl, (const unsigned char *)PROTOCOL, sizeof(PROTOCOL) - 1) == 1;
}

/* The only name: a DNS name, or an IP address (RFC 8738 6). */
static bool add_name(X509 *certificate, const char *identifier)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(identifier), *value = address;
    bool good = false;

    if (!value && (value = ASN1_IA5STRING_new()) && ASN1_STRING_set(value, identifier, -1) != 1) {
        ASN1_STRING_free(value);
        value = NULL;
    }
    if (names && name && value) {
        GENERAL_NAME_set0_value(name, address ? GEN_IPADD : GEN_DNS, value);
        value = NULL;
        good = sk_GENERAL_NAME_push(names, name) > 0;
    }
    ASN1_STRING_free(value);
    if (!good)
        GENERAL_NAME_free(name);
    good = good && X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(names);
    return good;
}

/* acmeIdentifier: critical; its value is an OCTET STRING with the digest. */
static bool add_digest(X509 *certificate, const unsigned char *digest)
{
    enum { DIGEST = sizeof(((struct tls_challenge *)NULL)->digest) };
    unsigned char der[2 + DIGEST] = {V_ASN1_OCTET_STRING, DIGEST};
    ASN1_OBJECT *identifier = OBJ_txt2obj(ACME_IDENTIFIER, 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    X509_EXTENSION *extension = NULL;
    bool good = false;

    memcpy(der + 2, digest, DIGEST);
    if (identifier && value && ASN1_OCTET_STRING_set(value, der, sizeof(der)) == 1)
        extension = X509_EXTENSION_create_by_OBJ(NULL, identifier, 1, value);
    good = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(identifier);
    return good;
}

static X509 *create_certificate(EVP_PKEY *key, const struct tls_challenge *challenge)
{
    X509 *certificate = X509_new();
    X509_NAME *subject = certificate ? X509_get_subject_name(certificate) : NULL;

    if (subject && X509_set_version(certificate, X509_VERSION_3) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY) &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), DAY) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)"ACME challenge", -1, -1, 0) ==
            1 &&
        X509_set_issuer_name(certificate, subject) == 1 && X509_set_pubkey(certificate, key) == 1 &&
        add_name(certificate, challenge->identifier) && add_digest(certificate, challenge->digest) &&
        X509_sign(certificate, key, EVP_sha256()) > 0)
        return certificate;
    X509_free(certificate);
    return NULL;
}

bool tls_challenge_present(SSL *ssl, const struct tls_challenge *challenge)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key ? create_certificate(key, challenge) : NULL;
    bool good = certificate && SSL_use_cert_and_key(ssl, certificate, key, NULL, 1) == 1;

    X509_free(certificate);
    EVP_PKEY_free(key);
    ERR_clear_error(); /* a2i_IPADDRESS reports DNS names */
    return good;
}
