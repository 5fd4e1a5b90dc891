/*
 * The TLS record layer of one connection in user space. It uses key, nonce and sequence number for sending until
 * ktls_enable copies them to the kernel (tls/ktls.h).
 */
#ifndef TLS_RECORD_H
#define TLS_RECORD_H

#include "base/limits.h"
#include "base/list.h"
#include "base/must_check.h"
#include "base/str.h"

#include <sys/uio.h>

enum record_type { RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_APPLICATION_DATA = 23 }; /* RFC 8446 B.1 */

enum record_cipher { RECORD_NONE, RECORD_AES_128_GCM, RECORD_AES_256_GCM, RECORD_CHACHA20_POLY1305 };

#define RECORD_CIPHERS (RECORD_CHACHA20_POLY1305 + 1)

enum record_version { RECORD_TLS_1_2 = 0x0303, RECORD_TLS_1_3 = 0x0304 };

/* Maximum bytes added to a record: header 5, explicit nonce 8 or inner type 1, tag 16. */
#define RECORD_OVERHEAD 29
/* Content, content type and padding of a TLS 1.3 record (RFC 8446 5.4). */
#define RECORD_INNER_MAX (LIMIT_RECORD_PLAINTEXT + 1)
#define RECORD_HEAD_MAX 13          /* maximum of record_head() */
#define RECORD_SECRET_MAX 48        /* a TLS 1.3 traffic secret: SHA-256 or SHA-384 */

/* The key of one direction of a connection: 64 bytes, wiped by record_key_wipe. */
struct record_key {
    uint16_t version;               /* enum record_version */
    uint8_t cipher;                 /* enum record_cipher */
    uint8_t explicit_nonce[8];      /* TLS 1.2 AES-GCM: the next explicit nonce (RFC 5288 3) */
    uint8_t key[32];
    /* TLS 1.3 and ChaCha20: the whole nonce; TLS 1.2 GCM: the salt in the first 4 bytes. */
    uint8_t iv[12];
    uint64_t sequence;              /* of the next record */
};

_Static_assert(sizeof(struct record_key) == 64, "every connection keeps one");

/* Wipes the key. Accepts a zeroed one. */
void record_key_wipe(struct record_key *key);

/* "AES-128-GCM"; "" for RECORD_NONE and unknown ciphers. */
const char *record_cipher_name(uint8_t cipher);

/* Key length of the cipher in bytes: 16 or 32; 0 for RECORD_NONE. */
size_t record_key_length(uint8_t cipher);

/*
 * Derives the TLS 1.3 write key of a traffic secret (RFC 8446 7.3: HKDF-Expand-Label with "key" and "iv"), sequence
 * number 0. The hash is SHA-384 for AES-256-GCM and SHA-256 otherwise. 0, -EINVAL (wrong length of the secret,
 * unknown cipher) or -ENOMEM. The caller wipes the secret.
 */
MUST_CHECK int record_key_derive(uint8_t cipher, struct str secret, struct record_key *out_key);

/* The LRU cache of live cipher contexts of a worker: a context takes 1.2 KB, a key 64 bytes. */
struct cipher_context_cache;
struct aead_choice;
struct cipher_context;                 /* a context currently keyed for one connection */

/*
 * Creates a cache of at most `max_count` contexts (at least 1), and of no more than fit into LIMIT_CIPHER_BYTES, each
 * made on first use. `choice` (NULL: OpenSSL) names the AEAD engine of each cipher, and is copied. NULL when out of
 * memory.
 */
struct cipher_context_cache *cipher_context_cache_create(unsigned max_count, const struct aead_choice *choice);
/* Wipes and frees every context; the pointers of connections to them become NULL. Accepts NULL. */
void cipher_context_cache_destroy(struct cipher_context_cache *cache);

/*
 * Seals one record of at most LIMIT_RECORD_PLAINTEXT bytes, gathered from `parts`, into `into` (room for the
 * plaintext and record_overhead()): RFC 8446 5.2, RFC 5246 6.2.3.3 with RFC 5288 and RFC 7905. `*context` is the
 * connection's context, NULL at first; the cache may evict it at any time and set it to NULL, so the address of
 * `context` must not change until record_release. The first part may be in place, at
 * into + record_head(key); other parts must not overlap `into`. A changed `*key` is detected. Success uses one
 * sequence number and, in TLS 1.2 AES-GCM, one explicit nonce; failure uses none.
 * Returns the record's length; -EMSGSIZE, -ENOMEM, -EINVAL (unsupported version and cipher), or -EKEYEXPIRED past
 * LIMIT_RECORDS_PER_KEY (alerts and handshake messages have a reserve, so that the connection can close or rekey).
 */
MUST_CHECK ssize_t record_seal(struct cipher_context_cache *cache, struct record_key *key,
                               struct cipher_context **context, uint8_t type, const struct iovec *parts, int count,
                               char *into);
/*
 * Decrypts one TLS 1.3 record (RFC 8446 5.2) of type application_data: `record` is header, ciphertext and tag. Writes
 * content, content type and padding into `into` (room for the ciphertext, which it may overlap only wholly, at the same
 * address). `*context` as for record_seal. Success uses one sequence number; failure uses none. Returns the number of
 * bytes written; -EBADMSG: not authentic, or too short; -ENOMEM.
 */
MUST_CHECK ssize_t record_open(struct cipher_context_cache *cache, struct record_key *key,
                               struct cipher_context **context, struct str record, char *into);
/* Bytes before the ciphertext: 5, or 13 with an explicit nonce. */
size_t record_head(const struct record_key *key);
/* Bytes that sealing adds to a record under this key. */
size_t record_overhead(const struct record_key *key);
/* Wipes and releases the connection's live context. Accepts a NULL context. */
void record_release(struct cipher_context_cache *cache, struct cipher_context **context);

#endif
