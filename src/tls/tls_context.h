/*
 * The TLS configuration of one listening address: certificates by name, protocols, ciphers, tickets. Immutable once
 * loaded; shared by all sessions of a worker.
 */
#ifndef TLS_TLS_CONTEXT_H
#define TLS_TLS_CONTEXT_H

#include "base/arena.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/regex.h"
#include "base/str.h"
#include "tls/replay_window.h"
#include "tls/session_caches.h"
#include "tls/ticket_keys.h"

/* A certificate chain and its key. `certificate` "self-signed" is generated in memory. */
struct tls_certificate {
    struct str certificate;         /* PEM file (leaf first), or "self-signed" */
    struct str key;                 /* PEM file; empty: the key is in `certificate`; ignored for self-signed */
    bool may_be_absent;             /* while the file does not exist, a generated certificate is used */
};

/* A setting under OpenSSL's name (SSL_CONF_cmd(3)). */
struct tls_command {
    struct str name, value;
};

enum tls_ktls { TLS_KTLS_AUTO, TLS_KTLS_ON, TLS_KTLS_OFF };

/* ECDHE with AEAD only, AES-128-GCM first: the fastest suite in user space and in the kernel. */
#define TLS_CIPHERS_DEFAULT                                                                                          \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"                       \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define TLS_CIPHERSUITES_DEFAULT "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* `ssl_verify_client`: whether clients need a certificate, and which ones are accepted. */
enum tls_verify {
    TLS_VERIFY_OFF,
    TLS_VERIFY_ON,
    TLS_VERIFY_OPTIONAL,            /* a missing one is accepted, too */
    TLS_VERIFY_OPTIONAL_NO_CA,      /* an unknown issuer is accepted, too; the application verifies */
};

struct tls_client_verify {
    enum tls_verify verify;
    unsigned depth;                 /* maximum of intermediate certificates */
    struct str client_ca;           /* PEM file of CAs that are trusted and announced to clients; empty: none */
    struct str trusted;             /* PEM file of CAs that are trusted only */
    struct str crl;                 /* PEM file of CRLs; one of each authority of the chain is then required */
};

/* The TLS settings of one virtual server. The array and its strings outlive the context. */
struct tls_settings {
    /* server_name: exact, "*.example.com", ".example.com"; for SNI and the self-signed certificate. */
    const struct str *names;
    size_t name_count;
    const struct regex *const *patterns;        /* regular expressions of server_name, tried after all other names */
    size_t pattern_count;
    const struct tls_certificate *certificates; /* one or two key types (ECDSA, RSA) */
    size_t certificate_count;
    struct str passwords;                       /* file of pass phrases for encrypted keys, one per line; empty: none */
    /* Reject handshakes with unrecognized_name (RFC 6066 3); needs no certificate. */
    bool reject;
    const struct str *alpn;                     /* ALPN names in order of preference; NULL: "http/1.1", "http/1.0" */
    bool http2;                                 /* without `alpn`: "h2" precedes them */
    size_t alpn_count;                          /* 0 with a non-NULL alpn: no protocol is selected */
    unsigned protocols;                         /* bits of enum tls_protocol; 0: both */
    struct str ciphers;                         /* TLS 1.2, OpenSSL's list syntax; empty: TLS_CIPHERS_DEFAULT */
    struct str ciphersuites;                    /* TLS 1.3; empty: TLS_CIPHERSUITES_DEFAULT */
    /* "auto", empty (the same), or a list: "?X25519MLKEM768:X25519"; "?" skips groups that OpenSSL lacks. */
    struct str curves;
    struct str dh_parameters;                   /* PEM file, or "auto": OpenSSL's groups; empty: no DHE in TLS 1.2 */
    const struct tls_command *commands;         /* applied in order after all other settings */
    size_t command_count;
    bool prefer_server_ciphers;
    bool session_tickets;
    const struct str *ticket_keys;              /* files: the first encrypts, all decrypt; none: generated keys */
    size_t ticket_key_count;
    uint64_t session_timeout_s;
    /* For clients without tickets; NULL: none. */
    const struct named_session_cache *session_cache;
    /* Accept early data; needs tickets with generated keys and tls_context_share. */
    bool early_data;
    struct tls_client_verify client;
    const void *owner;                          /* opaque pointer of the settings' owner */
    enum tls_ktls ktls;
    uint64_t ktls_threshold;                    /* body size in bytes from which the kernel encrypts */
    bool is_default;                            /* used if no name matches; without any, the first server is */
};

enum tls_protocol { TLS_PROTOCOL_1_2 = 1, TLS_PROTOCOL_1_3 = 2 };

/* All virtual servers of one listening address. */
struct tls_context;

/* An invalid setting; the texts are valid during the call that reports it. */
struct tls_fault {
    size_t server;                  /* index of the server */
    const char *directive;          /* "ssl_ciphers", "ssl_certificate_key", ...; "" for none */
    size_t index;                   /* index of the directive's value */
    const char *text;               /* error text that names the file or the value */
    const char *hint;               /* remedy, or "" */
};
typedef void tls_fault_report(void *owner, const struct tls_fault *fault);

/* True if this OpenSSL has the key exchange group ("X25519MLKEM768"). */
bool tls_has_group(const char *name);

/*
 * Builds the context of one address from its servers' settings: loads the files, verifies that keys match chains
 * (only `passwords` open encrypted keys; there is no prompt), and indexes the names. NULL after every fault of every
 * server was reported. Logs each self-signed certificate, and warns of expired certificates and duplicate names.
 * Called before fork: ticket keys are generated here once, and workers inherit them (or see tls_context_share).
 * Addresses with the same servers can share one context.
 */
struct tls_context *tls_context_load(const struct tls_settings *servers, size_t count, struct log *log,
                                     tls_fault_report *report, void *owner);
/* As tls_context_load, with the first fault and its hint in `out_error` (at least 512 bytes). */
struct tls_context *tls_context_create(const struct tls_settings *servers, size_t count, struct log *log,
                                       char *out_error, size_t error_size);
/*
 * A number for the state of all files of a server's settings (by stat(2)); it changes when one is changed, replaced
 * or removed. 0: there are no files.
 */
uint64_t tls_files_stamp(const struct tls_settings *settings);
/* The contents of all files of a server's settings, keys included, for transfer to other processes. */
struct tls_files {
    char *bytes;                    /* owned; NULL: none */
    size_t length;
};
/* Reads the files. False after all unreadable files were reported; `out_files` is empty then. */
MUST_CHECK bool tls_files_read(const struct tls_settings *settings, struct tls_files *out_files,
                               tls_fault_report *report, void *owner);
/* Wipes and frees. Accepts NULL bytes. */
void tls_files_finish(struct tls_files *files);
/*
 * Reloads one server of the context from `files`; opens no file, and keeps a self-signed certificate. Existing
 * connections keep the old certificate, new connections get the new one. False after all faults were reported: nothing
 * has changed. `files` may be wiped afterwards.
 */
MUST_CHECK bool tls_context_reload(struct tls_context *context, size_t server, const struct tls_files *files,
                                   struct log *log, tls_fault_report *report, void *owner);
/*
 * Uses ticket keys generated by another process (key files of a server take precedence) and the shared replay window
 * `replay_window` (NULL: early data are rejected). All processes with these keys must use the same `replay_window`.
 * Both outlive the context.
 */
void tls_context_share(struct tls_context *context, const struct ticket_keys *keys,
                       struct replay_window *replay_window);
/* A pending challenge tls-alpn-01 of ACME (RFC 8737). */
struct tls_challenge {
    char identifier[LIMIT_ACME_NAME + 1];   /* a DNS name, or an IP address */
    unsigned char digest[32];               /* SHA-256 of the key authorization */
};
/*
 * Finds the pending challenge of a server name (SNI). Called inside a handshake, for a ClientHello that offers
 * "acme-tls/1" and no other protocol. False: there is none, and the handshake is rejected.
 */
typedef bool tls_challenge_find(void *owner, struct str server_name, struct tls_challenge *out_challenge);
/*
 * Enables the answers to challenges: a handshake with a generated certificate, after which the session is only closed
 * (TLS_SESSION_CHALLENGE). Without this call "acme-tls/1" is an unknown protocol. False when out of memory.
 */
MUST_CHECK bool tls_context_answer_challenges(struct tls_context *context, tls_challenge_find *find, void *owner);
/* Accepts NULL. No session may be open. */
void tls_context_destroy(struct tls_context *context);

#endif
