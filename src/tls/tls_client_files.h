/*
 * Files and commands of a client context beyond its fixed settings: CRLs, encrypted keys, SSL_CONF commands. Private
 * to tls_client*.c. Each function returns false with the cause in OpenSSL's error queue.
 */
#ifndef TLS_TLS_CLIENT_FILES_H
#define TLS_TLS_CLIENT_FILES_H

#include "tls/tls_client.h"

#include <openssl/ssl.h>

/* Copies `text` with a terminating NUL. False if it is too long. */
bool tls_client_copy_string(struct str text, char *out, size_t size);
/*
 * Loads the CRLs of a PEM file. Revoked certificates are not trusted, nor those of an authority without a CRL in the
 * file.
 */
bool tls_client_load_crls(SSL_CTX *openssl, struct str path);
/*
 * Loads the key of a PEM file. Each line of the file `passwords` (empty: none) is tried for an encrypted key; there
 * is no prompt.
 */
bool tls_client_load_key(SSL_CTX *openssl, struct str path, struct str passwords);
/* Applies SSL_CONF_cmd commands. False, too, for a command that enables a version before TLS 1.2. */
bool tls_client_apply_commands(SSL_CTX *openssl, const struct tls_command *commands, size_t count);

#endif
