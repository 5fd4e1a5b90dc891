/*
 * Reads private keys from PEM files; decrypts encrypted keys with the pass phrases of ssl_password_file.
 */
#include "tls/tls_server.h"

#include <openssl/err.h>
#include <openssl/pem.h>

/* Supplies one line of ssl_password_file to OpenSSL, which wipes its copy. */
static int password_given(char *into, int size, int writing, void *line)
{
    const struct str *password = line;

    if (size < 0 || password->length > (size_t)size)
        return -1;
    memcpy(into, password->data, password->length);
    return (int)password->length;
}

/* `password` NULL: none. */
static EVP_PKEY *read_with(const struct tls_file *file, struct str *password)
{
    BIO *reader = BIO_new_mem_buf(file->text, (int)file->length);
    EVP_PKEY *key =
        reader ? PEM_read_bio_PrivateKey(reader, NULL, password ? password_given : tls_no_password, password)
               : NULL;

    BIO_free(reader);
    return key;
}

/* Tries the pass phrases in order. */
static EVP_PKEY *open_key(const struct tls_file *file, const struct tls_file *passwords,
                          const struct tls_reporter *reporter)
{
    struct str rest = str_of(passwords->text, passwords->length);
    EVP_PKEY *key = NULL;

    while (!key && rest.data && !str_empty(rest)) {
        struct str line = str_cut(&rest, '\n');

        if (str_ends(line, STR("\r")))
            line.length--;
        key = read_with(file, &line);
    }
    ERR_clear_error();
    if (!key)
        tls_fail(reporter,
                 "no pass phrase in \"%s\" opens the key \"%s\"\n"
                 "write one per line, of at most %d bytes; test one with: openssl pkey -noout -in %s",
                 passwords->name, file->name, PEM_BUFSIZE, file->name);
    return key;
}

EVP_PKEY *tls_key_read(const struct tls_file *file, const struct tls_file *passwords,
                       const struct tls_reporter *reporter)
{
    EVP_PKEY *key;

    if (!tls_pem_contains(file, "PRIVATE KEY-----")) {
        tls_pem_report_missing(file, "private key", "pkey", "name the file of the key: ssl_certificate_key: FILE",
                               reporter);
        return NULL;
    }
    if (tls_pem_contains(file, "-----BEGIN ENCRYPTED PRIVATE KEY-----") ||
        tls_pem_contains(file, "Proc-Type: 4,ENCRYPTED")) {
        if (passwords)
            return open_key(file, passwords, reporter);
        tls_fail(reporter,
                 "the key \"%s\" is encrypted\nname a file with its pass phrase: ssl_password_file; or decrypt "
                 "it with: openssl pkey -in %s -out NEW.key, and use NEW.key",
                 file->name, file->name);
        return NULL;
    }
    key = read_with(file, NULL);
    if (!key)
        tls_fail(reporter, "the private key in \"%s\" cannot be read: %s\ntry it with: openssl pkey -noout -in %s",
                 file->name, tls_openssl_reason(), file->name);
    return key;
}
