#include "pem_files.h"

#include <check.h>
#include <dirent.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[64], paths[64][128];
static int path_count;

void pem_directory_make(void)
{
    strcpy(directory, "/tmp/sluice-pem-XXXXXX");
    path_count = 0;
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

void pem_directory_remove(void)
{
    char path[512];
    DIR *files = opendir(directory);

    for (struct dirent *file; files && (file = readdir(files));)
        if (file->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", directory, file->d_name);
            unlink(path);
        }
    closedir(files);
    rmdir(directory);
}

struct str pem_path(const char *name)
{
    ck_assert_int_lt(path_count, 64);
    snprintf(paths[path_count], sizeof(paths[0]), "%s/%s", directory, name);
    return str_from(paths[path_count++]);
}

static EVP_PKEY *make_key(const char *kind, const struct pem_pair *issuer)
{
    if (!kind)
        return EVP_PKEY_up_ref(issuer->key) ? issuer->key : NULL;
    if (strcmp(kind, "EC") == 0)
        return EVP_EC_gen("P-256");
    return strcmp(kind, "RSA") == 0 ? EVP_RSA_gen(2048) : EVP_PKEY_Q_keygen(NULL, NULL, kind);
}

struct pem_pair pem_make(const char *kind, const char *common_name, int from_days, int to_days,
                         const struct pem_pair *issuer)
{
    static long serial = 100;
    struct pem_pair made = {make_key(kind, issuer), X509_new()};
    EVP_PKEY *signer = issuer ? issuer->key : made.key;
    X509_NAME *name = X509_get_subject_name(made.certificate);
    X509V3_CTX plain;

    ck_assert_ptr_nonnull(made.key);
    X509_set_version(made.certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), from_days * 86400L);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), to_days * 86400L);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common_name, -1, -1, 0);
    X509_set_issuer_name(made.certificate, issuer ? X509_get_subject_name(issuer->certificate) : name);
    X509_set_pubkey(made.certificate, made.key);
    X509V3_set_ctx_nodb(&plain);
    X509V3_set_ctx(&plain, made.certificate, made.certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &plain, NID_basic_constraints, "CA:TRUE");
    X509_add_ext(made.certificate, extension, -1);
    X509_EXTENSION_free(extension);
    const EVP_MD *digest = EVP_PKEY_get_base_id(signer) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
    ck_assert_int_gt(X509_sign(made.certificate, signer, digest), 0);
    return made;
}

void pem_free(struct pem_pair *pair)
{
    EVP_PKEY_free(pair->key);
    X509_free(pair->certificate);
}

static FILE *open_file(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *stream = fopen(path, "w");
    ck_assert_ptr_nonnull(stream);
    return stream;
}

void pem_write_certificates(const char *name, X509 *const *certificates, int count)
{
    FILE *stream = open_file(name);

    for (int i = 0; i < count; i++)
        ck_assert_int_eq(PEM_write_X509(stream, certificates[i]), 1);
    fclose(stream);
}

void pem_write_key(const char *name, EVP_PKEY *key, const char *password, bool traditional)
{
    FILE *stream = open_file(name);
    BIO *out = BIO_new_fp(stream, BIO_CLOSE);
    const EVP_CIPHER *cipher = password ? EVP_aes_128_cbc() : NULL;
    unsigned char *secret = (unsigned char *)(uintptr_t)password;
    int length = password ? (int)strlen(password) : 0;

    if (traditional)
        ck_assert_int_eq(PEM_write_bio_PrivateKey_traditional(out, key, cipher, secret, length, NULL, NULL),
                         1);
    else
        ck_assert_int_eq(PEM_write_bio_PrivateKey(out, key, cipher, secret, length, NULL, NULL), 1);
    BIO_free(out);
}

void pem_write_text(const char *name, struct str text)
{
    FILE *stream = open_file(name);

    fwrite(text.data, 1, text.length, stream);
    fclose(stream);
}
