/*
 * Keeps expanded keys between records, so that a record needs a new nonce but no key schedule. With more connections
 * than contexts, the least recently used context is rekeyed.
 */
#include "tls/cipher_context.h"

#include "base/limits.h"
#include "tls/aead_choice.h"

#include <openssl/crypto.h>
#include <stdlib.h>

struct cipher_context_cache {
    struct list used;
    struct list spare;
    struct aead *engines[AEAD_KINDS];    /* owned; NULL: not used */
    struct aead *by_cipher[RECORD_CIPHERS]; /* the chosen one; NULL: none has the cipher */
    unsigned count;
    unsigned max_count;
};

/* OpenSSL replaces an engine that cannot be opened or lacks the cipher. */
static void open_engine(struct cipher_context_cache *cache, uint8_t cipher, enum aead_kind kind)
{
    if (!cache->engines[kind])
        cache->engines[kind] = aead_open(kind);
    if (cache->engines[kind] && cache->engines[kind]->has[cipher])
        cache->by_cipher[cipher] = cache->engines[kind];
    else if (kind != AEAD_OPENSSL)
        open_engine(cache, cipher, AEAD_OPENSSL);
}

/* The contexts of the engine with the largest keys must fit into LIMIT_CIPHER_BYTES. */
static unsigned count_that_fits(const struct cipher_context_cache *cache, unsigned max_count)
{
    size_t largest = 1;

    for (unsigned kind = 0; kind < AEAD_KINDS; kind++) {
        if (cache->engines[kind] && cache->engines[kind]->key_size > largest)
            largest = cache->engines[kind]->key_size;
    }
    if (max_count > LIMIT_CIPHER_BYTES / largest)
        max_count = (unsigned)(LIMIT_CIPHER_BYTES / largest);
    return max_count ? max_count : 1;
}

struct cipher_context_cache *cipher_context_cache_create(unsigned max_count, const struct aead_choice *choice)
{
    struct cipher_context_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return NULL;
    list_init(&cache->used);
    list_init(&cache->spare);
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
        open_engine(cache, cipher, choice ? choice->kind[cipher] : AEAD_OPENSSL);
    cache->max_count = count_that_fits(cache, max_count);
    return cache;
}

bool cipher_context_cache_has(const struct cipher_context_cache *cache, uint8_t cipher)
{
    return cipher < RECORD_CIPHERS && cache->by_cipher[cipher];
}

/* Wipes the key, and frees its memory. */
static void cipher_context_clear(struct cipher_context *context)
{
    if (context->expanded)
        context->aead->engine->key_free(context->expanded);
    context->expanded = NULL;
    context->aead = NULL;
    context->cipher = RECORD_NONE;
    OPENSSL_cleanse(context->key, sizeof(context->key));
}

static void cipher_context_free(struct cipher_context *context)
{
    cipher_context_clear(context);
    free(context);
}

static void cipher_contexts_free(struct list *contexts)
{
    struct list *node;

    while ((node = list_pop(contexts))) {
        struct cipher_context *context = container_of(node, struct cipher_context, node);
        if (context->holder)
            *context->holder = NULL;
        cipher_context_free(context);
    }
}

void cipher_context_cache_destroy(struct cipher_context_cache *cache)
{
    if (!cache)
        return;
    cipher_contexts_free(&cache->used);
    cipher_contexts_free(&cache->spare);
    for (unsigned kind = 0; kind < AEAD_KINDS; kind++)
        aead_close(cache->engines[kind]);
    free(cache);
}

void record_release(struct cipher_context_cache *cache, struct cipher_context **context)
{
    struct cipher_context *released = *context;

    if (!released)
        return;
    *context = NULL;
    list_remove(&released->node);
    cipher_context_clear(released);
    released->holder = NULL;
    list_push(&cache->spare, &released->node);
}

static struct cipher_context *cipher_context_create(struct cipher_context_cache *cache)
{
    struct cipher_context *context = calloc(1, sizeof(*context));

    if (!context)
        return NULL;
    list_init(&context->node);
    cache->count++;
    return context;
}

/* Takes a context: a spare one, a new one, or the least recently used. */
static struct cipher_context *cipher_context_acquire(struct cipher_context_cache *cache)
{
    struct list *node = list_pop(&cache->spare);

    if (!node && cache->count < cache->max_count) {
        struct cipher_context *created = cipher_context_create(cache);
        if (created)
            return created;
    }
    if (!node)
        node = list_pop(&cache->used);
    if (!node)
        return NULL;
    struct cipher_context *context = container_of(node, struct cipher_context, node);
    if (context->holder)
        *context->holder = NULL;
    context->holder = NULL;
    return context;
}

static bool cipher_context_rekey(struct cipher_context_cache *cache, struct cipher_context *context,
                                 const struct record_key *key, bool decrypts)
{
    struct aead *aead = cache->by_cipher[key->cipher];

    if (context->aead != aead)
        cipher_context_clear(context);
    context->aead = aead;
    context->cipher = RECORD_NONE;
    if (!aead->engine->key_set(aead, &context->expanded, key->cipher, decrypts, key->key))
        return false;
    context->cipher = key->cipher;
    context->decrypts = decrypts;
    memcpy(context->key, key->key, sizeof(context->key));
    return true;
}

static bool has_key(const struct cipher_context *context, const struct record_key *key, bool decrypts)
{
    return context->cipher == key->cipher && context->decrypts == decrypts &&
           memcmp(context->key, key->key, sizeof(context->key)) == 0;
}

struct cipher_context *cipher_context_for(struct cipher_context_cache *cache, const struct record_key *key,
                                          bool decrypts, struct cipher_context **hint)
{
    struct cipher_context *context = *hint;

    if (!context) {
        context = cipher_context_acquire(cache);
        if (!context)
            return NULL;
        context->holder = hint;
        *hint = context;
    }
    list_remove(&context->node);
    list_push(&cache->used, &context->node);
    /* Comparing the 32 bytes ensures that a new key is never used with the old key schedule. */
    if (!has_key(context, key, decrypts) && !cipher_context_rekey(cache, context, key, decrypts)) {
        record_release(cache, hint);
        return NULL;
    }
    return context;
}
