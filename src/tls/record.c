/*
 * Keeps EVP contexts keyed between records, so that a record costs a new IV and not a key schedule. With more
 * connections than contexts, the least recently used context is rekeyed.
 */
#include "tls/record.h"

#include "base/limits.h"

#include <endian.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdlib.h>

enum { HEADER = 5, EXPLICIT_NONCE = 8, TAG = 16, AAD_MAX = 13, LAST_WORDS = 16, BLOCK = 16 };

struct cipher_context {
    struct list node;            /* in cache->used, least recently used first, or in cache->spare */
    struct cipher_context **holder; /* the connection's pointer to this context; NULL: spare */
    EVP_CIPHER_CTX *sealing;     /* owned */
    uint8_t cipher;              /* the cipher of the current key */
    uint8_t key[32];
};

struct cipher_context_cache {
    struct list used;
    struct list spare;
    EVP_CIPHER *ciphers[RECORD_CHACHA20_POLY1305 + 1]; /* owned; NULL where OpenSSL lacks it */
    bool whole_nonce[RECORD_CHACHA20_POLY1305 + 1];    /* see accepts_whole_nonce */
    unsigned live;
    unsigned max_live;
};

/*
 * OpenSSL's default GCM accepts the nonce as a parameter and seals no further record until it gets a new one. Other
 * providers may behave differently: they get the nonce by an init call.
 */
static bool accepts_whole_nonce(const EVP_CIPHER *cipher)
{
    const OSSL_PROVIDER *provider = cipher ? EVP_CIPHER_get0_provider(cipher) : NULL;
    const char *name = provider ? OSSL_PROVIDER_get0_name(provider) : "";

    return strcmp(name, "default") == 0 || strcmp(name, "fips") == 0;
}

struct cipher_context_cache *cipher_context_cache_create(unsigned max_live)
{
    struct cipher_context_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return NULL;
    list_init(&cache->used);
    list_init(&cache->spare);
    cache->max_live = max_live ? max_live : 1;
    cache->ciphers[RECORD_AES_128_GCM] = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    cache->ciphers[RECORD_AES_256_GCM] = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    cache->ciphers[RECORD_CHACHA20_POLY1305] = EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
    for (unsigned i = RECORD_AES_128_GCM; i <= RECORD_AES_256_GCM; i++)
        cache->whole_nonce[i] = accepts_whole_nonce(cache->ciphers[i]);
    ERR_clear_error();
    return cache;
}

static void cipher_context_free(struct cipher_context *context)
{
    EVP_CIPHER_CTX_free(context->sealing);
    OPENSSL_cleanse(context->key, sizeof(context->key));
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
    for (size_t i = 0; i < sizeof(cache->ciphers) / sizeof(cache->ciphers[0]); i++)
        EVP_CIPHER_free(cache->ciphers[i]);
    free(cache);
}

void record_release(struct cipher_context_cache *cache, struct cipher_context **context)
{
    struct cipher_context *released = *context;

    if (!released)
        return;
    *context = NULL;
    list_remove(&released->node);
    /* Reset wipes the key schedule and frees 1.2 KB; the empty context is kept. */
    EVP_CIPHER_CTX_reset(released->sealing);
    OPENSSL_cleanse(released->key, sizeof(released->key));
    released->cipher = RECORD_NONE;
    released->holder = NULL;
    list_push(&cache->spare, &released->node);
}

static struct cipher_context *cipher_context_create(struct cipher_context_cache *cache)
{
    struct cipher_context *context = calloc(1, sizeof(*context));

    if (!context)
        return NULL;
    context->sealing = EVP_CIPHER_CTX_new();
    if (!context->sealing) {
        ERR_clear_error();
        free(context);
        return NULL;
    }
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
    const EVP_CIPHER *cipher = context->cipher == key->cipher ? NULL : cache->ciphers[key->cipher];

    context->cipher = RECORD_NONE;
    if (EVP_EncryptInit_ex(context->sealing, cipher, NULL, key->key, NULL) != 1) {
        ERR_clear_error();
        return false;
    }
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
static void write_nonce(const struct record_key *key, uint8_t nonce[12])
{
    memcpy(nonce, key->iv, 12);
    if (explicit_nonce(key)) {
        memcpy(nonce + 4, key->explicit_nonce, EXPLICIT_NONCE);
        return;
    }
    uint64_t last;
    memcpy(&last, nonce + 4, sizeof(last));
    last ^= htobe64(key->sequence);
    memcpy(nonce + 4, &last, sizeof(last));
}

static bool encrypt_part(EVP_CIPHER_CTX *sealing, uint8_t *into, const void *from, size_t length)
{
    int written;

    return length == 0 || EVP_EncryptUpdate(sealing, into, &written, from, (int)length) == 1;
}

/*
 * Encrypts the parts one after the other, and `inner` (0: none) as the last byte. In-place plaintext gets it
 * appended. Otherwise whole cipher blocks are encrypted directly from the last part, and its rest is copied beside
 * the inner type, so that no block is split.
 */
static uint8_t *encrypt_parts(EVP_CIPHER_CTX *sealing, uint8_t inner, const struct iovec *parts, int count,
                              uint8_t *into)
{
    for (int i = 0; i < count; i++) {
        size_t straight = parts[i].iov_len;

        if (inner && i == count - 1 && into == parts[i].iov_base) {
            into[straight] = inner;
            return encrypt_part(sealing, into, into, straight + 1) ? into + straight + 1 : NULL;
        }
        if (inner && i == count - 1)
            straight -= straight % BLOCK;
        if (!encrypt_part(sealing, into, parts[i].iov_base, straight))
            return NULL;
        into += straight;
        size_t rest = parts[i].iov_len - straight;
        if (rest && into != (uint8_t *)parts[i].iov_base + straight)
            memcpy(into, (uint8_t *)parts[i].iov_base + straight, rest);
        if (inner && i == count - 1) {
            into[rest] = inner;
            if (!encrypt_part(sealing, into, into, rest + 1))
                return NULL;
            into += rest + 1;
        }
    }
    if (inner && count == 0) {
        *into = inner;
        return encrypt_part(sealing, into, into, 1) ? into + 1 : NULL;
    }
    return into;
}

/* Sets the next nonce. Length -1 means the whole: an init call would first query the nonce length by name. */
static bool set_nonce(const struct cipher_context_cache *cache, const struct cipher_context *context, uint8_t nonce[12])
{
    OSSL_PARAM whole[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, nonce, (size_t)-1),
                          OSSL_PARAM_construct_end()};

    if (!cache->whole_nonce[context->cipher])
        return EVP_EncryptInit_ex(context->sealing, NULL, NULL, NULL, nonce) == 1;
    return EVP_CIPHER_CTX_set_params(context->sealing, whole) == 1;
}

/* Reads the tag by its parameter: EVP_CTRL_AEAD_GET_TAG does the same indirectly. */
static bool write_tag(EVP_CIPHER_CTX *sealing, uint8_t *into)
{
    OSSL_PARAM tag[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, into, TAG),
                        OSSL_PARAM_construct_end()};

    return EVP_CIPHER_CTX_get_params(sealing, tag) == 1;
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

    if (key->cipher == RECORD_NONE || key->cipher > RECORD_CHACHA20_POLY1305 || !cache->ciphers[key->cipher])
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
    uint8_t aad[AAD_MAX], nonce[12], *start = (uint8_t *)into, *end;
    size_t length;
    int error = seal_check(cache, key, type), written;

    if (error < 0)
        return error;
    if (!gather_length(parts, count, &length))
        return -EMSGSIZE;
    struct cipher_context *context = cipher_context_for(cache, key, hint);
    if (!context)
        return -ENOMEM;
    size_t aad_length = write_head(key, type, length, start, aad);
    write_nonce(key, nonce);
    end = start + record_head(key);
    if (!set_nonce(cache, context, nonce) ||
        EVP_EncryptUpdate(context->sealing, NULL, &written, aad, (int)aad_length) != 1 ||
        !(end = encrypt_parts(context->sealing, key->version == RECORD_TLS_1_3 ? type : 0, parts, count, end)) ||
        EVP_EncryptFinal_ex(context->sealing, end, &written) != 1 || !write_tag(context->sealing, end)) {
        ERR_clear_error();
        record_release(cache, hint);
        return -ENOMEM;
    }
    advance_sequence(key);
    return end + TAG - start;
}
