/*
 * What a listening server needs for TLS: certificates by name, protocols,
 * ciphers, tickets. Immutable once loaded; shared by all sessions of a worker.
 */
#ifndef TLS_TLS_CONTEXT_H
#define TLS_TLS_CONTEXT_H

#include "base/arena.h"
#include "base/log.h"
#include "base/regex.h"
#include "base/str.h"
#include "tls/early_seen.h"
#include "tls/session_cache.h"
#include "tls/ticket_keys.h"

/* One certificate chain and its key. `certificate` "self-signed" is made in memory. */
struct tls_certificate {
    struct str certificate;         /* a PEM file (chain: leaf first), or "self-signed" */
    struct str key;                 /* a PEM file; empty: the key is in `certificate`; ignored for self-signed */
};

/* A setting by OpenSSL's own name for it (SSL_CONF_cmd(3)). */
struct tls_command {
    struct str name, value;
};

enum tls_ktls { TLS_KTLS_AUTO, TLS_KTLS_ON, TLS_KTLS_OFF };

/* ECDHE with AEAD only, AES-128-GCM first: what both the sealer and the kernel do fastest. */
#define TLS_CIPHERS_DEFAULT                                                                                          \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"                       \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define TLS_CIPHERSUITES_DEFAULT "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* Whether clients are asked for certificates, and what becomes of them where they show none, or one that is not trusted. */
enum tls_verify {
    TLS_VERIFY_OFF,
    TLS_VERIFY_ON,
    TLS_VERIFY_OPTIONAL,            /* none is right, too */
    TLS_VERIFY_OPTIONAL_NO_CA,      /* and so is one that nobody known has signed: others look at it */
};

struct tls_client_verify {
    enum tls_verify verify;
    unsigned depth;                 /* certificates that may stand between the client's and a trusted one */
    struct str named;               /* PEM files; empty: none. Of authorities that are trusted, and named to clients */
    struct str trusted;             /* of those that are trusted only */
    struct str revoked;             /* of lists of revoked certificates: one from each authority of a chain, then */
};

/* One virtual server's TLS settings, as its directives say. The array and its strings outlive the context. */
struct tls_settings {
    const struct str *names;        /* server_name: exact, "*.example.com", ".example.com"; for SNI and for self-signed */
    size_t name_count;
    const struct regex *const *patterns; /* names that are regular expressions, asked where no other name fits */
    size_t pattern_count;
    const struct tls_certificate *certificates; /* one or two kinds side by side (ECDSA, RSA) */
    size_t certificate_count;
    struct str passwords;           /* a file of pass phrases for encrypted keys, one a line; empty: none */
    bool reject;                    /* handshakes that come here end with unrecognized_name (RFC 6066 3); needs no certificate */
    const struct str *alpn;         /* protocols in the server's order of preference; NULL: "http/1.1", "http/1.0" */
    size_t alpn_count;              /* 0, and alpn is not NULL: whatever clients offer, nothing is chosen */
    unsigned protocols;             /* bits of enum tls_protocol; 0: both */
    struct str ciphers;             /* TLS 1.2, OpenSSL's list syntax; empty: TLS_CIPHERS_DEFAULT */
    struct str ciphersuites;        /* TLS 1.3; empty: TLS_CIPHERSUITES_DEFAULT */
    struct str curves;              /* "auto", empty (the same), or a list: "?X25519MLKEM768:X25519"; "?": where OpenSSL has it */
    struct str dh_parameters;       /* a PEM file, or "auto": OpenSSL's groups; empty: no DHE of TLS 1.2 */
    const struct tls_command *commands; /* done in their order, after what the others say */
    size_t command_count;
    bool prefer_server_ciphers;
    bool session_tickets;
    const struct str *ticket_keys;  /* files: the first one seals, all open; none: drawn keys */
    size_t ticket_key_count;
    uint64_t session_timeout_s;
    const struct session_store *store; /* where sessions of clients without tickets are kept, once it has a cache; NULL: nowhere */
    bool early_data;                /* taken with tickets of drawn keys, where tls_context_share was called */
    struct tls_client_verify client;
    const void *owner;              /* whose settings these are; not looked into */
    enum tls_ktls ktls;
    uint64_t ktls_threshold;        /* bytes of a body from which a connection is promoted */
    bool is_default;                /* answers where no name fits; the first server does where none says so */
};

enum tls_protocol { TLS_PROTOCOL_1_2 = 1, TLS_PROTOCOL_1_3 = 2 };

/* All virtual servers of one listening address. */
struct tls_context;

/* What is wrong with a setting; the texts last as long as the call that tells it. */
struct tls_fault {
    size_t server;                  /* which of the servers */
    const char *directive;          /* "ssl_ciphers", "ssl_certificate_key", ...; "" where it is about none */
    size_t index;                   /* which of the directive's values */
    const char *text;               /* a sentence that names the file or the value */
    const char *hint;               /* the way out, or "" */
};
typedef void tls_fault_told(void *owner, const struct tls_fault *fault);

/* Whether this OpenSSL has a group of key exchange ("X25519MLKEM768"). */
bool tls_has_group(const char *name);

/*
 * Builds the context of one address from its servers' settings: loads, checks (key fits chain; encrypted keys
 * are opened by `passwords` alone), and indexes the names (nobody is ever asked for a password). NULL on failure, after every fault of every
 * server was told. One log line for each self-signed certificate, a warning for an expired one and for a name given twice.
 * To be built before fork: keys of session tickets are drawn here, once, and workers share them by inheritance; or see
 * tls_context_share. Addresses with the same servers can share one context.
 */
struct tls_context *tls_context_load(const struct tls_settings *servers, size_t count, struct log *log, tls_fault_told *told,
                                     void *owner);
/* The same for those who want one sentence: the first fault and its hint in `out_error` (at least 512 bytes). */
struct tls_context *tls_context_create(const struct tls_settings *servers, size_t count, struct log *log, char *out_error,
                                       size_t error_size);
/*
 * A number for the state that all files of a server's settings are in (what stat(2) tells of each): another one once one of them was
 * changed, replaced or removed. 0: it has no files.
 */
uint64_t tls_files_stamp(const struct tls_settings *settings);
/* The content of all files that a server's settings name, keys included, to be given to other processes. */
struct tls_files {
    char *bytes;                    /* owned; NULL: none */
    size_t length;
};
/* Reads them. False, and all that cannot be read is told: `out_files` holds nothing. */
MUST_CHECK bool tls_files_read(const struct tls_settings *settings, struct tls_files *out_files, tls_fault_told *told, void *owner);
/* Wipes and frees. Accepts NULL bytes. */
void tls_files_finish(struct tls_files *files);
/*
 * Loads one server of the context anew, from `files` alone (nothing is opened; a self-signed certificate stays). Connections go on with what they began
 * with, the next ones get the new. False, after all that is wrong was told: then nothing has changed. `files` may be wiped afterwards.
 */
MUST_CHECK bool tls_context_renew(struct tls_context *context, size_t server, const struct tls_files *files, struct log *log,
                                  tls_fault_told *told, void *owner);
/*
 * Tickets are sealed with keys that are drawn by somebody else, now and again (files of a server's own come first), and what early data were taken is known
 * in common: all who have these keys, and nobody else, see the same `early`. NULL: none are taken. Both outlive the context.
 */
void tls_context_share(struct tls_context *context, const struct ticket_keys *keys, struct early_seen *early);
/* Accepts NULL. No session may be left. */
void tls_context_destroy(struct tls_context *context);

#endif
