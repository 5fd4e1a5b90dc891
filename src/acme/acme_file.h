/*
 * Certificate files: reading and atomic installation.
 */
#ifndef ACME_ACME_FILE_H
#define ACME_ACME_FILE_H

#include "acme/acme.h"
#include "base/buffer.h"

/* The properties of a certificate that determine the time of its renewal. */
struct acme_validity {
    int64_t not_before_s, not_after_s;  /* validity, in seconds since the epoch */
    bool covers_names;                  /* it has all names */
};

/*
 * Reads a file with certificate and key. Returns 0; -ENOENT: there is none; -EINVAL: it has no valid
 * certificate, or another key; or -errno.
 */
MUST_CHECK int acme_file_read(const char *path, const struct acme_certificate *certificate,
                              struct acme_validity *out_validity);
/* True for an error of acme_file_read that leaves unknown what the file contains: a later call may succeed. */
bool acme_file_is_unknown(int error);

/*
 * True if the first certificate of `chain` (PEM) is the installed one, and has as many names as the configuration: a
 * client that renews a certificate keeps all its names.
 */
bool acme_file_is_installed(const struct acme_certificate *certificate, const char *chain);

/*
 * Installs a chain and its key (PEM files) as certificate->file, with mode 0600. Returns 0; -EINVAL: the key does not
 * belong to the chain, or names are missing; or -errno. On failure the present file stays.
 */
MUST_CHECK int acme_file_install(const struct acme_certificate *certificate, const char *chain, const char *key);

/* Reads a whole file of at most LIMIT_PEM_FILE bytes into memory of `out`. Returns 0, -EFBIG or -errno. */
MUST_CHECK int acme_file_load(const char *path, struct buffer *out);
/* Replaces a file atomically: mode 0600, synchronised with the disk. Returns 0 or -errno; then the old file stays. */
MUST_CHECK int acme_file_replace(const char *path, struct str text);

#endif
