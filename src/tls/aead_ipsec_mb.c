/*
 * AES-GCM by ipsec-mb, Intel's multi-buffer library: its direct functions, which seal one record per call without a
 * job queue. Its manager (IMB_MGR) is needed only to choose the functions for this processor, and is freed then. A key
 * is the expanded key and the powers of the hash key.
 */
#include "tls/aead.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <stdlib.h>

/* Without these the library would use tables, whose timing depends on the key. */
#define REQUIRED_FEATURES (IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ)

struct functions {
    aes_gcm_pre_t expand;
    aes_gcm_enc_dec_t seal, decrypt;
    aes_gcm_init_t begin;
    aes_gcm_enc_dec_update_t update;
    aes_gcm_enc_dec_finalize_t finish;
};

struct ipsec_mb_aead {
    struct aead aead;
    struct functions functions[RECORD_CIPHERS]; /* of AES-GCM */
};

struct ipsec_mb_key {
    _Alignas(64) struct gcm_key_data
        key; /* the alignment that the library requires; its header declares it only where LINUX is defined */
    struct gcm_context_data progress; /* holds key stream of the last record */
};

static bool is_supported(const IMB_MGR *library)
{
    bool tested =
        !(library->features & IMB_FEATURE_SELF_TEST) || (library->features & IMB_FEATURE_SELF_TEST_PASS);

    return (library->features & REQUIRED_FEATURES) == REQUIRED_FEATURES && tested && library->gcm128_enc &&
           library->gcm256_enc && library->gcm128_dec && library->gcm256_dec;
}

static struct aead *ipsec_mb_open(void)
{
    struct ipsec_mb_aead *own = calloc(1, sizeof(*own));
    IMB_MGR *library = alloc_mb_mgr(0);

    if (library)
        init_mb_mgr_auto(library, NULL);
    if (!own || !library || !is_supported(library)) {
        if (library)
            free_mb_mgr(library);
        free(own);
        return NULL;
    }
    own->aead.engine = &aead_ipsec_mb;
    own->aead.has[RECORD_AES_128_GCM] = own->aead.has[RECORD_AES_256_GCM] = true;
    own->aead.key_size = sizeof(struct ipsec_mb_key);
    own->functions[RECORD_AES_128_GCM] =
        (struct functions){library->gcm128_pre, library->gcm128_enc, library->gcm128_dec, library->gcm128_init,
                           library->gcm128_enc_update, library->gcm128_enc_finalize};
    own->functions[RECORD_AES_256_GCM] =
        (struct functions){library->gcm256_pre, library->gcm256_enc, library->gcm256_dec, library->gcm256_init,
                           library->gcm256_enc_update, library->gcm256_enc_finalize};
    free_mb_mgr(library);
    return &own->aead;
}

static void ipsec_mb_close(struct aead *aead)
{
    free(container_of(aead, struct ipsec_mb_aead, aead));
}

/* One expanded key serves both directions. */
static bool ipsec_mb_key_set(struct aead *aead, void **key, uint8_t cipher, bool decrypts, const uint8_t *bytes)
{
    (void)decrypts;
    const struct ipsec_mb_aead *own = container_of(aead, struct ipsec_mb_aead, aead);
    struct ipsec_mb_key *expanded =
        *key ? *key : aligned_alloc(_Alignof(struct ipsec_mb_key), sizeof(*expanded));

    if (!expanded)
        return false;
    *key = expanded;
    own->functions[cipher].expand(bytes, &expanded->key);
    return true;
}

static void ipsec_mb_key_free(void *key)
{
    if (key)
        OPENSSL_cleanse(key, sizeof(struct ipsec_mb_key));
    free(key);
}

/* Seals by one call: plaintext in place, to which the content type is appended, or one part without a content type. */
static uint8_t *seal_whole(const struct functions *functions, struct ipsec_mb_key *key,
                           const struct aead_record *record, uint8_t *into)
{
    size_t length = record->parts[0].iov_len;

    if (record->inner)
        into[length++] = record->inner;
    functions->seal(&key->key, &key->progress, into, record->inner ? into : record->parts[0].iov_base, length,
                    record->nonce, record->additional, record->additional_length, into + length, AEAD_TAG);
    return into + length + AEAD_TAG;
}

static uint8_t *seal_parts(const struct functions *functions, struct ipsec_mb_key *key,
                           const struct aead_record *record, uint8_t *into)
{
    functions->begin(&key->key, &key->progress, record->nonce, record->additional, record->additional_length);
    for (int i = 0; i < record->count; i++) {
        const struct iovec *part = &record->parts[i];

        if (part->iov_len > 0)
            functions->update(&key->key, &key->progress, into, part->iov_base, part->iov_len);
        into += part->iov_len;
    }
    if (record->inner)
        functions->update(&key->key, &key->progress, into++, &record->inner, 1);
    functions->finish(&key->key, &key->progress, into, AEAD_TAG);
    return into + AEAD_TAG;
}

static uint8_t *ipsec_mb_seal(struct aead *aead, void *key, const struct aead_record *record, uint8_t *into)
{
    const struct ipsec_mb_aead *own = container_of(aead, struct ipsec_mb_aead, aead);
    const struct functions *functions = &own->functions[record->cipher];

    if (record->count == 1 && record->parts[0].iov_len > 0 &&
        (!record->inner || record->parts[0].iov_base == into))
        return seal_whole(functions, key, record, into);
    return seal_parts(functions, key, record, into);
}

static bool ipsec_mb_decrypt(struct aead *aead, void *key, const struct aead_sealed *sealed, uint8_t *into)
{
    const struct ipsec_mb_aead *own = container_of(aead, struct ipsec_mb_aead, aead);
    struct ipsec_mb_key *expanded = key;
    uint8_t tag[AEAD_TAG];

    own->functions[sealed->cipher].decrypt(&expanded->key, &expanded->progress, into, sealed->ciphertext,
                                           sealed->length, sealed->nonce, sealed->additional,
                                           sealed->additional_length, tag, AEAD_TAG);
    if (CRYPTO_memcmp(tag, sealed->ciphertext + sealed->length, AEAD_TAG) == 0)
        return true;
    OPENSSL_cleanse(into, sealed->length);
    return false;
}

const struct aead_engine aead_ipsec_mb = {
    .name = "ipsec-mb",
    .built = true,
    .open = ipsec_mb_open,
    .close = ipsec_mb_close,
    .key_set = ipsec_mb_key_set,
    .key_free = ipsec_mb_key_free,
    .seal = ipsec_mb_seal,
    .decrypt = ipsec_mb_decrypt,
};
