/* A temporary folder, and certificates made for a test. */
#ifndef TEST_ACME_MADE_H
#define TEST_ACME_MADE_H

#include "acme/acme.h"

#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/sluice-acme-XXXXXX";
static char paths[8][256];
static unsigned next_path;

/* "folder/NAME" in one of a few buffers. */
static inline const char *path_of(const char *name)
{
    char *path = paths[next_path++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static inline void folder_make(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sluice-acme-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void folder_remove(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Writes a certificate valid from now - `age_s` for `lifetime_s`, and its key. `names`: "DNS:a.test,IP:192.0.2.1". */
static inline void make_certificate(const char *chain, const char *key_file, const char *names, long age_s,
                                    long lifetime_s)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *leaf = X509_new();
    FILE *stream = fopen(chain, "we");
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);

    ck_assert(key && leaf && stream && extension);
    X509_set_version(leaf, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(leaf), 1);
    X509_gmtime_adj(X509_getm_notBefore(leaf), -age_s);
    X509_gmtime_adj(X509_getm_notAfter(leaf), lifetime_s - age_s);
    X509_add_ext(leaf, extension, -1);
    X509_set_pubkey(leaf, key);
    ck_assert_int_gt(X509_sign(leaf, key, EVP_sha256()), 0);
    ck_assert_int_eq(PEM_write_X509(stream, leaf), 1);
    fclose(stream);
    stream = fopen(key_file, strcmp(chain, key_file) == 0 ? "ae" : "we");
    ck_assert_int_eq(PEM_write_PrivateKey(stream, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(stream);
    X509_EXTENSION_free(extension);
    X509_free(leaf);
    EVP_PKEY_free(key);
}

/* True if the file has exactly this text. */
static inline bool file_is(const char *path, const char *text)
{
    char found[1024];
    FILE *stream = fopen(path, "re");
    size_t length = stream ? fread(found, 1, sizeof(found), stream) : 0;

    if (stream)
        fclose(stream);
    return stream && str_equal(str_of(found, length), str_from(text));
}

static inline void file_write(const char *path, const char *text, unsigned mode)
{
    FILE *stream = fopen(path, "we");

    ck_assert_ptr_nonnull(stream);
    fputs(text, stream);
    fclose(stream);
    ck_assert_int_eq(chmod(path, mode), 0);
}

#endif
