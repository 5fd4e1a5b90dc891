/*
 * One SSL session, server or client: handshake, decryption, closure alerts. It has no loop and no socket: ciphertext
 * is pushed in, and output is passed in order through `struct tls_output`.
 *
 * Until the write key of application data is ready, OpenSSL seals records and `ciphertext` gets finished bytes. When
 * OpenSSL offers the key (BIO_CTRL_SET_KTLS), the session takes it: `key_ready` is called, and from then on `record`
 * gets plaintext with its type, which the owner seals in order with application data. The owner never uses SSL_write
 * from then on (rule 8). Without an offered key, tls_session_write seals by SSL_write, and `ciphertext` gets the
 * bytes as before.
 */
#ifndef TLS_TLS_SESSION_H
#define TLS_TLS_SESSION_H

#include "tls/record.h"
#include "tls/tls_context.h"

struct tls_session;

/*
 * Receives the session's output. The functions only append to a queue: they do not fail, block or re-enter the
 * session.
 */
struct tls_output {
    /* For the socket, before the owner has the key. */
    void (*ciphertext)(void *owner, struct str bytes);
    /* Afterwards: the owner seals it; type: RFC 8446 5.1. */
    void (*record)(void *owner, uint8_t type, struct str plaintext);
    /*
     * The key of the next record: at the end of the handshake, and again after an own KeyUpdate, which was passed to
     * `record` just before as the last record under the old key. The owner copies it.
     */
    void (*key_ready)(void *owner, const struct record_key *key);
    /*
     * Called when the peer requests a new key. False if the kernel holds the key and cannot replace it: the request
     * is not answered, further input is dropped, and the owner finishes sending and closes (rule 9). NULL: always
     * true.
     */
    bool (*may_update_key)(void *owner);
    /* Milliseconds of a monotonic clock, for LIMIT_KEY_UPDATES_MS. NULL: a constant clock. */
    uint64_t (*now_ms)(void *owner);
    /*
     * The contexts by which a server's session decrypts application data of TLS 1.3; they outlive the session. NULL, or
     * it returns NULL: OpenSSL decrypts.
     */
    struct cipher_context_cache *(*cipher_contexts)(void *owner);
};

/*
 * Creates a session. `context`, `output` and `owner` outlive it. Output occurs only inside calls on the session.
 * NULL when out of memory.
 */
struct tls_session *tls_session_create(struct tls_context *context, const struct tls_output *output, void *owner);
/* Accepts NULL. Wipes its secrets; sends nothing. */
void tls_session_destroy(struct tls_session *session);

/*
 * Sets received bytes as input (the earlier input must be consumed): they must stay valid until the session has
 * consumed them (tls_session_input_left() is 0) or tls_session_return_input returns them. Then call
 * tls_session_handshake or tls_session_read until -EAGAIN.
 */
void tls_session_set_input(struct tls_session *session, struct str ciphertext);
/* Input bytes not yet consumed. */
size_t tls_session_input_left(const struct tls_session *session);
/* Returns the bytes that were not consumed. */
struct str tls_session_return_input(struct tls_session *session);

/* Results of tls_session_handshake: early data arrived; a challenge was answered. */
enum { TLS_SESSION_EARLY = 1, TLS_SESSION_CHALLENGE };

/*
 * One step of the handshake: 0 when complete; -EAGAIN: more input is needed; -EPROTO: failed (an alert may be queued).
 * TLS_SESSION_EARLY, once: not complete, but from now on tls_session_read and tls_session_write are possible (RFC 8446
 * 2.3), and reads continue the handshake; data read until tls_session_early() is false may be a replay.
 * TLS_SESSION_CHALLENGE, once: complete, for a challenge of ACME: the owner closes, and exchanges no data.
 * key_ready may be called before completion: in TLS 1.3 with the server's Finished.
 */
MUST_CHECK int tls_session_handshake(struct tls_session *session);
/* True after TLS_SESSION_EARLY until the handshake is complete. */
bool tls_session_early(const struct tls_session *session);
/*
 * Reads decrypted bytes into `into`: > 0, 0 after the peer's close_notify, -EAGAIN, -EPROTO. Answers KeyUpdate
 * requests, and ends a flood of them (LIMIT_KEY_UPDATES) with an alert. Call it until -EAGAIN even when all input is
 * consumed: a record may be decrypted and only partly read.
 */
MUST_CHECK ssize_t tls_session_read(struct tls_session *session, char *into, size_t size);
/*
 * Only if OpenSSL offered no key: seals all bytes by SSL_write. Returns their number, -EPROTO, or -EINVAL if the key
 * was taken.
 */
MUST_CHECK ssize_t tls_session_write(struct tls_session *session, struct str plaintext);
/*
 * Requests a new write key (TLS 1.3, handshake complete): passes a KeyUpdate to `record`, then calls key_ready. Must
 * happen before LIMIT_RECORDS_PER_KEY (rule 10). 0, -EPROTO, or -EOPNOTSUPP in TLS 1.2 (close instead).
 */
MUST_CHECK int tls_session_update_key(struct tls_session *session);
/* Queues close_notify, once. No effect before the handshake is complete or after a failure. */
void tls_session_shutdown(struct tls_session *session);

/*
 * An error text for the last -EPROTO: OpenSSL's reason, or a plainer text such as "plain HTTP was sent to a TLS port".
 * Never NULL; not freed.
 */
const char *tls_session_error(const struct tls_session *session);
/* True if the session failed because an allocation failed. */
bool tls_session_out_of_memory(const struct tls_session *session);
/* True if the failed handshake of a server began with plain HTTP, so that the owner can send 400 in plain text. */
bool tls_session_got_plain_http(const struct tls_session *session);

/* True once the key of application data was taken: the owner seals from then on. */
bool tls_session_has_key(const struct tls_session *session);

/* The reason why OpenSSL offered no key (tls/README.md); valid only after a handshake without one. */
enum tls_no_key {
    TLS_NO_KEY_SUITE,               /* CBC, CCM: unsupported by the record layer */
    TLS_NO_KEY_FRAGMENT,            /* the client limits its records (max_fragment_length, RFC 6066 4) */
    TLS_NO_KEY_LIBRARY,             /* OpenSSL was built without kTLS */
};
enum tls_no_key tls_session_no_key(const struct tls_session *session);

/*
 * Negotiated parameters, for variables. Views are valid as long as the session; empty before the handshake is
 * complete.
 */
struct str tls_session_protocol(const struct tls_session *session);    /* "TLSv1.3" */
struct str tls_session_cipher(const struct tls_session *session);      /* "TLS_AES_128_GCM_SHA256" */
struct str tls_session_curve(const struct tls_session *session);       /* "X25519", "prime256v1", "X25519MLKEM768" */
struct str tls_session_alpn(const struct tls_session *session);        /* "http/1.1", or empty */
struct str tls_session_server_name(const struct tls_session *session); /* SNI or empty */
/* True if the server's certificate of this session is valid for the DNS name. */
bool tls_session_certificate_covers(const struct tls_session *session, struct str host);
/* The session id in hexadecimal for $ssl_session_id, into `into` (at least 65 bytes). */
struct str tls_session_id(const struct tls_session *session, char *into, size_t size);
/* True if the handshake resumed a session. */
bool tls_session_reused(const struct tls_session *session);

/*
 * The state of the client's certificate under `ssl_verify_client` of the server that SNI selected. Valid after the
 * handshake.
 */
enum tls_client_state {
    TLS_CLIENT_ACCEPTED,            /* or not requested */
    TLS_CLIENT_REFUSED,             /* invalid: tls_session_client_fault */
    TLS_CLIENT_ABSENT,              /* required and missing */
};
enum tls_client_state tls_session_client_state(const struct tls_session *session);
/* A constant text on the fault of the client's certificate. */
const char *tls_session_client_fault(const struct tls_session *session);
/* "NONE", "SUCCESS" or "FAILED:" with a reason: $ssl_client_verify. Empty before the handshake is complete. */
struct str tls_session_client_verify(const struct tls_session *session, struct arena *arena);

enum tls_client_property {
    TLS_CLIENT_SUBJECT, TLS_CLIENT_ISSUER,  /* names in the format of RFC 2253 */
    TLS_CLIENT_SERIAL,                      /* hexadecimal */
    TLS_CLIENT_FINGERPRINT,                 /* SHA-1, hexadecimal */
    TLS_CLIENT_START, TLS_CLIENT_END,
    TLS_CLIENT_REMAIN,                      /* days */
    TLS_CLIENT_PEM,
    TLS_CLIENT_PEM_FOLDED,                  /* each line but the first begins with a tab */
    TLS_CLIENT_PEM_ESCAPED,                 /* percent-encoded */
};
/* A property of the client's certificate, in the arena; data is NULL without a certificate. */
struct str tls_session_client_property(const struct tls_session *session, enum tls_client_property property,
                                       struct arena *arena);
/* The settings of the virtual server that SNI selected; of the default server before the ClientHello. */
const struct tls_settings *tls_session_settings(const struct tls_session *session);

#endif
