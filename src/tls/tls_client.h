/*
 * What is needed to be the client of a TLS server: whom it trusts, and how a session learns whom it
 * speaks to.
 */
#ifndef TLS_TLS_CLIENT_H
#define TLS_TLS_CLIENT_H

#include "base/limits.h"
#include "tls/tls_session.h"

struct tls_client_settings {
    struct str trusted;             /* a PEM file of certificates; empty: the system's store */
    struct str certificate, key;    /* PEM files: who we are; empty: nobody. Without a key, it stands beside the certificate */
    struct str ciphers;             /* of TLS 1.2, and names of TLS 1.3 suites; empty: OpenSSL's */
    struct str revoked;             /* a PEM file of lists of revoked certificates, for all that `trusted` leads to; empty: none */
    struct str passwords;           /* a file: a line each, tried in turn for an encrypted key; empty: none */
    const struct tls_command *commands; /* after all else */
    size_t command_count;
    unsigned protocols;             /* 1: TLS 1.2, 2: TLS 1.3; 0: both */
    uint64_t verify_depth;          /* certificates between the server's and a trusted one; 0: OpenSSL's own limit */
    bool verify;
    bool no_server_name;            /* no SNI */
    bool no_reuse;                  /* each handshake is a full one */
    bool no_alpn;                   /* what is spoken is no HTTP */
};

/* What a server gave for a shorter handshake the next time: the newest only. Zeroed at first. */
struct tls_resumption {
    struct tls_context *context;    /* whose session it is; not owned */
    char name[LIMIT_SERVER_NAME + 1];
    void *session;                  /* owned */
};

/*
 * A context whose sessions are clients: TLS 1.2 and 1.3, "http/1.1" unless no_alpn. OpenSSL seals what they send. NULL with a sentence in `out_error` (at least 256 bytes).
 * To be freed by tls_context_destroy.
 */
struct tls_context *tls_client_context_create(const struct tls_client_settings *settings, char *out_error, size_t error_size);

/*
 * Before the first tls_session_handshake of a client: the name that goes into SNI and, where the context verifies, must be in the certificate (an address
 * goes into no SNI). 0, -EINVAL for no name, or -ENOMEM.
 */
MUST_CHECK int tls_session_expect(struct tls_session *session, const struct tls_context *context, struct str name);

bool tls_client_settings_equal(const struct tls_client_settings *a, const struct tls_client_settings *b);

/* After tls_session_expect: offers what the same server gave under the same name, if there is anything. */
void tls_session_resume(struct tls_session *session, struct tls_context *context, struct str name,
                        const struct tls_resumption *from);
/* Keeps what the server has given since, if it did. */
void tls_session_keep(struct tls_session *session, struct tls_context *context, struct str name, struct tls_resumption *into);
void tls_resumption_finish(struct tls_resumption *resumption);

#endif
