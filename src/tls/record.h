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

enum record_version { RECORD_TLS_1_2 = 0x0303, RECORD_TLS_1_3 = 0x0304 };

#define RECORD_OVERHEAD 29          /* most bytes that a record adds: header 5, explicit nonce 8 or inner type 1, tag 16 */
#define RECORD_HEAD_MAX 13          /* the largest record_head() */
#define RECORD_SECRET_MAX 48        /* a TLS 1.3 traffic secret: SHA-256 or SHA-384 */

/* The write key of one connection: 64 bytes, wiped by record_key_wipe. */
struct record_key {
    uint16_t version;               /* enum record_version */
    uint8_t cipher;                 /* enum record_cipher */
    uint8_t explicit_nonce[8];      /* TLS 1.2 AES-GCM: the next one to send (RFC 5288 3) */
    uint8_t key[32];
    uint8_t iv[12];                 /* TLS 1.3 and ChaCha20: the whole; TLS 1.2 GCM: salt in the first 4 */
    uint64_t sequence;              /* of the next record */
};

_Static_assert(sizeof(struct record_key) == 64, "every connection keeps one");

/* Forgets the key beyond recovery. Accepts a zeroed one. */
void record_key_wipe(struct record_key *key);

/* Bytes of `key` that the cipher uses: 16 or 32; 0 for RECORD_NONE. */
size_t record_key_length(uint8_t cipher);

/*
 * The TLS 1.3 write key of a traffic secret (RFC 8446 7.3: HKDF-Expand-Label with "key" and "iv"), sequence 0. The hash is
 * SHA-384 for AES-256-GCM and SHA-256 for the others. 0, -EINVAL (a secret of the wrong length, an unknown
 * cipher) or -ENOMEM. The secret stays the caller's to wipe.
 */
MUST_CHECK int record_key_derive(uint8_t cipher, struct str secret, struct record_key *out_key);

/* Live cipher contexts of a worker, least recently used first out: an EVP AES-GCM context is 1.2 KB, a key 64 bytes. */
struct record_sealer;
struct record_slot;                 /* a context that is keyed for one connection at the moment */

/* At most `max_live` contexts (at least 1), each made when it is first needed. NULL when out of memory. */
struct record_sealer *record_sealer_create(unsigned max_live);
/* Wipes and frees every context; slots still given out become NULL. Accepts NULL. */
void record_sealer_destroy(struct record_sealer *sealer);

/*
 * Seals one record of at most LIMIT_RECORD_PLAINTEXT bytes, gathered from `parts`, into `into` (room for the plaintext
 * and record_overhead()): RFC 8446 5.2, RFC 5246 6.2.3.3 with RFC 5288 and RFC 7905. `*slot` is the
 * connection's hint, NULL at first; the sealer may take it away at any time, so its address must not change until
 * record_release. Plaintext may already lie in place: one part at into + record_head(key); parts may not overlap
 * `into` otherwise. A new key in `*key` is noticed by itself. Each success takes one sequence number
 * and, in TLS 1.2 AES-GCM, one explicit nonce; a failure takes none.
 * Returns the record's length; -EMSGSIZE, -ENOMEM, -EINVAL (no such version and cipher), or -EKEYEXPIRED past
 * LIMIT_RECORDS_PER_KEY (alerts and handshake messages have a few more, so that the connection can still end or rekey).
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
