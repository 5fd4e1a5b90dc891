/*
 * Seals TLS records in user space: the sending half of a record layer for one
 * direction of one connection. Key, nonce and sequence number live here and
 * nowhere else, until the kernel takes them (tls/ktls.h).
 */
#ifndef TLS_RECORD_H
#define TLS_RECORD_H

#include "base/list.h"
#include "base/must_check.h"
#include "base/str.h"

#include <sys/uio.h>

enum record_type { RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_APPLICATION_DATA = 23 }; /* RFC 8446 B.1 */

enum record_cipher { RECORD_NONE, RECORD_AES_128_GCM, RECORD_AES_256_GCM, RECORD_CHACHA20_POLY1305 };

#define RECORD_OVERHEAD 29          /* most bytes that a record adds: header 5, explicit nonce 8 or inner type 1, tag 16 */

/* The write key of one connection: 80 bytes, wiped by record_key_wipe. */
struct record_key {
    uint16_t version;               /* 0x0303 or 0x0304 */
    uint8_t cipher;                 /* enum record_cipher */
    uint8_t explicit_nonce[8];      /* TLS 1.2 AES-GCM: the next one to send (RFC 5288 3) */
    uint8_t key[32];
    uint8_t iv[12];                 /* TLS 1.3 and ChaCha20: the whole; TLS 1.2 GCM: salt in the first 4 */
    uint64_t sequence;              /* of the next record */
};

void record_key_wipe(struct record_key *key);

/* Live cipher contexts of a worker, least recently used first out: an EVP AES-GCM context is 1.2 KB, a key 80 bytes. */
struct record_sealer;
struct record_slot;                 /* a context that is keyed for one connection at the moment */

/* At most `max_live` contexts. NULL when out of memory. */
struct record_sealer *record_sealer_create(unsigned max_live);
void record_sealer_destroy(struct record_sealer *sealer);

/*
 * Seals one record of at most LIMIT_RECORD_PLAINTEXT bytes, gathered from `parts`, into `into` (room for the plaintext
 * and RECORD_OVERHEAD): RFC 8446 5.2, RFC 5246 6.2.3.3 with RFC 5288 and RFC 7905. `*slot` is the
 * connection's hint, NULL at first; the sealer may take it away at any time. Plaintext may already lie in place
 * at into + record_head(key). Returns the record's length; -EMSGSIZE, -ENOMEM, or -EKEYEXPIRED past LIMIT_RECORDS_PER_KEY.
 */
MUST_CHECK ssize_t record_seal(struct record_sealer *sealer, struct record_key *key, struct record_slot **slot, uint8_t type,
                               const struct iovec *parts, int count, char *into);
/* Bytes before the ciphertext: 5, or 13 with an explicit nonce. */
size_t record_head(const struct record_key *key);
/* Bytes that sealing adds to a record under this key. */
size_t record_overhead(const struct record_key *key);
/* Gives the connection's live context back (wiped). Accepts a NULL slot. */
void record_release(struct record_sealer *sealer, struct record_slot **slot);

#endif
