/*
 * AEAD engines: implementations of the ciphers that seal and decrypt records, with one interface. OpenSSL implements
 * every cipher; ipsec-mb (Intel's multi-buffer library, amd64) implements AES-GCM. An opened engine has one owner, such
 * as the cache of cipher contexts of a worker; engines share no state.
 */
#ifndef TLS_AEAD_H
#define TLS_AEAD_H

#include "tls/record.h"

#include <stdbool.h>

#define AEAD_NONCE 12
#define AEAD_TAG   16

enum aead_kind { AEAD_OPENSSL, AEAD_IPSEC_MB, AEAD_KINDS };

/* One record to seal. */
struct aead_record {
    /* The plaintext: the first part may be in place, others do not overlap the output. */
    const struct iovec *parts;
    int count;
    uint8_t cipher;                 /* that of the key */
    uint8_t inner;                  /* content type appended to the plaintext (RFC 8446 5.2); 0: none */
    uint8_t additional_length;
    const uint8_t *additional;      /* additional data */
    uint8_t *nonce;                 /* AEAD_NONCE bytes */
};

/* One record to decrypt. */
struct aead_sealed {
    const uint8_t *ciphertext;
    size_t length;          /* without the tag, which follows */
    uint8_t cipher;         /* that of the key */
    uint8_t additional_length;
    const uint8_t *additional;
    uint8_t *nonce;         /* AEAD_NONCE bytes */
};

/* An opened engine: the first member of the struct of its implementation. */
struct aead {
    const struct aead_engine *engine;
    bool has[RECORD_CIPHERS];               /* the ciphers that it implements on this machine */
    bool other_provider[RECORD_CIPHERS];    /* OpenSSL: by a provider other than the default one, for instance FIPS */
    size_t key_size;                        /* approximate memory of one key, in bytes */
};

struct aead_engine {
    const char *name;               /* the value of `ssl_aead` */
    bool built;
    /* Opens the engine. NULL: out of memory, or the processor lacks its instructions. */
    struct aead *(*open)(void);
    /* Frees the engine; its keys were freed before. */
    void (*close)(struct aead *aead);
    /* Expands a key for one direction; replaces `*key`, a key of this engine, or NULL. False: out of memory. */
    bool (*key_set)(struct aead *aead, void **key, uint8_t cipher, bool decrypts, const uint8_t *bytes);
    /* Wipes and frees. Accepts NULL. */
    void (*key_free)(void *key);
    /* Writes ciphertext and tag. Returns the end of the tag, or NULL (OpenSSL failed). */
    uint8_t *(*seal)(struct aead *aead, void *key, const struct aead_record *record, uint8_t *into);
    /*
     * Writes the plaintext (same length; `into` is the ciphertext itself or does not overlap it). False: the tag is
     * wrong, and `into` is wiped.
     */
    bool (*decrypt)(struct aead *aead, void *key, const struct aead_sealed *sealed, uint8_t *into);
};

extern const struct aead_engine aead_openssl, aead_ipsec_mb;

/* The table of functions of a kind; `built` is false without the library. */
const struct aead_engine *aead_engine(enum aead_kind kind);
/* Opens an engine: NULL if it is not built, does not run on this processor, or memory is short. */
struct aead *aead_open(enum aead_kind kind);
/* Accepts NULL. */
void aead_close(struct aead *aead);

#endif
