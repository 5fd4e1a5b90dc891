/*
 * Keeps expanded keys between records, so that a record needs a new nonce but no key schedule. With more connections
 * than contexts, the least recently used context is rekeyed. An AEAD engine encrypts.
 */
#include "tls/record.h"

#include "tls/aead_choice.h"

#include "base/limits.h"

#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>

enum { HEADER = 5, EXPLICIT_NONCE = 8, TAG = AEAD_TAG, AAD_MAX = 13, LAST_WORDS = 16 };

struct cipher_context {
    struct list node;            /* in cache->used, least recently used first, or in cache->spare */
    struct cipher_context **holder; /* the connection's pointer to this context; NULL: spare */
    struct aead *aead;           /* the engine of `expanded`; not owned */
    void *expanded;              /* owned; NULL: no key */
    uint8_t cipher;              /* of the current key; RECORD_NONE: `expanded` is not usable */
    uint8_t key[32];
};

struct cipher_context_cache {
    struct list used;
    struct list spare;
    struct aead *engines[AEAD_KINDS];    /* owned; NULL: not used */
    struct aead *by_cipher[RECORD_CIPHERS]; /* the chosen one; NULL: none has the cipher */
    unsigned live;
    unsigned max_live;
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
static unsigned count_that_fits(const struct cipher_context_cache *cache, unsigned max_live)
{
    size_t largest = 1;

    for (unsigned kind = 0; kind < AEAD_KINDS; kind++) {
        if (cache->engines[kind] && cache->engines[kind]->key_size > largest)
            largest = cache->engines[kind]->key_size;
    }
    if (max_live > LIMIT_CIPHER_BYTES / largest)
        max_live = (unsigned)(LIMIT_CIPHER_BYTES / largest);
    return max_live ? max_live : 1;
}

struct cipher_context_cache *cipher_context_cache_create(unsigned max_live, const struct aead_choice *choice)
{
    struct cipher_context_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return NULL;
    list_init(&cache->used);
    list_init(&cache->spare);
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
        open_engine(cache, cipher, choice ? choice->kind[cipher] : AEAD_OPENSSL);
    cache->max_live = count_that_fits(cache, max_live);
    return cache;
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
    cache->live++;
    return context;
}

/* Takes a context: a spare one, a new one, or the least recently used. */
static struct cipher_context *cipher_context_acquire(struct cipher_context_cache *cache)
{
    struct list *node = list_pop(&cache->spare);

    if (!node && cache->live < cache->max_live) {
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
                                 const struct record_key *key)
{
    struct aead *aead = cache->by_cipher[key->cipher];

    if (context->aead != aead)
        cipher_context_clear(context);
    context->aead = aead;
    context->cipher = RECORD_NONE;
    if (!aead->engine->key_set(aead, &context->expanded, key->cipher, key->key))
        return false;
    context->cipher = key->cipher;
    memcpy(context->key, key->key, sizeof(context->key));
    return true;
}

/* The connection's context with its key set. NULL when out of memory. */
static struct cipher_context *cipher_context_for(struct cipher_context_cache *cache, const struct record_key *key,
                                                 struct cipher_context **hint)
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
    if (context->cipher != key->cipher || memcmp(context->key, key->key, sizeof(context->key)) != 0) {
        if (!cipher_context_rekey(cache, context, key)) {
            record_release(cache, hint);
            return NULL;
        }
    }
    return context;
}

static bool explicit_nonce(const struct record_key *key)
{
    return key->version == RECORD_TLS_1_2 && key->cipher != RECORD_CHACHA20_POLY1305;
}

size_t record_head(const struct record_key *key)
{
    return explicit_nonce(key) ? HEADER + EXPLICIT_NONCE : HEADER;
}

size_t record_overhead(const struct record_key *key)
{
    return record_head(key) + TAG + (key->version == RECORD_TLS_1_3 ? 1 : 0);
}

static void write_be64(uint8_t *into, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        into[i] = (uint8_t)value;
}

static void write_header(uint8_t *into, uint8_t type, size_t length)
{
    into[0] = type;
    into[1] = 3;
    into[2] = 3;
    into[3] = (uint8_t)(length >> 8);
    into[4] = (uint8_t)length;
}

/* RFC 8446 5.3 and RFC 7905 2: iv xor sequence; RFC 5288 3: salt and explicit nonce. */
static void write_nonce(const struct record_key *key, uint8_t nonce[AEAD_NONCE])
{
    memcpy(nonce, key->iv, AEAD_NONCE);
    if (explicit_nonce(key)) {
        memcpy(nonce + 4, key->explicit_nonce, EXPLICIT_NONCE);
        return;
    }
    uint64_t last;
    memcpy(&last, nonce + 4, sizeof(last));
    last ^= htobe64(key->sequence);
    memcpy(nonce + 4, &last, sizeof(last));
}

static bool gather_length(const struct iovec *parts, int count, size_t *out_length)
{
    size_t length = 0;

    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > LIMIT_RECORD_PLAINTEXT - length)
            return false;
        length += parts[i].iov_len;
    }
    *out_length = length;
    return true;
}

static int seal_check(const struct cipher_context_cache *cache, const struct record_key *key, uint8_t type)
{
    uint64_t limit = LIMIT_RECORDS_PER_KEY + (type == RECORD_APPLICATION_DATA ? 0 : LAST_WORDS);

    if (key->cipher == RECORD_NONE || key->cipher >= RECORD_CIPHERS || !cache->by_cipher[key->cipher])
        return -EINVAL;
    if (key->version != RECORD_TLS_1_2 && key->version != RECORD_TLS_1_3)
        return -EINVAL;
    return key->sequence >= limit ? -EKEYEXPIRED : 0;
}

/* Writes header and explicit nonce, and returns the additional data: RFC 8446 5.2 (the header), RFC 5246 6.2.3.3. */
static size_t write_head(const struct record_key *key, uint8_t type, size_t length, uint8_t *into,
                         uint8_t aad[AAD_MAX])
{
    if (key->version == RECORD_TLS_1_3) {
        write_header(into, RECORD_APPLICATION_DATA, length + 1 + TAG);
        memcpy(aad, into, HEADER);
        return HEADER;
    }
    write_header(into, type, length + record_overhead(key) - HEADER);
    if (explicit_nonce(key))
        memcpy(into + HEADER, key->explicit_nonce, EXPLICIT_NONCE);
    write_be64(aad, key->sequence);
    write_header(aad + 8, type, length);
    return AAD_MAX;
}

static void advance_sequence(struct record_key *key)
{
    key->sequence++;
    for (int i = EXPLICIT_NONCE - 1; explicit_nonce(key) && i >= 0; i--)
        if (++key->explicit_nonce[i] != 0)
            break;
}

ssize_t record_seal(struct cipher_context_cache *cache, struct record_key *key, struct cipher_context **hint,
                    uint8_t type, const struct iovec *parts, int count, char *into)
{
    uint8_t aad[AAD_MAX], nonce[AEAD_NONCE], *start = (uint8_t *)into, *end;
    size_t length;
    int error = seal_check(cache, key, type);

    if (error < 0)
        return error;
    if (!gather_length(parts, count, &length))
        return -EMSGSIZE;
    struct cipher_context *context = cipher_context_for(cache, key, hint);
    if (!context)
        return -ENOMEM;
    struct aead_record record = {.parts = parts,
                                 .count = count,
                                 .cipher = key->cipher,
                                 .inner = key->version == RECORD_TLS_1_3 ? type : 0,
                                 .additional_length = (uint8_t)write_head(key, type, length, start, aad),
                                 .additional = aad,
                                 .nonce = nonce};
    write_nonce(key, nonce);
    end = context->aead->engine->seal(context->aead, context->expanded, &record, start + record_head(key));
    if (!end) {
        record_release(cache, hint);
        return -ENOMEM;
    }
    advance_sequence(key);
    return end - start;
}
