/*
 * What a client's context takes beyond its fixed settings: lists of revoked certificates, keys that are encrypted, and
 * words for OpenSSL itself. Private to tls_client*.c. Each is false with the cause in OpenSSL's queue.
 */
#ifndef TLS_TLS_CLIENT_FILES_H
#define TLS_TLS_CLIENT_FILES_H

#include "tls/tls_client.h"

#include <openssl/ssl.h>

/* Terminated, for OpenSSL. False where it is too long. */
bool tls_client_terminate(struct str text, char *out, size_t size);
/* Who is on a list of the PEM file is not trusted; nor is who stands under an authority that has no list there. */
bool tls_client_revoked(SSL_CTX *openssl, struct str path);
/* The key of a PEM file. An encrypted one is tried with each line of `passwords` (a path; empty: none); nobody is asked for one. */
bool tls_client_key(SSL_CTX *openssl, struct str path, struct str passwords);
/* Commands of SSL_CONF_cmd, as in a file of OpenSSL. Versions before TLS 1.2 stay unspoken: false, where they ask for them. */
bool tls_client_commands(SSL_CTX *openssl, const struct tls_command *commands, size_t count);

#endif
