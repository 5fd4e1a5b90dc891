/*
 * Loads certificate chains and keys from PEM files, with error texts that name the remedy. Never prompts for a pass
 * phrase.
 */
#include "tls/tls_server.h"

#include "base/clock.h"
#include "base/limits.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>

static void chain_free(STACK_OF(X509) * chain)
{
    sk_X509_pop_free(chain, X509_free);
}

/* Reads every certificate of the file, leaf first. */
static STACK_OF(X509) * read_chain(const struct tls_file *file, const struct tls_reporter *reporter)
{
    BIO *reader = BIO_new_mem_buf(file->text, (int)file->length);
    STACK_OF(X509) *chain = sk_X509_new_null();
    X509 *one = NULL;
    bool good = reader && chain;

    while (good && (one = PEM_read_bio_X509(reader, NULL, tls_no_password, NULL))) {
        good = sk_X509_num(chain) < LIMIT_PEM_CHAIN && sk_X509_push(chain, one) > 0;
        if (!good) {
            X509_free(one);
            tls_fail(reporter,
                     "\"%s\" contains more than %d certificates\nkeep the server's certificate and its intermediates",
                     file->name, LIMIT_PEM_CHAIN);
        }
    }
    BIO_free(reader);
    bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    int count = chain ? sk_X509_num(chain) : 0;
    if (good && !ended)
        good = tls_fail(reporter,
                        "certificate number %d in \"%s\" cannot be read: %s\nit is damaged: copy the file again",
                        count + 1, file->name, tls_openssl_reason());
    else if (good && count == 0)
        good = tls_pem_report_missing(file, "certificate", "x509", "name the file of the certificate, as PEM text",
                                      reporter);
    ERR_clear_error();
    if (good)
        return chain;
    chain_free(chain);
    return NULL;
}

static bool check_match(STACK_OF(X509) * chain, EVP_PKEY *key, const char *file, const char *key_file,
                        const struct tls_reporter *reporter)
{
    if (X509_check_private_key(sk_X509_value(chain, 0), key) == 1)
        return true;
    for (int i = 1; i < sk_X509_num(chain); i++)
        if (X509_check_private_key(sk_X509_value(chain, i), key) == 1) {
            ERR_clear_error();
            return tls_fail(reporter,
                            "\"%s\" contains the server's own certificate as number %d\nit must come first", file,
                            i + 1);
        }
    ERR_clear_error();
    return tls_fail(reporter,
                    "the key \"%s\" does not belong to the certificate \"%s\"\n"
                    "openssl pkey -pubout and openssl x509 -noout -pubkey show the public key of each",
                    key_file, file);
}

/* SSL_CTX holds one certificate per key type: a second one would replace the first silently. */
static bool check_kind(struct tls_server *server, EVP_PKEY *key, const char *file,
                       const struct tls_reporter *reporter)
{
    for (int has = SSL_CTX_set_current_cert(server->openssl, SSL_CERT_SET_FIRST); has == 1;
         has = SSL_CTX_set_current_cert(server->openssl, SSL_CERT_SET_NEXT)) {
        EVP_PKEY *other = SSL_CTX_get0_privatekey(server->openssl);
        if (other && EVP_PKEY_get_base_id(other) == EVP_PKEY_get_base_id(key))
            return tls_fail(
                reporter,
                "\"%s\" is a second %s certificate of the same server\none of each kind (ECDSA, RSA) is used",
                file, EVP_PKEY_get0_type_name(key));
    }
    ERR_clear_error();
    return true;
}

static void warn_of_dates(X509 *leaf, const char *file, struct log *log)
{
    struct clock clock;

    clock_read(&clock);
    time_t now = (time_t)clock_wall_s(&clock);
    if (X509_cmp_time(X509_get0_notAfter(leaf), &now) < 0)
        log_write(log, LOG_WARN, "the certificate \"%s\" has expired: clients will refuse it", file);
    else if (X509_cmp_time(X509_get0_notBefore(leaf), &now) > 0)
        log_write(log, LOG_WARN, "the certificate \"%s\" is not valid yet: clients will refuse it", file);
}

static bool use_certificate(struct tls_server *server, STACK_OF(X509) * chain, EVP_PKEY *key, const char *file,
                            const struct tls_reporter *reporter)
{
    X509 *leaf = sk_X509_shift(chain);
    bool good = SSL_CTX_use_cert_and_key(server->openssl, leaf, key, chain, 1) == 1;

    X509_free(leaf);
    if (!good)
        return tls_fail(reporter, "the certificate \"%s\" cannot be used: %s", file, tls_openssl_reason());
    return true;
}

/* Opens the file of the key: its own, or that of the certificates. */
static bool open_key(struct tls_file files[2], const struct tls_server *server, struct str own,
                     const struct tls_reporter *reporter)
{
    if (str_empty(own) && !files[0].text)
        return false; /* already reported */
    return tls_file_open(&files[1], server, str_empty(own) ? str_from(files[0].name) : own, reporter);
}

bool tls_certificate_load(struct tls_server *server, const struct tls_certificate *certificate, size_t index,
                          struct log *log, const struct tls_reporter *reporter)
{
    struct tls_reporter at = tls_reporter_at(reporter, "ssl_certificate", index);
    struct tls_reporter at_key =
        tls_reporter_at(reporter, str_empty(certificate->key) ? "ssl_certificate" : "ssl_certificate_key", index);
    struct tls_file *files = calloc(2, sizeof(*files));
    STACK_OF(X509) *chain = NULL;
    EVP_PKEY *key = NULL;
    bool good = files || tls_fail(reporter, "out of memory");

    if (files && tls_file_open(&files[0], server, certificate->certificate, &at))
        chain = read_chain(&files[0], &at);
    if (files && open_key(files, server, certificate->key, &at_key))
        key = tls_key_read(&files[1], server->passwords, &at_key);
    good = good && chain && key && check_match(chain, key, files[0].name, files[1].name, &at_key);
    good = good && check_kind(server, key, files[0].name, &at);
    if (good)
        warn_of_dates(sk_X509_value(chain, 0), files[0].name, log);
    good = good && use_certificate(server, chain, key, files[0].name, &at);
    chain_free(chain);
    EVP_PKEY_free(key);
    for (int i = 0; files && i < 2; i++)
        tls_file_finish(&files[i]);
    free(files);
    return good;
}
