/*
 * AEAD by OpenSSL's EVP. A key is an EVP_CIPHER_CTX that keeps its key schedule, so that a record costs a new nonce
 * only.
 */
#include "tls/aead.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdlib.h>

enum { BLOCK = 16, CONTEXT_SIZE = 1200 }; /* measured with OpenSSL 3.0: EVP_CIPHER_CTX with AES-GCM */

struct openssl_aead {
    struct aead aead;
    EVP_CIPHER *ciphers[RECORD_CIPHERS]; /* owned; NULL where OpenSSL lacks it */
    bool whole_nonce[RECORD_CIPHERS];    /* see accepts_whole_nonce */
};

static const char *provider_name(const EVP_CIPHER *cipher)
{
    const OSSL_PROVIDER *provider = EVP_CIPHER_get0_provider(cipher);

    return provider ? OSSL_PROVIDER_get0_name(provider) : "";
}

/*
 * OpenSSL's default GCM accepts the nonce as a parameter and seals no further record until it gets a new one. Other
 * providers may behave differently: they get the nonce by an init call.
 */
static bool accepts_whole_nonce(uint8_t cipher, const char *provider)
{
    return cipher != RECORD_CHACHA20_POLY1305 &&
           (strcmp(provider, "default") == 0 || strcmp(provider, "fips") == 0);
}

static void fetch_cipher(struct openssl_aead *own, uint8_t cipher, const char *name)
{
    EVP_CIPHER *fetched = EVP_CIPHER_fetch(NULL, name, NULL);

    if (!fetched)
        return;
    own->ciphers[cipher] = fetched;
    own->aead.has[cipher] = true;
    own->aead.other_provider[cipher] = strcmp(provider_name(fetched), "default") != 0;
    own->whole_nonce[cipher] = accepts_whole_nonce(cipher, provider_name(fetched));
}

static struct aead *openssl_open(void)
{
    struct openssl_aead *own = calloc(1, sizeof(*own));

    if (!own)
        return NULL;
    own->aead.engine = &aead_openssl;
    own->aead.key_size = CONTEXT_SIZE;
    fetch_cipher(own, RECORD_AES_128_GCM, "AES-128-GCM");
    fetch_cipher(own, RECORD_AES_256_GCM, "AES-256-GCM");
    fetch_cipher(own, RECORD_CHACHA20_POLY1305, "ChaCha20-Poly1305");
    ERR_clear_error();
    return &own->aead;
}

static void openssl_close(struct aead *aead)
{
    struct openssl_aead *own = container_of(aead, struct openssl_aead, aead);

    for (size_t i = 0; i < RECORD_CIPHERS; i++)
        EVP_CIPHER_free(own->ciphers[i]);
    free(own);
}

/* OpenSSL reuses the allocations of a key under the same cipher. */
static bool openssl_key_set(struct aead *aead, void **key, uint8_t cipher, bool decrypts, const uint8_t *bytes)
{
    const struct openssl_aead *own = container_of(aead, struct openssl_aead, aead);
    EVP_CIPHER_CTX *context = *key ? *key : EVP_CIPHER_CTX_new();
    bool same = context && EVP_CIPHER_CTX_get0_cipher(context) == own->ciphers[cipher];

    *key = context;
    if (context && EVP_CipherInit_ex(context, same ? NULL : own->ciphers[cipher], NULL, bytes, NULL, !decrypts) == 1)
        return true;
    ERR_clear_error();
    return false;
}

static void openssl_key_free(void *key)
{
    EVP_CIPHER_CTX_free(key);
}

static bool encrypt_part(EVP_CIPHER_CTX *sealing, uint8_t *into, const void *from, size_t length)
{
    int written;

    return length == 0 || EVP_EncryptUpdate(sealing, into, &written, from, (int)length) == 1;
}

/*
 * Encrypts the parts one after the other, and `inner` (0: none) as the last byte. To plaintext in place `inner` is
 * appended. Otherwise whole cipher blocks are encrypted directly from the last part, and the rest of it is copied to
 * `into` before `inner`, so that no block is split.
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

/* Sets the next nonce. Length -1 means the whole nonce. An init call would first query the nonce length by name. */
static bool set_nonce(const struct openssl_aead *own, EVP_CIPHER_CTX *context, uint8_t cipher, uint8_t *nonce)
{
    OSSL_PARAM whole[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, nonce, (size_t)-1),
        OSSL_PARAM_construct_end()};

    if (!own->whole_nonce[cipher])
        return EVP_CipherInit_ex(context, NULL, NULL, NULL, nonce, -1) == 1;
    return EVP_CIPHER_CTX_set_params(context, whole) == 1;
}

/* Reads the tag by its parameter: EVP_CTRL_AEAD_GET_TAG does the same indirectly. */
static bool write_tag(EVP_CIPHER_CTX *sealing, uint8_t *into)
{
    OSSL_PARAM tag[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, into, AEAD_TAG),
                        OSSL_PARAM_construct_end()};

    return EVP_CIPHER_CTX_get_params(sealing, tag) == 1;
}

static uint8_t *openssl_seal(struct aead *aead, void *key, const struct aead_record *record, uint8_t *into)
{
    const struct openssl_aead *own = container_of(aead, struct openssl_aead, aead);
    uint8_t *end = into;
    int written;

    if (set_nonce(own, key, record->cipher, record->nonce) &&
        EVP_EncryptUpdate(key, NULL, &written, record->additional, record->additional_length) == 1 &&
        (end = encrypt_parts(key, record->inner, record->parts, record->count, into)) &&
        EVP_EncryptFinal_ex(key, end, &written) == 1 && write_tag(key, end))
        return end + AEAD_TAG;
    ERR_clear_error();
    return NULL;
}

/* The tag is set before the data: Poly1305 of OpenSSL compares at the end of the data. */
static bool set_tag(EVP_CIPHER_CTX *context, const uint8_t *tag)
{
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, (void *)(uintptr_t)tag, AEAD_TAG),
        OSSL_PARAM_construct_end()};

    return EVP_CIPHER_CTX_set_params(context, parameters) == 1;
}

static bool openssl_decrypt(struct aead *aead, void *key, const struct aead_sealed *sealed, uint8_t *into)
{
    const struct openssl_aead *own = container_of(aead, struct openssl_aead, aead);
    int written;

    if (set_nonce(own, key, sealed->cipher, sealed->nonce) && set_tag(key, sealed->ciphertext + sealed->length) &&
        EVP_DecryptUpdate(key, NULL, &written, sealed->additional, sealed->additional_length) == 1 &&
        (sealed->length == 0 || EVP_DecryptUpdate(key, into, &written, sealed->ciphertext, (int)sealed->length) == 1) &&
        EVP_DecryptFinal_ex(key, into + sealed->length, &written) == 1)
        return true;
    OPENSSL_cleanse(into, sealed->length);
    ERR_clear_error();
    return false;
}

const struct aead_engine aead_openssl = {
    .name = "openssl",
    .built = true,
    .open = openssl_open,
    .close = openssl_close,
    .key_set = openssl_key_set,
    .key_free = openssl_key_free,
    .seal = openssl_seal,
    .decrypt = openssl_decrypt,
};
