/*
 * Reads certificates by OpenSSL, and installs them. Buffers with keys are wiped.
 */
#include "acme/acme_file.h"

#include "base/limits.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void buffer_wipe(struct buffer *buffer)
{
    OPENSSL_cleanse(buffer->data, buffer->length);
    buffer_finish(buffer);
}

static int read_open_file(int fd, struct buffer *out)
{
    ssize_t length;

    do {
        int error = out->length > LIMIT_PEM_FILE ? -EFBIG : buffer_reserve(out, LIMIT_PEM_FILE + 1 - out->length);

        if (error < 0)
            return error;
        length = read(fd, out->data + out->length, LIMIT_PEM_FILE + 1 - out->length);
        out->length += length > 0 ? (size_t)length : 0;
    } while (length > 0 || (length < 0 && errno == EINTR));
    return length < 0 ? -errno : 0;
}

int acme_file_load(const char *path, struct buffer *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;

    if (fd < 0)
        return -errno;
    error = read_open_file(fd, out);
    close(fd);
    return error;
}

/* The new name must be on the disk, too, before a certificate is reported as installed. */
static int sync_folder(const char *path)
{
    char folder[PATH_MAX];
    ssize_t slash = str_rfind(str_from(path), '/');
    int fd, error;

    snprintf(folder, sizeof(folder), "%.*s", slash > 0 ? (int)slash : 1, slash >= 0 ? path : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    error = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return error;
}

int acme_file_replace(const char *path, struct str text)
{
    char temporary[PATH_MAX];
    int fd, error;

    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    unlink(temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    error = write_all(fd, text);
    if (error == 0 && fsync(fd) < 0)
        error = -errno;
    if (close(fd) < 0 && error == 0)
        error = -errno;
    if (error == 0 && rename(temporary, path) < 0)
        error = -errno;
    if (error < 0)
        unlink(temporary);
    return error < 0 ? error : sync_folder(path);
}

static bool covers_name(X509 *leaf, struct str name)
{
    char text[LIMIT_ACME_NAME + 1];

    snprintf(text, sizeof(text), STR_FMT, STR_ARG(name));
    return X509_check_host(leaf, text, name.length, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1 ||
           X509_check_ip_asc(leaf, text, 0) == 1;
}

static int time_of(const ASN1_TIME *time, int64_t *out_s)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days, seconds;
    bool good = epoch && ASN1_TIME_diff(&days, &seconds, epoch, time) == 1;

    ASN1_TIME_free(epoch);
    if (!good)
        return -EINVAL;
    *out_s = (int64_t)days * 86400 + seconds;
    return 0;
}

static int read_validity(X509 *leaf, const struct acme_certificate *certificate, struct acme_validity *out_validity)
{
    struct acme_validity validity = {.covers_names = true};

    if (time_of(X509_get0_notBefore(leaf), &validity.not_before_s) < 0 ||
        time_of(X509_get0_notAfter(leaf), &validity.not_after_s) < 0)
        return -EINVAL;
    for (size_t i = 0; i < certificate->name_count; i++)
        validity.covers_names &= covers_name(leaf, certificate->names[i]);
    *out_validity = validity;
    return 0;
}

/* An encrypted key is not read: there is no prompt. */
static int no_password(char *into, int size, int writing, void *unused)
{
    return -1;
}

/* Clears the errors of OpenSSL. Returns true if one of them is a failed allocation. */
static bool memory_ran_out(void)
{
    bool failed = false;

    for (unsigned long error; (error = ERR_get_error()) != 0;)
        failed |= ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
    return failed;
}

/* The first certificate and the key of a PEM text. */
static int parse_certificate(struct str text, const struct acme_certificate *certificate,
                             struct acme_validity *out_validity)
{
    BIO *certificates = BIO_new_mem_buf(text.data, (int)text.length);
    BIO *keys = BIO_new_mem_buf(text.data, (int)text.length);
    X509 *leaf = certificates ? PEM_read_bio_X509(certificates, NULL, no_password, NULL) : NULL;
    EVP_PKEY *key = keys ? PEM_read_bio_PrivateKey(keys, NULL, no_password, NULL) : NULL;
    bool match = leaf && key && X509_check_private_key(leaf, key) == 1;
    int error = match ? read_validity(leaf, certificate, out_validity) : -EINVAL;

    X509_free(leaf);
    EVP_PKEY_free(key);
    BIO_free(certificates);
    BIO_free(keys);
    return memory_ran_out() && error < 0 ? -ENOMEM : error;
}

int acme_file_read(const char *path, const struct acme_certificate *certificate, struct acme_validity *out_validity)
{
    struct buffer text = {0};
    int error = acme_file_load(path, &text);

    if (error == 0)
        error = parse_certificate(buffer_str(&text), certificate, out_validity);
    buffer_wipe(&text);
    return error;
}

bool acme_file_is_unknown(int error)
{
    static const int unknown[] = {EIO, ESTALE, ETIMEDOUT, EMFILE, ENFILE, ENOMEM};

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        if (error == -unknown[i])
            return true;
    }
    return false;
}

/* The first certificate of a file, to be freed. NULL: it has none. */
static X509 *read_leaf(const char *path)
{
    struct buffer text = {0};
    X509 *leaf = NULL;

    if (acme_file_load(path, &text) == 0 && text.length > 0) {
        BIO *source = BIO_new_mem_buf(text.data, (int)text.length);

        leaf = source ? PEM_read_bio_X509(source, NULL, no_password, NULL) : NULL;
        BIO_free(source);
    }
    buffer_wipe(&text);
    ERR_clear_error();
    return leaf;
}

static size_t count_names(X509 *leaf)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    int count = names ? sk_GENERAL_NAME_num(names) : 0;

    GENERAL_NAMES_free(names);
    return count > 0 ? (size_t)count : 0;
}

bool acme_file_is_installed(const struct acme_certificate *certificate, const char *chain)
{
    X509 *installed = read_leaf(certificate->file.data), *leaf = read_leaf(chain);
    bool same = installed && leaf && X509_cmp(installed, leaf) == 0 && count_names(leaf) == certificate->name_count;

    X509_free(installed);
    X509_free(leaf);
    return same;
}

int acme_file_install(const struct acme_certificate *certificate, const char *chain, const char *key)
{
    struct buffer text = {0};
    struct acme_validity validity;
    int error = acme_file_load(chain, &text);

    if (error == 0)
        error = buffer_append(&text, STR("\n"));
    if (error == 0) {
        struct buffer secret = {0};

        error = acme_file_load(key, &secret);
        if (error == 0)
            error = buffer_append(&text, buffer_str(&secret));
        buffer_wipe(&secret);
    }
    if (error == 0 && text.length > LIMIT_PEM_FILE)
        error = -EFBIG;
    if (error == 0)
        error = parse_certificate(buffer_str(&text), certificate, &validity);
    if (error == 0 && !validity.covers_names)
        error = -EINVAL;
    if (error == 0)
        error = acme_file_replace(certificate->file.data, buffer_str(&text));
    buffer_wipe(&text);
    return error;
}
