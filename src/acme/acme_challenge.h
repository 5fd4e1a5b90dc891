/*
 * Challenges of http-01 (RFC 8555 8.3): files in challenges/ of the state folder, named by their tokens, which the
 * workers send at /.well-known/acme-challenge/TOKEN.
 */
#ifndef ACME_ACME_CHALLENGE_H
#define ACME_ACME_CHALLENGE_H

#include "base/str.h"

#define ACME_CHALLENGE_URI "/.well-known/acme-challenge/"

/* Stores the key authorization of a token atomically. Returns 0; -EINVAL: an invalid token or text; or -errno. */
MUST_CHECK int acme_challenge_store(const char *folder, struct str token, struct str authorization);
/* Removes it. Returns 0, also if there is none; -EINVAL or -errno. */
MUST_CHECK int acme_challenge_remove(const char *folder, struct str token);
/*
 * Reads at most `size` bytes of a token's key authorization. Returns its length; -ENOENT: there is none; -EINVAL: an
 * invalid token, or a file that is not the key authorization of the token; or -errno.
 */
MUST_CHECK ssize_t acme_challenge_read(const char *folder, struct str token, char *into, size_t size);
/* Removes all challenges: a killed client does not remove its own. */
void acme_challenge_clear(const char *folder);

/*
 * The files of any challenge: a regular file NAME in `folder`, replaced atomically. `name` has no slash and at most
 * NAME_MAX - 1 bytes. Return 0, or the number of bytes read; -ENOENT: there is none (but removal returns 0); or -errno.
 */
MUST_CHECK int acme_challenge_file_write(const char *folder, const char *name, struct str text);
MUST_CHECK int acme_challenge_file_remove(const char *folder, const char *name);
MUST_CHECK ssize_t acme_challenge_file_read(const char *folder, const char *name, char *into, size_t size);

#endif
