/* Certificates and keys for a test, as PEM files in a temporary directory. */
#ifndef TEST_PEM_FILES_H
#define TEST_PEM_FILES_H

#include "tls/tls_context.h"

#include <openssl/x509.h>

struct pem_pair {
    EVP_PKEY *key;
    X509 *certificate;
};

/* Makes an empty directory; aborts the test on failure. */
void pem_directory_make(void);
void pem_directory_remove(void);
/* Returns the path of a file in the directory; valid until pem_directory_remove. */
struct str pem_path(const char *name);

/*
 * `kind` is "EC", "RSA" or "ED25519", or NULL: uses the issuer's key. The times of validity are in days from now.
 * `issuer` NULL: self-signed.
 */
struct pem_pair pem_make(const char *kind, const char *common_name, int from_days, int to_days,
                         const struct pem_pair *issuer);
void pem_free(struct pem_pair *pair);

/* These write into the directory. A password encrypts the key, in PKCS#8 or in the traditional format. */
void pem_write_certificates(const char *name, X509 *const *certificates, int count);
void pem_write_key(const char *name, EVP_PKEY *key, const char *password, bool traditional);
void pem_write_text(const char *name, struct str text);

#endif
