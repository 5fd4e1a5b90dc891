/*
 * The cipher contexts of a worker: expanded keys that record_seal and record_open use. Private to tls/.
 */
#ifndef TLS_CIPHER_CONTEXT_H
#define TLS_CIPHER_CONTEXT_H

#include "tls/aead.h"

struct cipher_context {
    struct list node;               /* in cache->used, least recently used first, or in cache->spare */
    struct cipher_context **holder; /* the connection's pointer to this context; NULL: spare */
    struct aead *aead;              /* the engine of `expanded`; not owned */
    void *expanded;                 /* owned; NULL: no key */
    uint8_t cipher;                 /* of the current key; RECORD_NONE: `expanded` is not usable */
    bool decrypts;                  /* the direction of the current key */
    uint8_t key[32];
};

/*
 * Returns the connection's context of one direction, `*hint`, with `key` set; NULL when out of memory. `*hint` is NULL
 * at first, and becomes NULL when the cache evicts the context.
 */
struct cipher_context *cipher_context_for(struct cipher_context_cache *cache, const struct record_key *key,
                                          bool decrypts, struct cipher_context **hint);

/* True if an engine implements the cipher. */
bool cipher_context_cache_has(const struct cipher_context_cache *cache, uint8_t cipher);

#endif
