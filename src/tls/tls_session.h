/*
 * One SSL, server side (later client too): handshake, decryption, orderly close.
 * No loop and no socket in here: ciphertext is pushed in, and what is to be sent
 * is passed out in order through `struct tls_output`.
 *
 * Until the write key of application data is ready, OpenSSL seals by itself
 * and `ciphertext` gets finished bytes. Once it offers the key (BIO_CTRL_SET_KTLS), we take it: `key_ready` is called, and
 * from then on `record` gets plaintext with its type, to be sealed by the owner in order with application data, which never goes
 * through SSL_write again (rule 8). Where no key is offered, tls_session_write seals with SSL_write and the bytes come
 * out through `ciphertext` as before.
 */
#ifndef TLS_TLS_SESSION_H
#define TLS_TLS_SESSION_H

#include "tls/record.h"
#include "tls/tls_context.h"

struct tls_session;

/* Where the session's output goes. The functions only append to a queue: they never fail, block or re-enter the session. */
struct tls_output {
    void (*ciphertext)(void *owner, struct str bytes);
    void (*record)(void *owner, uint8_t type, struct str plaintext);
    /*
     * The key with which the next record is sealed: at the end of the handshake, and again after our own KeyUpdate, which was
     * passed to `record` just before and is the last one under the old key. Copied by the owner.
     */
    void (*key_ready)(void *owner, const struct record_key *key);
    /*
     * The peer asks for a new key: may one come? False where the kernel holds the key and cannot be given another: then the request is
     * not answered, whatever else arrives is dropped, and the owner finishes what it is sending and closes (rule 9). NULL: always true.
     */
    bool (*may_update_key)(void *owner);
    /* Milliseconds of a clock that only goes forward, for LIMIT_KEY_UPDATES_MS. NULL: time stands still. */
    uint64_t (*now_ms)(void *owner);
};

/* NULL when out of memory. `context`, `output` and `owner` outlive the session. Events come only from within calls on the session. */
struct tls_session *tls_session_create(struct tls_context *context, const struct tls_output *output, void *owner);
/* Accepts NULL. Wipes what it holds; sends nothing. */
void tls_session_destroy(struct tls_session *session);

/*
 * Lends received bytes (none may be lent already): they must stay until the session has taken them all (tls_session_lent() is 0) or
 * are handed back by tls_session_unlend. Then call tls_session_handshake or tls_session_read until they say -EAGAIN.
 */
void tls_session_lend(struct tls_session *session, struct str ciphertext);
/* Bytes lent and not yet taken. */
size_t tls_session_lent(const struct tls_session *session);
/* Takes back what was not yet taken. */
struct str tls_session_unlend(struct tls_session *session);

/* Of tls_session_handshake: early data have come. */
enum { TLS_SESSION_EARLY = 1 };

/*
 * One step of the handshake: 0 when finished, -EAGAIN: more bytes are needed, -EPROTO: it failed (an alert may have been queued). TLS_SESSION_EARLY, once: it
 * is not finished, but from here on the session is read and written as if it were (RFC 8446 2.3), and goes on with the handshake while it is read; what it
 * reads until tls_session_early() is false may be somebody's replay of what the client has said to another server, or machine.
 * key_ready may come before the end: in TLS 1.3 with the server's own flight.
 */
MUST_CHECK int tls_session_handshake(struct tls_session *session);
/* True after TLS_SESSION_EARLY, until the handshake is finished. */
bool tls_session_early(const struct tls_session *session);
/*
 * Decrypted bytes into `into`: > 0, 0 after the peer's close_notify, -EAGAIN, -EPROTO. Answers KeyUpdate requests on the way, and
 * ends a storm of them (LIMIT_KEY_UPDATES) with an alert. To be called again until -EAGAIN even when nothing is lent any more:
 * a record may be decrypted and only partly read.
 */
MUST_CHECK ssize_t tls_session_read(struct tls_session *session, char *into, size_t size);
/* Only where no key was offered: seals through SSL_write. Always takes all: length; -EPROTO, or -EINVAL where the key was taken. */
MUST_CHECK ssize_t tls_session_write(struct tls_session *session, struct str plaintext);
/*
 * Asks for a new write key of our own (TLS 1.3, handshake over): a KeyUpdate is passed to `record`, then key_ready. Before
 * LIMIT_RECORDS_PER_KEY is reached (rule 10). 0, -EPROTO, or -EOPNOTSUPP in TLS 1.2 (to be closed instead).
 */
MUST_CHECK int tls_session_update_key(struct tls_session *session);
/* Queues close_notify, once; nothing before the handshake is over or after a failure. */
void tls_session_shutdown(struct tls_session *session);

/* A sentence on the last -EPROTO for the log: OpenSSL's reason, and "HTTP spoken to a TLS port" and its like. Never NULL; never freed. */
const char *tls_session_error(const struct tls_session *session);
/* True where the failed handshake of a server began with plain HTTP, so that the owner can answer 400 in plain text. */
bool tls_session_spoke_http(const struct tls_session *session);

/* True once the key of application data was taken: from then on the owner seals. */
bool tls_session_key_taken(const struct tls_session *session);

/* Why OpenSSL offered no key (its own conditions, tls/README.md); only after a handshake without one. */
enum tls_no_key {
    TLS_NO_KEY_SUITE,               /* CBC, CCM: not sealed by us */
    TLS_NO_KEY_FRAGMENT,            /* the client limits its records (max_fragment_length, RFC 6066 4) */
    TLS_NO_KEY_LIBRARY,             /* it never does: built without kTLS */
};
enum tls_no_key tls_session_no_key(const struct tls_session *session);

/* What was agreed; for variables. Views are valid as long as the session; empty before the handshake is over. */
struct str tls_session_protocol(const struct tls_session *session);    /* "TLSv1.3" */
struct str tls_session_cipher(const struct tls_session *session);      /* "TLS_AES_128_GCM_SHA256" */
struct str tls_session_curve(const struct tls_session *session);       /* "X25519", "prime256v1", "X25519MLKEM768" */
struct str tls_session_alpn(const struct tls_session *session);        /* "http/1.1", or empty */
struct str tls_session_server_name(const struct tls_session *session); /* SNI or empty */
/* The session's identifier in hex for $ssl_session_id: into `into` (65 bytes at least). */
struct str tls_session_id(const struct tls_session *session, char *into, size_t size);
bool tls_session_reused(const struct tls_session *session);

/* Whether the client may have what the server that SNI chose has, by that server's `ssl_verify_client`. Only after the handshake. */
enum tls_client_state {
    TLS_CLIENT_ACCEPTED,            /* or not asked */
    TLS_CLIENT_REFUSED,             /* its certificate is not good: tls_session_client_fault */
    TLS_CLIENT_ABSENT,              /* it has shown none, and has to */
};
enum tls_client_state tls_session_client_state(const struct tls_session *session);
/* What is wrong with the client's certificate: a constant sentence. */
const char *tls_session_client_fault(const struct tls_session *session);
/* "NONE", "SUCCESS" or "FAILED:" and what is wrong: $ssl_client_verify. Empty before the handshake is over. */
struct str tls_session_client_verify(const struct tls_session *session, struct arena *arena);

enum tls_client_fact {
    TLS_CLIENT_SUBJECT, TLS_CLIENT_ISSUER,  /* names as RFC 2253 writes them */
    TLS_CLIENT_SERIAL,              /* hexadecimal */
    TLS_CLIENT_FINGERPRINT,         /* SHA-1, hexadecimal */
    TLS_CLIENT_START, TLS_CLIENT_END,
    TLS_CLIENT_REMAIN,              /* days */
    TLS_CLIENT_PEM,
    TLS_CLIENT_PEM_FOLDED,          /* each line but the first begins with a tab */
    TLS_CLIENT_PEM_ESCAPED,         /* for a URL, or a field */
};
/* Of the client's certificate, in the arena; data is NULL where it has shown none. */
struct str tls_session_client_fact(const struct tls_session *session, enum tls_client_fact fact, struct arena *arena);
/* The settings of the virtual server that SNI chose; of the default one before the ClientHello. */
const struct tls_settings *tls_session_settings(const struct tls_session *session);

#endif
