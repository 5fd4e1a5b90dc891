/*
 * Challenges of tls-alpn-01 (RFC 8737): files in challenges/ of the state folder, from which the workers make the
 * certificates that they present to the authority. A file is named by the server name with a final dot, which no token
 * has.
 */
#ifndef ACME_ACME_TLS_ALPN_H
#define ACME_ACME_TLS_ALPN_H

#include "base/limits.h"
#include "base/must_check.h"
#include "base/str.h"

enum { ACME_DIGEST = 32 };              /* bytes of SHA-256 */

struct acme_tls_alpn {
    char identifier[LIMIT_ACME_NAME + 1];   /* a DNS name, or an IP address */
    unsigned char digest[ACME_DIGEST];      /* of the key authorization */
};

/*
 * Stores the challenge of a DNS name or an IP address; `digest` is in base64url without padding. Returns 0; -EINVAL: an
 * invalid identifier or digest; or -errno.
 */
MUST_CHECK int acme_tls_alpn_store(const char *folder, struct str identifier, struct str digest);
/* Removes it. Returns 0, also if there is none; -EINVAL or -errno. */
MUST_CHECK int acme_tls_alpn_remove(const char *folder, struct str identifier);
/*
 * Reads the challenge of a server name: a DNS name, or the reverse name of an IP address (RFC 8738 6). Returns 0;
 * -ENOENT: there is none; -EINVAL: an invalid name, or a file without the challenge of this name; or -errno.
 */
MUST_CHECK int acme_tls_alpn_read(const char *folder, struct str server_name, struct acme_tls_alpn *out_challenge);

#endif
