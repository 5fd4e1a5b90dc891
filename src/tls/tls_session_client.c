/*
 * Properties of the client's certificate, for variables.
 */
#include "tls/tls_session_private.h"

#include "base/clock.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

static struct str copy_bio_text(BIO *text, struct arena *arena)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(text, &bytes);

    return arena_copy(arena, str_of(bytes ? bytes : "", length > 0 ? (size_t)length : 0));
}

typedef bool writer(BIO *text, X509 *certificate);

/* RFC 2253 with unescaped UTF-8. */
static bool write_name(BIO *text, const X509_NAME *name)
{
    return X509_NAME_print_ex(text, name, 0, XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) >= 0;
}

static bool write_subject(BIO *text, X509 *certificate)
{
    return write_name(text, X509_get_subject_name(certificate));
}

static bool write_issuer(BIO *text, X509 *certificate)
{
    return write_name(text, X509_get_issuer_name(certificate));
}

static bool write_serial(BIO *text, X509 *certificate)
{
    return i2a_ASN1_INTEGER(text, X509_get0_serialNumber(certificate)) > 0;
}

static bool write_fingerprint(BIO *text, X509 *certificate)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    bool good = X509_digest(certificate, EVP_sha1(), digest, &length) == 1;

    for (unsigned i = 0; i < length && good; i++)
        good = BIO_printf(text, "%02x", digest[i]) == 2;
    return good;
}

static bool write_start(BIO *text, X509 *certificate)
{
    return ASN1_TIME_print(text, X509_get0_notBefore(certificate)) == 1;
}

static bool write_not_after(BIO *text, X509 *certificate)
{
    return ASN1_TIME_print(text, X509_get0_notAfter(certificate)) == 1;
}

/* Whole days. */
static bool write_remain(BIO *text, X509 *certificate)
{
    struct clock clock;
    int days = 0, seconds = 0;

    clock_read(&clock);
    ASN1_TIME *now = ASN1_TIME_set(NULL, (time_t)clock_wall_s(&clock));
    bool good = now && ASN1_TIME_diff(&days, &seconds, now, X509_get0_notAfter(certificate)) == 1;
    ASN1_TIME_free(now);
    return good && BIO_printf(text, "%d", days > 0 ? days : 0) > 0;
}

static bool write_raw(BIO *text, X509 *certificate)
{
    return PEM_write_bio_X509(text, certificate) == 1;
}

/* nginx's folded form: each line but the first begins with a tab, and the last has no line end. */
static bool write_folded(BIO *text, X509 *certificate)
{
    BIO *raw = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    bool good = raw && write_raw(raw, certificate);
    long length = good ? BIO_get_mem_data(raw, &bytes) : 0;

    for (long i = 0; i + 1 < length && good; i++)
        good = BIO_write(text, bytes[i] == '\n' ? "\n\t" : &bytes[i], bytes[i] == '\n' ? 2 : 1) > 0;
    BIO_free(raw);
    return good;
}

/* Percent-encodes all but unreserved characters (RFC 3986 2.3). */
static bool write_escaped(BIO *text, X509 *certificate)
{
    BIO *raw = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    bool good = raw && write_raw(raw, certificate);
    long length = good ? BIO_get_mem_data(raw, &bytes) : 0;

    for (long i = 0; i < length && good; i++) {
        char byte = bytes[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';

        good = plain ? BIO_write(text, &byte, 1) == 1 : BIO_printf(text, "%%%02X", (unsigned char)byte) == 3;
    }
    BIO_free(raw);
    return good;
}

static writer *const writers[] = {
    [TLS_CLIENT_SUBJECT] = write_subject,   [TLS_CLIENT_ISSUER] = write_issuer,
    [TLS_CLIENT_SERIAL] = write_serial,     [TLS_CLIENT_FINGERPRINT] = write_fingerprint,
    [TLS_CLIENT_START] = write_start,       [TLS_CLIENT_END] = write_not_after,
    [TLS_CLIENT_REMAIN] = write_remain,     [TLS_CLIENT_PEM] = write_raw,
    [TLS_CLIENT_PEM_FOLDED] = write_folded, [TLS_CLIENT_PEM_ESCAPED] = write_escaped,
};

struct str tls_session_client_property(const struct tls_session *session, enum tls_client_property property,
                                   struct arena *arena)
{
    X509 *certificate = tls_session_is_negotiated(session) ? SSL_get0_peer_certificate(session->ssl) : NULL;
    BIO *text = certificate ? BIO_new(BIO_s_mem()) : NULL;
    struct str found = {NULL, 0};

    if (text && writers[property](text, certificate))
        found = copy_bio_text(text, arena);
    BIO_free(text);
    ERR_clear_error();
    return found;
}

const char *tls_session_client_fault(const struct tls_session *session)
{
    return X509_verify_cert_error_string(SSL_get_verify_result(session->ssl));
}

struct str tls_session_client_verify(const struct tls_session *session, struct arena *arena)
{
    if (!tls_session_is_negotiated(session))
        return str_from(NULL);
    if (!SSL_get0_peer_certificate(session->ssl))
        return STR("NONE");
    if (SSL_get_verify_result(session->ssl) == X509_V_OK)
        return STR("SUCCESS");
    return arena_printf(arena, "FAILED:%s", tls_session_client_fault(session));
}
