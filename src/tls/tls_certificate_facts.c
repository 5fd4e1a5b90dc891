/*
 * Reads the certificates of a context from OpenSSL: see tls_certificate_facts.h.
 */
#include "tls/tls_certificate_facts.h"

#include "tls/tls_server.h"

#include <stdio.h>
#include <time.h>

/* Certificate number `index`, one for each type of key. The current one of `openssl` stays the same. */
static X509 *find_certificate(SSL_CTX *openssl, size_t index)
{
    X509 *before = SSL_CTX_get0_certificate(openssl);
    int more = SSL_CTX_set_current_cert(openssl, SSL_CERT_SET_FIRST);
    X509 *found;

    for (size_t i = 0; i < index && more == 1; i++)
        more = SSL_CTX_set_current_cert(openssl, SSL_CERT_SET_NEXT);
    found = more == 1 ? SSL_CTX_get0_certificate(openssl) : NULL;
    if (before)
        (void)SSL_CTX_select_current_cert(openssl, before);
    return found;
}

static void name_print(X509_NAME *name, char into[256])
{
    BIO *memory = BIO_new(BIO_s_mem());
    int length = -1;

    if (memory && X509_NAME_print_ex(memory, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0)
        length = BIO_read(memory, into, 255);
    into[length > 0 ? length : 0] = '\0';
    BIO_free(memory);
}

bool tls_certificate_facts(const struct tls_context *context, size_t server, size_t index,
                           struct tls_certificate_facts *out_facts)
{
    X509 *certificate =
        server < context->count ? find_certificate(context->servers[server].openssl, index) : NULL;
    const char *key = certificate ? EVP_PKEY_get0_type_name(X509_get0_pubkey(certificate)) : NULL;
    struct tm until = {0};

    if (!certificate)
        return false;
    *out_facts = (struct tls_certificate_facts){.until_s = -1};
    name_print(X509_get_subject_name(certificate), out_facts->subject);
    name_print(X509_get_issuer_name(certificate), out_facts->issuer);
    snprintf(out_facts->key, sizeof(out_facts->key), "%s", key ? key : "");
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) == 1)
        out_facts->until_s = timegm(&until);
    return true;
}
