/*
 * A server session and an OpenSSL client, joined in memory. The client shares no code with the record layer that seals
 * the server's records.
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
    unsigned keys;                  /* number of calls of key_ready */
    unsigned records;               /* passed to `record` */
    bool sealed_with_openssl;       /* the most recent bytes came through `ciphertext` */
    bool decrypts_with_openssl;     /* cipher_contexts returns NULL; set between pair_open and pair_handshake */
    bool forbid_update;             /* may_update_key returns the opposite */
    unsigned asked_update;
    uint64_t now_ms;
    int alert;                      /* the last alert that the client received */
    char *wire;                     /* all bytes from the server */
    size_t wire_length;
    int kernel_local;               /* a kTLS socket; 0: none */
    int kernel_peer;                /* its other end */
    struct record_key client_key;   /* TLS 1.3: the client's key, to seal records that OpenSSL never sends */
    struct cipher_context *client_cipher_context;
    SSL_CTX *client_openssl;
    SSL *client;
    size_t fragment;                /* bytes passed at once; 0: all */
    char last_log[4096];
    unsigned log_lines;
    struct log log;
};

/* The default settings of a server "localhost" with a self-signed certificate. */
struct tls_settings pair_settings(void);

/* Loads the context and creates both ends. `servers` must outlive the pair. Aborts the test on failure. */
void pair_open(struct tls_pair *pair, const struct tls_settings *servers, size_t count);
/* A new connection with the same contexts. Make the client's settings before pair_handshake. */
void pair_reconnect(struct tls_pair *pair);
void pair_close(struct tls_pair *pair);

/* Runs both ends until the handshake succeeds or fails. Returns the server's result. */
int pair_handshake(struct tls_pair *pair);
/*
 * Passes the client's output to the session. Returns the number of bytes that the session read into `into`, or its last
 * result.
 */
ssize_t pair_server_read(struct tls_pair *pair, char *into, size_t size);
/* Sends application data from the server, one record per 16 KiB, sealed by the record layer, OpenSSL or the kernel. */
void pair_server_write(struct tls_pair *pair, struct str plaintext);
/* Returns the number of bytes that the client read, `size` if possible, or the negated SSL_get_error. */
ssize_t pair_client_read(struct tls_pair *pair, char *into, size_t size);

/* Client and server send each other `size` bytes and compare them. */
void pair_exchange(struct tls_pair *pair, size_t size);
/*
 * Passes the session one record sealed with the client's key (TLS 1.3), and reads once. Returns the result of
 * tls_session_read.
 */
ssize_t pair_forge(struct tls_pair *pair, uint8_t type, struct str plaintext, char *into, size_t size);

/* Passes records from the kernel to the client; waits for at least `length` bytes. */
void pair_from_kernel(struct tls_pair *pair, size_t length);

/* Both sides close in order. */
void pair_shutdown(struct tls_pair *pair);

#endif
