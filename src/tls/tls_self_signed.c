/*
 * `ssl_certificate: self-signed`: ECDSA P-256, generated in memory at start for the server's names and those of this
 * machine. Clients do not trust it; the log has its fingerprint for comparison.
 */
#include "tls/tls_server.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { NAMES_MAX = 64, VALID_DAYS = 397, DAY = 24 * 60 * 60, NAME_MAX_LENGTH = 253 };

static bool add_name(GENERAL_NAMES *names, int type, ASN1_STRING *value)
{
    GENERAL_NAME *name = GENERAL_NAME_new();

    if (name && value) {
        GENERAL_NAME_set0_value(name, type, value);
        if (sk_GENERAL_NAME_push(names, name) > 0)
            return true;
        GENERAL_NAME_free(name);
        return false;
    }
    GENERAL_NAME_free(name);
    ASN1_STRING_free(value);
    return false;
}

static bool add_dns(GENERAL_NAMES *names, struct str name)
{
    ASN1_IA5STRING *value = ASN1_IA5STRING_new();

    if (!value || ASN1_STRING_set(value, name.data, (int)name.length) != 1) {
        ASN1_IA5STRING_free(value);
        return false;
    }
    return add_name(names, GEN_DNS, value);
}

static bool add_address(GENERAL_NAMES *names, const char *text)
{
    return add_name(names, GEN_IPADD, a2i_IPADDRESS(text));
}

static bool is_address(struct str name, char text[INET6_ADDRSTRLEN])
{
    unsigned char bytes[16];

    if (name.length >= INET6_ADDRSTRLEN)
        return false;
    memcpy(text, name.data, name.length);
    text[name.length] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Certificates hold exact names and "*." prefixes only: nginx's other forms are left out. */
static bool is_dns(struct str name)
{
    struct str rest = str_starts(name, STR("*.")) ? str_skip(name, 2) : name;

    if (str_empty(rest) || name.length > NAME_MAX_LENGTH)
        return false;
    for (size_t i = 0; i < rest.length; i++) {
        char c = str_lower(rest.data[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'))
            return false;
    }
    return rest.data[0] != '.' && !str_equal(rest, STR("_"));
}

static bool add_server_name(GENERAL_NAMES *names, struct str name)
{
    char address[INET6_ADDRSTRLEN], wildcard[NAME_MAX_LENGTH + 1];

    if (is_address(name, address))
        return add_address(names, address);
    if (name.length > 1 && name.data[0] == '.' && name.length < NAME_MAX_LENGTH &&
        is_dns(str_skip(name, 1))) {
        snprintf(wildcard, sizeof(wildcard), "*" STR_FMT, STR_ARG(name));
        return add_dns(names, str_skip(name, 1)) && add_dns(names, str_from(wildcard));
    }
    return !is_dns(name) || str_equal_nocase(name, STR("localhost")) || add_dns(names, name);
}

static bool add_alternative_names(X509 *certificate, const struct tls_settings *settings)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    bool good = names;

    for (size_t i = 0; good && i < settings->name_count && i < NAMES_MAX; i++)
        good = add_server_name(names, settings->names[i]);
    good = good && add_dns(names, STR("localhost")) && add_address(names, "127.0.0.1") &&
           add_address(names, "::1");
    good = good && X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(names);
    return good;
}

static bool add_extension(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX plain;

    X509V3_set_ctx_nodb(&plain);
    X509V3_set_ctx(&plain, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &plain, nid, value);
    bool good = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return good;
}

/* A random serial number: browsers reject two certificates of one issuer with equal numbers. */
static bool set_serial(X509 *certificate)
{
    unsigned char bytes[16];

    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return good;
}

static bool set_subject(X509 *certificate, const struct tls_settings *settings)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    struct str common = STR("localhost");

    if (settings->name_count && is_dns(settings->names[0]) && settings->names[0].length <= 64)
        common = settings->names[0];
    return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"sluice self-signed",
                                      -1, -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common.data,
                                      (int)common.length, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1;
}

static X509 *create_certificate(EVP_PKEY *key, const struct tls_settings *settings)
{
    X509 *certificate = X509_new();

    if (certificate && X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY) &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), (long)VALID_DAYS * DAY) &&
        set_subject(certificate, settings) && X509_set_pubkey(certificate, key) == 1 &&
        add_alternative_names(certificate, settings) &&
        add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
        add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
        X509_sign(certificate, key, EVP_sha256()) > 0)
        return certificate;
    X509_free(certificate);
    return NULL;
}

static void log_fingerprint(X509 *certificate, const struct tls_settings *settings, struct log *log)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char text[3 * EVP_MAX_MD_SIZE + 1] = "";
    unsigned length = 0;

    if (X509_digest(certificate, EVP_sha256(), digest, &length) != 1)
        length = 0;
    for (size_t i = 0; i < length; i++)
        snprintf(text + 3 * i, 4, "%02X%s", digest[i], i + 1 < length ? ":" : "");
    struct str name = settings->name_count ? settings->names[0] : STR("localhost");
    log_write(log, LOG_NOTICE,
              "generated a self-signed certificate for \"" STR_FMT "\" (browsers will warn of it), SHA-256 %s",
              STR_ARG(name), text);
}

bool tls_self_signed_make(struct tls_server *server, struct log *log, const struct tls_reporter *reporter)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key ? create_certificate(key, server->settings) : NULL;
    bool good = certificate && SSL_CTX_use_cert_and_key(server->openssl, certificate, key, NULL, 1) == 1;

    if (good)
        log_fingerprint(certificate, server->settings, log);
    else
        tls_fail(reporter, "a self-signed certificate cannot be generated: %s", tls_openssl_reason());
    X509_free(certificate);
    EVP_PKEY_free(key);
    return good;
}
