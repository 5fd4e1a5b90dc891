/*
 * The receiving half of the record layer of one TLS 1.3 connection of a server (RFC 8446 5): decrypts application data
 * without OpenSSL. It also decrypts alerts and KeyUpdates, seals them again under the sequence number that OpenSSL
 * expects, and passes them to OpenSSL, which alone changes the state of the connection. Private to tls/.
 */
#ifndef TLS_TLS_RECEIVER_H
#define TLS_TLS_RECEIVER_H

#include "base/buffer.h"
#include "tls/tls_session.h"

#define RECORD_HEADER 5
#define RECORD_CIPHERTEXT_MAX (LIMIT_RECORD_PLAINTEXT + 256) /* RFC 8446 5.2 */

struct tls_receiver {
    struct cipher_context_cache *cache; /* not owned */
    struct cipher_context *context;     /* of `key`; the cache may evict it */
    struct record_key key;              /* zeroed: not derived yet, OpenSSL decrypts */
    uint64_t openssl_sequence;          /* the sequence number that OpenSSL expects */
    uint8_t secret[RECORD_SECRET_MAX];  /* of the key, until it is derived */
    uint8_t secret_length;
    uint8_t cipher;                     /* enum record_cipher */
    struct buffer partial;              /* an incomplete record */
    char *plaintext;                    /* a decrypted record that did not fit into the caller's buffer; owned */
    uint32_t unread_from, unread_to;    /* its unread bytes */
    uint8_t empty_records;              /* consecutive */
    bool closed;                        /* close_notify was read */
};

/*
 * Creates a receiver for the client's first application traffic secret. `cache` outlives it. NULL when out of memory.
 */
struct tls_receiver *tls_receiver_create(struct cipher_context_cache *cache, uint8_t cipher, struct str secret);
/* Wipes keys and data. Accepts NULL. */
void tls_receiver_destroy(struct tls_receiver *receiver);

/* Changes the key after OpenSSL has read the peer's KeyUpdate. */
void tls_receiver_set_secret(struct tls_receiver *receiver, struct str secret);

/* Derives the key of the secret. If memory is short, the key remains zeroed, and OpenSSL continues to decrypt. */
void tls_receiver_derive_key(struct tls_receiver *receiver);
/* Wipes and frees `plaintext`. */
void tls_receiver_free_plaintext(struct tls_receiver *receiver);

/* Reads from the session's input like tls_session_read, which calls it. At most one record. */
ssize_t tls_receiver_read(struct tls_session *session, char *into, size_t size);
/* Decrypted bytes that were not read yet. */
size_t tls_receiver_pending(const struct tls_receiver *receiver);

#endif
