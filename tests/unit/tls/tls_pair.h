/*
 * A server session of ours and an OpenSSL client, joined in memory: what we
 * seal is read by an implementation that shares nothing with the cipher_contexts.
 */
#ifndef TEST_TLS_PAIR_H
#define TEST_TLS_PAIR_H

#include "tls/tls_session.h"

#include <openssl/ssl.h>

struct tls_pair {
    struct tls_context *context;
    struct tls_session *session;
    struct cipher_context_cache *cipher_contexts;
    struct cipher_context *cipher_context;
    struct record_key key;          /* the owner's copy */
    unsigned keys;                  /* how often key_ready came */
    unsigned records;               /* passed to `record` */
    bool sealed_with_openssl;       /* the last bytes came through ciphertext */
    bool forbid_update;             /* what may_update_key answers, inverted */
    unsigned asked_update;
    uint64_t now_ms;
    int alert;                      /* the last that the client got */
    char *wire;                     /* everything the server sent */
    size_t wire_length;
    int kernel_near;                /* a promoted socket, whose kernel seals from now on; 0: none */
    int kernel_far;                 /* its other end */
    struct record_key client_key;   /* TLS 1.3: with it a test forges what the client would never send */
    struct cipher_context *client_slot;
    SSL_CTX *client_openssl;
    SSL *client;
    size_t fragment;                /* bytes lent at once; 0: all */
    char last_log[4096];
    unsigned log_lines;
    struct log log;
};

/* The default settings of a self-signed server "localhost". */
struct tls_settings pair_settings(void);

/* Loads the context and makes both ends. `servers` outlive the pair. Aborts the test on failure. */
void pair_open(struct tls_pair *pair, const struct tls_settings *servers, size_t count);
/* A new connection over the same contexts; the client's settings are to be made before pair_handshake. */
void pair_reconnect(struct tls_pair *pair);
void pair_close(struct tls_pair *pair);

/* Both ends take turns until the handshake is over or has failed: the server's result. */
int pair_handshake(struct tls_pair *pair);
/* Moves what the client has written into the session. `into` gets what the session read: bytes, or the last result. */
ssize_t pair_server_read(struct tls_pair *pair, char *into, size_t size);
/* Application data from the server, one record for each 16 KiB, sealed by whoever seals. */
void pair_server_write(struct tls_pair *pair, struct str plaintext);
/* What the client reads: bytes (all of `size` if it can), or SSL_get_error negated. */
ssize_t pair_client_read(struct tls_pair *pair, char *into, size_t size);

/* Client and server send each other `size` bytes and compare. */
void pair_exchange(struct tls_pair *pair, size_t size);
/* Lends the session one record sealed as the client would (TLS 1.3), and reads once: tls_session_read's result. */
ssize_t pair_forge(struct tls_pair *pair, uint8_t type, struct str plaintext, char *into, size_t size);

/* Hands the client what the kernel has sealed: waits until at least `length` bytes of records are there. */
void pair_from_kernel(struct tls_pair *pair, size_t length);

/* An orderly end from both sides. */
void pair_shutdown(struct tls_pair *pair);

#endif
