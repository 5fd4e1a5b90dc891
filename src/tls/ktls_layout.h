/*
 * Conversion of a key to and from the structs of linux/tls.h, which OpenSSL passes to a BIO and the kernel accepts.
 * Only this file uses these structs. Private to tls/.
 */
#ifndef TLS_KTLS_LAYOUT_H
#define TLS_KTLS_LAYOUT_H

#include "tls/record.h"

#include <linux/tls.h>

union ktls_key {
    struct tls_crypto_info head;
    struct tls12_crypto_info_aes_gcm_128 aes_128_gcm;
    struct tls12_crypto_info_aes_gcm_256 aes_256_gcm;
    struct tls12_crypto_info_chacha20_poly1305 chacha20_poly1305;
};

/* Reads an offered key. 0, or -EINVAL for a version or cipher that record.c does not implement: it is declined. */
MUST_CHECK int ktls_key_read(const void *offered, struct record_key *out_key);

/*
 * Writes the key with its current sequence number and nonce; the caller wipes it. Returns the length, or 0 for an
 * unknown cipher.
 */
size_t ktls_key_write(const struct record_key *key, union ktls_key *out_layout);

#endif
