/*
 * A loaded virtual server, to which SNI switches a session. Private to tls/.
 */
#ifndef TLS_TLS_SERVER_H
#define TLS_TLS_SERVER_H

#include "tls/ticket_appdata.h"
#include "tls/tls_context.h"
#include "tls/tls_fault.h"
#include "tls/tls_names.h"

#include <limits.h>
#include <openssl/ssl.h>

struct tls_server {
    const struct tls_context *context;  /* not owned */
    /* Not owned. */
    const struct tls_settings *settings;
    SSL_CTX *openssl;                   /* owned */
    unsigned char *alpn;                /* owned: length-prefixed names in order of preference (RFC 7301 3.1) */
    unsigned alpn_length;
    char *groups;                       /* owned; NULL: OpenSSL's default list */
    struct ticket_key *ticket_keys;     /* owned: of ssl_session_ticket_key, the first encrypts; NULL: the context's */
    size_t ticket_key_count;
    /* While it is being loaded: */
    EVP_MD_CTX *digest;                 /* owned: digest of all settings that a session depends on */
    const struct tls_files *files;      /* read instead of the disk; NULL: the disk */
    SSL_CTX *previous;                  /* not owned: the context being replaced; NULL: none */
    struct tls_file *passwords;         /* owned: of ssl_password_file; NULL: none */
};

struct tls_context {
    struct tls_server *servers;             /* owned */
    size_t count;
    struct tls_server *default_server;      /* used if no name matches */
    struct tls_names names;
    BIO_METHOD *method;                     /* owned */
    const struct ticket_keys *tickets;      /* generated keys: `own_tickets`, or shared ones; not owned */
    struct ticket_keys own_tickets;
    struct replay_window *replay_window;    /* replay window shared with `tickets`; not owned; NULL: no early data */
    bool accepts_early_data;                /* at least one server accepts early data */
    tls_challenge_find *find_challenge;     /* NULL: none are answered */
    void *challenge_owner;
    struct tls_server challenge_server;     /* of challenges: without a certificate; zeroed: none */
    bool client;                            /* client sessions: tls_client.c */
    bool no_server_name;                    /* client: no SNI */
    bool no_resumption;                     /* client: no resumption */
};

/* Loads the settings: tls_server.c. False after all faults were reported; tls_server_finish follows in either case. */
MUST_CHECK bool tls_server_load(struct tls_server *server, struct log *log, const struct tls_reporter *reporter);
/* Frees the members that it owns. Accepts a zeroed one. */
void tls_server_finish(struct tls_server *server);

/* The contents of a file. */
struct tls_file {
    char name[PATH_MAX];
    char *text; /* owned: wiped and freed by tls_file_finish */
    size_t length;
};

/*
 * Reads a file of the server, at most LIMIT_PEM_FILE bytes. False after the fault was reported; `file` must be
 * finished in either case.
 */
MUST_CHECK bool tls_file_open(struct tls_file *file, const struct tls_server *server, struct str name,
                              const struct tls_reporter *reporter);
/* Accepts a zeroed one. */
void tls_file_finish(struct tls_file *file);

/* True for a certificate that may be absent, and whose file does not exist: tls_file.c. */
bool tls_certificate_absent(const struct tls_server *server, const struct tls_certificate *certificate);

/* Configures session tickets: tls_tickets.c. False after a reported fault. */
MUST_CHECK bool tls_tickets_set(struct tls_server *server, const struct tls_reporter *reporter);

/* Configures the session cache: tls_session_cache.c. */
void tls_session_cache_enable(struct tls_server *server);
/*
 * Prepares `first`, with whose SSL_CTX every connection of the context begins, to store sessions of all servers.
 */
void tls_session_cache_set_context(struct tls_context *context, struct tls_server *first);

/* Configures early data: tls_early.c. */
void tls_early_set(struct tls_server *server);

/* Configures Diffie-Hellman parameters (TLS 1.2) and SSL_CONF commands: tls_extra.c. False after a reported fault. */
MUST_CHECK bool tls_dh_set(struct tls_server *server, const struct tls_reporter *reporter);
MUST_CHECK bool tls_commands_set(struct tls_server *server, const struct tls_reporter *reporter);

/* Configures client certificates: tls_verify.c. False after a reported fault. */
MUST_CHECK bool tls_verify_set(struct tls_server *server, const struct tls_reporter *reporter);
/* True if a session with this data in `appdata` (NULL: none) may be resumed at the server. */
bool tls_verify_resumes(const struct tls_server *server, SSL_SESSION *resumed, const struct ticket_appdata *appdata);

/* A pem_password_cb that supplies no pass phrase, because there is no prompt: tls_pem.c. */
int tls_no_password(char *into, int size, int writing, void *unused);
/* True if the file contains `words`; used for the fault text of a PEM file without the expected object. */
bool tls_pem_contains(const struct tls_file *file, const char *words);
/*
 * Reports that the file has no `what`, with `hint`; `tool` is the openssl command that converts one from DER. Returns
 * false.
 */
bool tls_pem_report_missing(const struct tls_file *file, const char *what, const char *tool, const char *hint,
                            const struct tls_reporter *reporter);

/*
 * Reads the key of a PEM file, encrypted or not: tls_key.c. Freed by the caller; NULL after a reported fault.
 * `passwords` NULL: none.
 */
MUST_CHECK EVP_PKEY *tls_key_read(const struct tls_file *file, const struct tls_file *passwords,
                                  const struct tls_reporter *reporter);

/* Loads one chain and key into the server's SSL_CTX: tls_certificate.c. False after all faults were reported. */
MUST_CHECK bool tls_certificate_load(struct tls_server *server, const struct tls_certificate *certificate,
                                     size_t index, struct log *log, const struct tls_reporter *reporter);

/* Generates a certificate for the server's names and logs it: tls_self_signed.c. False after a reported fault. */
MUST_CHECK bool tls_self_signed_make(struct tls_server *server, struct log *log,
                                     const struct tls_reporter *reporter);

/*
 * Challenges tls-alpn-01: tls_challenge.c. True if the ClientHello offers "acme-tls/1" only.
 */
bool tls_challenge_offered(SSL *ssl);
/* Loads context->challenge_server. False when out of memory. */
MUST_CHECK bool tls_challenge_load(struct tls_context *context);
/* Makes a certificate for this handshake, and uses it. False after an error of OpenSSL. */
MUST_CHECK bool tls_challenge_present(SSL *ssl, const struct tls_challenge *challenge);

#endif
