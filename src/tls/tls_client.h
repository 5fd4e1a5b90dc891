/*
 * What is needed to be the client of a TLS server: whom it trusts, and how a session learns whom it
 * speaks to.
 */
#ifndef TLS_TLS_CLIENT_H
#define TLS_TLS_CLIENT_H

#include "tls/tls_session.h"

struct tls_client_settings {
    struct str trusted;             /* a PEM file of certificates; empty: the system's store */
    bool verify;
};

/*
 * A context whose sessions are clients: TLS 1.2 and 1.3, "http/1.1". OpenSSL seals what they send. NULL with a sentence in `out_error` (at least 256 bytes).
 * To be freed by tls_context_destroy.
 */
struct tls_context *tls_client_context_create(const struct tls_client_settings *settings, char *out_error, size_t error_size);

/*
 * Before the first tls_session_handshake of a client: the name that goes into SNI and, where the context verifies, must be in the certificate (an address
 * goes into no SNI). 0, -EINVAL for no name, or -ENOMEM.
 */
MUST_CHECK int tls_session_expect(struct tls_session *session, struct str name);

#endif
