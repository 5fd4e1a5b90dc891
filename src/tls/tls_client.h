/*
 * TLS client contexts for upstream servers: trust, the client certificate, session resumption.
 */
#ifndef TLS_TLS_CLIENT_H
#define TLS_TLS_CLIENT_H

#include "base/limits.h"
#include "tls/tls_session.h"

struct tls_client_settings {
    struct str trusted;                 /* PEM file of trusted certificates; empty: the system's store */
    /* PEM files of the client certificate; empty: none. An empty key is read from the certificate's file. */
    struct str certificate, key;
    struct str ciphers;                 /* TLS 1.2 ciphers and names of TLS 1.3 suites; empty: OpenSSL's default */
    struct str crl;                     /* PEM file of CRLs for all authorities below `trusted`; empty: none */
    struct str passwords;               /* file of pass phrases for an encrypted key, one per line; empty: none */
    const struct tls_command *commands; /* applied after all other settings */
    size_t command_count;
    unsigned protocols;                 /* 1: TLS 1.2, 2: TLS 1.3; 0: both */
    uint64_t verify_depth;              /* maximum of intermediate certificates; 0: OpenSSL's limit */
    bool verify;
    bool no_server_name;                /* no SNI */
    bool no_reuse;                      /* full handshakes only */
    bool no_alpn;                       /* no ALPN: the protocol is not HTTP */
    bool http2;                         /* ALPN "h2" instead of "http/1.1" */
};

/* The newest session of a server for resumption. Zeroed at first. */
struct tls_resumption {
    struct tls_context *context;    /* the context of the session; not owned */
    char name[LIMIT_SERVER_NAME + 1];
    void *session;                  /* owned */
};

/*
 * Creates a context for client sessions: TLS 1.2 and 1.3, ALPN "http/1.1" unless no_alpn or http2. OpenSSL seals their
 * records. NULL with an error text in `out_error` (at least 256 bytes). Freed by tls_context_destroy.
 */
struct tls_context *tls_client_context_create(const struct tls_client_settings *settings, char *out_error,
                                              size_t error_size);

/*
 * Sets the server's name before the first tls_session_handshake of a client: for SNI (not for an address) and, where
 * the context verifies, for the match with the certificate. 0, -EINVAL if it is not a name, or -ENOMEM.
 */
MUST_CHECK int tls_session_set_server_name(struct tls_session *session, const struct tls_context *context,
                                           struct str name);

/* True if the settings are equal, so that both can share one context. */
bool tls_client_settings_equal(const struct tls_client_settings *a, const struct tls_client_settings *b);

/* Offers the stored session of the same server and name, if any. Call it after tls_session_set_server_name. */
void tls_session_resume(struct tls_session *session, struct tls_context *context, struct str name,
                        const struct tls_resumption *from);
/* Stores the newest session that the server issued, if any. */
void tls_session_store(struct tls_session *session, struct tls_context *context, struct str name,
                       struct tls_resumption *into);
/* Frees the session. Accepts a zeroed struct. */
void tls_resumption_finish(struct tls_resumption *resumption);

#endif
