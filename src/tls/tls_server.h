/*
 * One virtual server, loaded: what a session switches to when SNI names it. Private to tls.
 */
#ifndef TLS_TLS_SERVER_H
#define TLS_TLS_SERVER_H

#include "tls/tls_context.h"
#include "tls/tls_names.h"

#include <limits.h>
#include <openssl/ssl.h>

struct tls_server {
    const struct tls_context *context;   /* not owned: whose it is */
    const struct tls_settings *settings; /* not owned */
    SSL_CTX *openssl;                    /* owned */
    unsigned char *alpn;                 /* owned: length-prefixed names, most wanted first (RFC 7301 3.1) */
    unsigned alpn_length;
    char *groups; /* owned; NULL: OpenSSL's own list */
    struct ticket_key *ticket_keys; /* owned: of ssl_session_ticket_key, the first seals; NULL: the context's */
    size_t ticket_key_count;
    /* While it is loaded: */
    EVP_MD_CTX *digest;            /* owned: of all that a session depends on */
    const struct tls_files *files; /* read in the place of the disk; NULL: the disk */
    SSL_CTX *before;               /* not owned: what is being replaced; NULL: nothing */
    struct tls_file *passwords;    /* owned: of ssl_password_file; NULL: none */
};

struct tls_context {
    struct tls_server *servers; /* owned */
    size_t count;
    struct tls_server *fallback; /* where no name fits */
    struct tls_names names;
    BIO_METHOD *method; /* owned */
    const struct ticket_keys *tickets; /* drawn ones: `own`, or somebody's who draws for several; not owned */
    struct ticket_keys own;
    struct early_seen *early; /* what was seen by all who have `tickets`; not owned; NULL: no early data */
    bool may_be_early;        /* one of the servers takes early data */
    bool client;        /* its sessions are clients: tls_client.c */
    bool nameless;      /* of a client: no SNI */
    bool forgetful;     /* of a client: nothing is resumed */
};

/* Whom a failing load tells, and what it is at. */
struct tls_failure {
    tls_fault_told *told;
    void *owner;
    struct tls_fault fault; /* without its texts */
};

/* The same failure, at a directive's value. */
struct tls_failure tls_failure_at(const struct tls_failure *failure, const char *directive, size_t index);
/* Tells the sentence, with what follows a newline in it as the hint, and returns false. */
bool tls_fail(const struct tls_failure *failure, const char *format, ...) PRINTF_LIKE(2, 3);
/* OpenSSL's reason for its last failure; the queue is empty afterwards. */
const char *tls_openssl_reason(void);

/* Loads what the settings say: tls_server.c. False with all that is wrong told; to be finished all the same. */
MUST_CHECK bool tls_server_load(struct tls_server *server, struct log *log, const struct tls_failure *failure);
/* Frees what it owns. Accepts a zeroed one. */
void tls_server_finish(struct tls_server *server);

/* A file that was read. */
struct tls_file {
    char name[PATH_MAX];
    char *text; /* owned: wiped and freed by tls_file_finish */
    size_t length;
};

/* Reads a file of the server's, of at most LIMIT_PEM_FILE bytes. False with the sentence told; `file` is to be finished all the same. */
MUST_CHECK bool tls_file_open(struct tls_file *file, const struct tls_server *server, struct str name,
                              const struct tls_failure *failure);
void tls_file_finish(struct tls_file *file);

/* Session tickets as the settings say: tls_tickets.c. False with a sentence. */
MUST_CHECK bool tls_tickets_set(struct tls_server *server, const struct tls_failure *failure);

struct tls_session;

/* What a ticket says beside its session. */
struct ticket_note {
    bool accepted;      /* its client has shown what its server asks for */
    int64_t apart_ms;   /* tls_clocks_apart_ms when it was made */
};
/* How far the clock on the wall is ahead of the session's, which nobody sets. */
int64_t tls_clocks_apart_ms(const struct tls_session *session);
/* Of a session that came with a ticket. False: it says nothing. */
MUST_CHECK bool tls_ticket_note(SSL_SESSION *resumed, struct ticket_note *out_note);

/* Life and note (struct ticket_note) of a session that was made, as its server says. False: out of memory. */
MUST_CHECK bool tls_session_note(SSL *ssl, SSL_SESSION *made);

/* Keeps sessions of clients without tickets, as the settings say: tls_kept.c. */
void tls_kept_set(struct tls_server *server);
/* Every connection of the context begins at `first`, whose OpenSSL keeps sessions for all servers. */
void tls_kept_begin_at(struct tls_context *context, struct tls_server *first);

/* Takes early data as the settings say: tls_early.c. */
void tls_early_set(struct tls_server *server);

/* Parameters of Diffie-Hellman (TLS 1.2), and OpenSSL's own commands, as the settings say: tls_extra.c. False with a sentence. */
MUST_CHECK bool tls_dh_set(struct tls_server *server, const struct tls_failure *failure);
MUST_CHECK bool tls_commands_set(struct tls_server *server, const struct tls_failure *failure);

/* Asks clients for certificates as the settings say: tls_verify.c. False with a sentence. */
MUST_CHECK bool tls_verify_set(struct tls_server *server, const struct tls_failure *failure);
/* Whether a session with this note (NULL: none) may be taken up at the server. */
bool tls_verify_resumes(const struct tls_server *server, SSL_SESSION *resumed, const struct ticket_note *note);

/* For OpenSSL's readers of PEM: the password of a file would be asked for here, never. */
int tls_password_refused(char *into, int size, int writing, void *unused);
/* The key of a PEM file, encrypted or not: tls_key.c. To be freed; NULL with a sentence. `passwords` NULL: none are known. */
MUST_CHECK EVP_PKEY *tls_key_read(const struct tls_file *file, const struct tls_file *passwords,
                                  const struct tls_failure *failure);
/* Whether these words stand in a file; and the sentence for a PEM file that lacks what it is read for (false). */
bool tls_pem_says(const struct tls_file *file, const char *words);
bool tls_pem_lacks(const struct tls_file *file, const char *what, const char *tool, const struct tls_failure *failure);

/* Loads one chain and key into the server's SSL_CTX: tls_certificate.c. False with all that is wrong told. */
MUST_CHECK bool tls_certificate_load(struct tls_server *server, const struct tls_certificate *certificate,
                                     size_t index, struct log *log, const struct tls_failure *failure);

/* Makes a certificate for the server's names, with a log line: tls_self_signed.c. False with a sentence. */
MUST_CHECK bool tls_self_signed_make(struct tls_server *server, struct log *log,
                                     const struct tls_failure *failure);

#endif
