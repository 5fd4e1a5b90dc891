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

struct record_slot {
    struct list node;            /* in sealer->used, least recently used first, or in sealer->spare */
    struct record_slot **holder; /* the connection's pointer to this context; NULL: spare */
    EVP_CIPHER_CTX *sealing;     /* owned */
    uint8_t cipher;              /* the cipher of the current key */
    uint8_t key[32];
};

struct record_sealer {
    struct list used;
    struct list spare;
    EVP_CIPHER *ciphers[RECORD_CHACHA20_POLY1305 + 1]; /* owned; NULL where OpenSSL lacks it */
    bool whole_nonce[RECORD_CHACHA20_POLY1305 + 1];    /* see takes_whole_nonce */
    unsigned live;
    unsigned max_live;
};

/*
 * OpenSSL's default GCM accepts the nonce as a parameter and seals no further record until it gets a new one. Other
 * providers may behave differently: they get the nonce by an init call.
 */
static bool takes_whole_nonce(const EVP_CIPHER *cipher)
{
    const OSSL_PROVIDER *provider = cipher ? EVP_CIPHER_get0_provider(cipher) : NULL;
    const char *name = provider ? OSSL_PROVIDER_get0_name(provider) : "";

    return strcmp(name, "default") == 0 || strcmp(name, "fips") == 0;
}

struct record_sealer *record_sealer_create(unsigned max_live)
{
    struct record_sealer *sealer = calloc(1, sizeof(*sealer));

    if (!sealer)
        return NULL;
    list_init(&sealer->used);
    list_init(&sealer->spare);
    sealer->max_live = max_live ? max_live : 1;
    sealer->ciphers[RECORD_AES_128_GCM] = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    sealer->ciphers[RECORD_AES_256_GCM] = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    sealer->ciphers[RECORD_CHACHA20_POLY1305] = EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
    for (unsigned i = RECORD_AES_128_GCM; i <= RECORD_AES_256_GCM; i++)
        sealer->whole_nonce[i] = takes_whole_nonce(sealer->ciphers[i]);
    ERR_clear_error();
    return sealer;
}

static void slot_free(struct record_slot *slot)
{
    EVP_CIPHER_CTX_free(slot->sealing);
    OPENSSL_cleanse(slot->key, sizeof(slot->key));
    free(slot);
}

static void slots_free(struct list *slots)
{
    struct list *node;

    while ((node = list_pop(slots))) {
        struct record_slot *slot = container_of(node, struct record_slot, node);
        if (slot->holder)
            *slot->holder = NULL;
        slot_free(slot);
    }
}

void record_sealer_destroy(struct record_sealer *sealer)
{
    if (!sealer)
        return;
    slots_free(&sealer->used);
    slots_free(&sealer->spare);
    for (size_t i = 0; i < sizeof(sealer->ciphers) / sizeof(sealer->ciphers[0]); i++)
        EVP_CIPHER_free(sealer->ciphers[i]);
    free(sealer);
}

void record_release(struct record_sealer *sealer, struct record_slot **slot)
{
    struct record_slot *released = *slot;

    if (!released)
        return;
    *slot = NULL;
    list_remove(&released->node);
    /* Reset wipes the key schedule and frees 1.2 KB; the empty context is kept. */
    EVP_CIPHER_CTX_reset(released->sealing);
    OPENSSL_cleanse(released->key, sizeof(released->key));
    released->cipher = RECORD_NONE;
    released->holder = NULL;
    list_push(&sealer->spare, &released->node);
}

static struct record_slot *slot_create(struct record_sealer *sealer)
{
    struct record_slot *slot = calloc(1, sizeof(*slot));

    if (!slot)
        return NULL;
    slot->sealing = EVP_CIPHER_CTX_new();
    if (!slot->sealing) {
        ERR_clear_error();
        free(slot);
        return NULL;
    }
    list_init(&slot->node);
    sealer->live++;
    return slot;
}

/* Takes a context: a spare one, a new one, or the least recently used. */
static struct record_slot *slot_take(struct record_sealer *sealer)
{
    struct list *node = list_pop(&sealer->spare);

    if (!node && sealer->live < sealer->max_live) {
        struct record_slot *created = slot_create(sealer);
        if (created)
            return created;
    }
    if (!node)
        node = list_pop(&sealer->used);
    if (!node)
        return NULL;
    struct record_slot *slot = container_of(node, struct record_slot, node);
    if (slot->holder)
        *slot->holder = NULL;
    slot->holder = NULL;
    return slot;
}

static bool slot_rekey(struct record_sealer *sealer, struct record_slot *slot, const struct record_key *key)
{
    const EVP_CIPHER *cipher = slot->cipher == key->cipher ? NULL : sealer->ciphers[key->cipher];

    slot->cipher = RECORD_NONE;
    if (EVP_EncryptInit_ex(slot->sealing, cipher, NULL, key->key, NULL) != 1) {
        ERR_clear_error();
        return false;
    }
    slot->cipher = key->cipher;
    memcpy(slot->key, key->key, sizeof(slot->key));
    return true;
}

/* The connection's context with its key set. NULL when out of memory. */
static struct record_slot *slot_for(struct record_sealer *sealer, const struct record_key *key,
                                    struct record_slot **hint)
{
    struct record_slot *slot = *hint;

    if (!slot) {
        slot = slot_take(sealer);
        if (!slot)
            return NULL;
        slot->holder = hint;
        *hint = slot;
    }
    list_remove(&slot->node);
    list_push(&sealer->used, &slot->node);
    /* Comparing the 32 bytes ensures that a new key is never used with the old key schedule. */
    if (slot->cipher != key->cipher || memcmp(slot->key, key->key, sizeof(slot->key)) != 0) {
        if (!slot_rekey(sealer, slot, key)) {
            record_release(sealer, hint);
            return NULL;
        }
    }
    return slot;
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

static void put_be64(uint8_t *into, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        into[i] = (uint8_t)value;
}

static void put_header(uint8_t *into, uint8_t type, size_t length)
{
    into[0] = type;
    into[1] = 3;
    into[2] = 3;
    into[3] = (uint8_t)(length >> 8);
    into[4] = (uint8_t)length;
}

/* RFC 8446 5.3 and RFC 7905 2: iv xor sequence; RFC 5288 3: salt and explicit nonce. */
static void put_nonce(const struct record_key *key, uint8_t nonce[12])
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

static bool encrypt(EVP_CIPHER_CTX *sealing, uint8_t *into, const void *from, size_t length)
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
            return encrypt(sealing, into, into, straight + 1) ? into + straight + 1 : NULL;
        }
        if (inner && i == count - 1)
            straight -= straight % BLOCK;
        if (!encrypt(sealing, into, parts[i].iov_base, straight))
            return NULL;
        into += straight;
        size_t rest = parts[i].iov_len - straight;
        if (rest && into != (uint8_t *)parts[i].iov_base + straight)
            memcpy(into, (uint8_t *)parts[i].iov_base + straight, rest);
        if (inner && i == count - 1) {
            into[rest] = inner;
            if (!encrypt(sealing, into, into, rest + 1))
                return NULL;
            into += rest + 1;
        }
    }
    if (inner && count == 0) {
        *into = inner;
        return encrypt(sealing, into, into, 1) ? into + 1 : NULL;
    }
    return into;
}

/* Sets the next nonce. Length -1 means the whole: an init call would first query the nonce length by name. */
static bool begin(const struct record_sealer *sealer, const struct record_slot *slot, uint8_t nonce[12])
{
    OSSL_PARAM whole[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, nonce, (size_t)-1),
                          OSSL_PARAM_construct_end()};

    if (!sealer->whole_nonce[slot->cipher])
        return EVP_EncryptInit_ex(slot->sealing, NULL, NULL, NULL, nonce) == 1;
    return EVP_CIPHER_CTX_set_params(slot->sealing, whole) == 1;
}

/* Reads the tag by its parameter: EVP_CTRL_AEAD_GET_TAG does the same indirectly. */
static bool put_tag(EVP_CIPHER_CTX *sealing, uint8_t *into)
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

static int seal_check(const struct record_sealer *sealer, const struct record_key *key, uint8_t type)
{
    uint64_t limit = LIMIT_RECORDS_PER_KEY + (type == RECORD_APPLICATION_DATA ? 0 : LAST_WORDS);

    if (key->cipher == RECORD_NONE || key->cipher > RECORD_CHACHA20_POLY1305 || !sealer->ciphers[key->cipher])
        return -EINVAL;
    if (key->version != RECORD_TLS_1_2 && key->version != RECORD_TLS_1_3)
        return -EINVAL;
    return key->sequence >= limit ? -EKEYEXPIRED : 0;
}

/* Writes header and explicit nonce, and returns the additional data: RFC 8446 5.2 (the header), RFC 5246 6.2.3.3. */
static size_t put_head(const struct record_key *key, uint8_t type, size_t length, uint8_t *into,
                       uint8_t aad[AAD_MAX])
{
    if (key->version == RECORD_TLS_1_3) {
        put_header(into, RECORD_APPLICATION_DATA, length + 1 + TAG);
        memcpy(aad, into, HEADER);
        return HEADER;
    }
    put_header(into, type, length + record_overhead(key) - HEADER);
    if (explicit_nonce(key))
        memcpy(into + HEADER, key->explicit_nonce, EXPLICIT_NONCE);
    put_be64(aad, key->sequence);
    put_header(aad + 8, type, length);
    return AAD_MAX;
}

static void step(struct record_key *key)
{
    key->sequence++;
    for (int i = EXPLICIT_NONCE - 1; explicit_nonce(key) && i >= 0; i--)
        if (++key->explicit_nonce[i] != 0)
            break;
}

ssize_t record_seal(struct record_sealer *sealer, struct record_key *key, struct record_slot **hint,
                    uint8_t type, const struct iovec *parts, int count, char *into)
{
    uint8_t aad[AAD_MAX], nonce[12], *start = (uint8_t *)into, *end;
    size_t length;
    int error = seal_check(sealer, key, type), written;

    if (error < 0)
        return error;
    if (!gather_length(parts, count, &length))
        return -EMSGSIZE;
    struct record_slot *slot = slot_for(sealer, key, hint);
    if (!slot)
        return -ENOMEM;
    size_t aad_length = put_head(key, type, length, start, aad);
    put_nonce(key, nonce);
    end = start + record_head(key);
    if (!begin(sealer, slot, nonce) ||
        EVP_EncryptUpdate(slot->sealing, NULL, &written, aad, (int)aad_length) != 1 ||
        !(end = encrypt_parts(slot->sealing, key->version == RECORD_TLS_1_3 ? type : 0, parts, count, end)) ||
        EVP_EncryptFinal_ex(slot->sealing, end, &written) != 1 || !put_tag(slot->sealing, end)) {
        ERR_clear_error();
        record_release(sealer, hint);
        return -ENOMEM;
    }
    step(key);
    return end + TAG - start;
}
