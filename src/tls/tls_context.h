/*
 * What a listening server needs for TLS: certificates by name, protocols,
 * ciphers, tickets. Immutable once loaded; shared by all sessions of a worker.
 */
#ifndef TLS_TLS_CONTEXT_H
#define TLS_TLS_CONTEXT_H

#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"

/* One certificate chain and its key. `certificate` "self-signed" is made in memory. */
struct tls_certificate {
    struct str certificate;         /* a PEM file (chain: leaf first), or "self-signed" */
    struct str key;                 /* a PEM file; ignored for self-signed */
};

enum tls_ktls { TLS_KTLS_AUTO, TLS_KTLS_ON, TLS_KTLS_OFF };

/* One virtual server's TLS settings, as its directives say; strings live as long as the context. */
struct tls_settings {
    const struct str *names;        /* server_name: exact, "*.example.com", ".example.com"; for SNI and for self-signed */
    size_t name_count;
    const struct tls_certificate *certificates; /* one or two kinds side by side (ECDSA, RSA) */
    size_t certificate_count;
    unsigned protocols;             /* bits of enum tls_protocol */
    struct str ciphers;             /* TLS 1.2, OpenSSL's list syntax */
    struct str ciphersuites;        /* TLS 1.3 */
    struct str curves;              /* "auto" or a list */
    bool prefer_server_ciphers;
    bool session_tickets;
    uint64_t session_timeout_s;
    enum tls_ktls ktls;
    uint64_t ktls_threshold;        /* bytes of a body from which a connection is promoted */
    bool is_default;                /* answers where no name fits */
};

enum tls_protocol { TLS_PROTOCOL_1_2 = 1, TLS_PROTOCOL_1_3 = 2 };

/* All virtual servers of one listening address. */
struct tls_context;

/*
 * Builds the context of one address from its servers' settings: loads, checks (key fits chain; encrypted keys
 * are refused: "... is encrypted; decrypt it with openssl pkey, ..."), and indexes the names. NULL on failure, with a
 * sentence in `out_error` that names the file and the way out (at least 512 bytes). One log line for a self-signed certificate.
 */
struct tls_context *tls_context_create(const struct tls_settings *servers, size_t count, struct log *log, char *out_error,
                                       size_t error_size);
/* Accepts NULL. No session may be left. */
void tls_context_destroy(struct tls_context *context);

#endif
