/* Records sealed and decrypted by each engine: known answers, equality with OpenSSL, freed keys. */
#include "base/limits.h"
#include "hex.h"
#include "tls/aead_choice.h"

#include "../runner.h"

#include <malloc.h>
#include <openssl/evp.h>

/* Every engine with every cipher: the loops of the tests run over the product. */
enum { PAIRS = AEAD_KINDS * RECORD_CIPHERS };

static uint8_t into[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD], expected[sizeof(into)],
    text[LIMIT_RECORD_PLAINTEXT];

/* NULL if this engine does not serve the cipher here; OpenSSL must serve all. */
static struct aead *open_pair(int pair, uint8_t *out_cipher)
{
    enum aead_kind kind = (enum aead_kind)(pair / RECORD_CIPHERS);
    struct aead *aead = aead_open(kind);

    *out_cipher = (uint8_t)(pair % RECORD_CIPHERS);
    if (kind == AEAD_OPENSSL)
        ck_assert_ptr_nonnull(aead);
    if (aead && aead->has[*out_cipher])
        return aead;
    ck_assert(kind != AEAD_OPENSSL || *out_cipher == RECORD_NONE);
    aead_close(aead);
    return NULL;
}

START_TEST(engine_gives_the_known_answers)
{
    uint8_t cipher;
    struct aead *aead = open_pair(_i, &cipher);

    if (!aead)
        return;
    ck_assert(aead_test(aead, cipher));
    aead_close(aead);
}
END_TEST

/* The GCM specification (McGrew, Viega), test cases 1 to 4 and 13 to 16: those with 96-bit nonces. */
static const struct vector {
    uint8_t cipher;
    const char *key, *nonce, *additional, *plaintext, *ciphertext, *tag;
} vectors[] = {
    {RECORD_AES_128_GCM, "00000000000000000000000000000000", "000000000000000000000000", "", "", "",
     "58e2fccefa7e3061367f1d57a4e7455a"},
    {RECORD_AES_128_GCM, "00000000000000000000000000000000", "000000000000000000000000", "",
     "00000000000000000000000000000000", "0388dace60b6a392f328c2b971b2fe78",
     "ab6e47d42cec13bdf53a67b21257bddf"},
    {RECORD_AES_128_GCM, "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
     "b16aedf5aa0de657ba637b391aafd255",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
     "1ba30b396a0aac973d58e091473f5985",
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {RECORD_AES_128_GCM, "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
     "b16aedf5aa0de657ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
     "1ba30b396a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {RECORD_AES_256_GCM, "0000000000000000000000000000000000000000000000000000000000000000",
     "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {RECORD_AES_256_GCM, "0000000000000000000000000000000000000000000000000000000000000000",
     "000000000000000000000000", "", "00000000000000000000000000000000", "cea7403d4d606b6e074ec5d3baf39d18",
     "d0d1c8a799996bf0265b98b5d48ab919"},
    {RECORD_AES_256_GCM, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
     "b16aedf5aa0de657ba637b391aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
     "c5f61e6393ba7a0abcc9f662898015ad",
     "b094dac5d93471bdec1a502270e3cc6c"},
    {RECORD_AES_256_GCM, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
     "b16aedf5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
     "c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    {RECORD_CHACHA20_POLY1305, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
     "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a20496620492063"
     "6f756c64206f6666657220796f75206f"
     "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069"
     "742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"
     "1a71de0a9e060b2905d6a5b67ecd3b36"
     "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b"
     "6116",
     "1ae10b594f09e26a7e902ecbd0600691"},
};
enum { VECTORS = sizeof(vectors) / sizeof(vectors[0]) };

/* In place, from another buffer, and divided at every byte. */
START_TEST(vectors_of_the_specifications_are_sealed)
{
    const struct vector *vector = &vectors[_i / AEAD_KINDS];
    struct aead *aead = aead_open((enum aead_kind)(_i % AEAD_KINDS));
    uint8_t key_bytes[32], nonce[32], additional[32], wanted_tag[32];
    void *key = NULL;

    if (!aead || !aead->has[vector->cipher]) {
        aead_close(aead);
        return;
    }
    from_hex(vector->key, key_bytes);
    from_hex(vector->nonce, nonce);
    from_hex(vector->tag, wanted_tag);
    size_t length = from_hex(vector->plaintext, text);
    from_hex(vector->ciphertext, expected);
    struct aead_record record = {.cipher = vector->cipher,
                                 .additional = additional,
                                 .additional_length = (uint8_t)from_hex(vector->additional, additional),
                                 .nonce = nonce};
    ck_assert(aead->engine->key_set(aead, &key, vector->cipher, false, key_bytes));
    for (size_t split = 0; split <= length + 1; split++) {
        struct iovec parts[] = {{split > length ? into : text, split > length ? length : split},
                                {text + split, length - split}};

        memcpy(into, text, length);
        record.parts = parts;
        record.count = split > length ? 1 : 2;
        ck_assert_ptr_eq(aead->engine->seal(aead, key, &record, into), into + length + AEAD_TAG);
        ck_assert_mem_eq(into, expected, length);
        ck_assert_mem_eq(into + length, wanted_tag, AEAD_TAG);
    }
    aead->engine->key_free(key);
    aead_close(aead);
}
END_TEST

/* The same with the EVP interface of OpenSSL, in one piece. */
static void seal_by_evp(const struct aead_record *record, const uint8_t *key, const uint8_t *plaintext,
                        size_t length, uint8_t *to)
{
    const EVP_CIPHER *ciphers[] = {NULL, EVP_aes_128_gcm(), EVP_aes_256_gcm(), EVP_chacha20_poly1305()};
    EVP_CIPHER_CTX *sealing = EVP_CIPHER_CTX_new();
    int written;

    ck_assert_int_eq(EVP_EncryptInit_ex(sealing, ciphers[record->cipher], NULL, key, record->nonce), 1);
    ck_assert_int_eq(
        EVP_EncryptUpdate(sealing, NULL, &written, record->additional, record->additional_length), 1);
    ck_assert_int_eq(EVP_EncryptUpdate(sealing, to, &written, plaintext, (int)length), 1);
    ck_assert_int_eq(EVP_EncryptFinal_ex(sealing, to + length, &written), 1);
    ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG, to + length), 1);
    EVP_CIPHER_CTX_free(sealing);
}

static void fill_randomly(uint8_t *bytes, size_t length, unsigned *state)
{
    for (size_t i = 0; i < length; i++) {
        *state = *state * 1103515245 + 12345;
        bytes[i] = (uint8_t)(*state >> 16);
    }
}

/* `expected` is a sealed record: decrypted in place and elsewhere it gives `plaintext`; with a changed bit, nothing. */
static void decrypt_expected(struct aead *aead, const struct aead_record *record, const uint8_t *key_bytes,
                             const uint8_t *plaintext, size_t length, unsigned state)
{
    struct aead_sealed sealed = {.ciphertext = expected,
                                 .length = length,
                                 .cipher = record->cipher,
                                 .additional = record->additional,
                                 .additional_length = record->additional_length,
                                 .nonce = record->nonce};
    size_t changed = state / 3 % (length + AEAD_TAG);
    void *key = NULL;

    ck_assert(aead->engine->key_set(aead, &key, record->cipher, true, key_bytes));
    memset(into, 0xee, sizeof(into));
    ck_assert(aead->engine->decrypt(aead, key, &sealed, into));
    ck_assert_mem_eq(into, plaintext, length);
    ck_assert_uint_eq(into[length], 0xee);
    memcpy(into, expected, length + AEAD_TAG);
    sealed.ciphertext = into;
    ck_assert(aead->engine->decrypt(aead, key, &sealed, into));
    ck_assert_mem_eq(into, plaintext, length);
    memcpy(into, expected, length + AEAD_TAG);
    into[changed] ^= 1 << state % 8;
    ck_assert(!aead->engine->decrypt(aead, key, &sealed, into));
    for (size_t i = 0; i < length; i++)
        assert_in_loop(into[i] == 0);
    aead->engine->key_free(key);
}

static void compare_length(struct aead *aead, uint8_t cipher, size_t length, unsigned *state)
{
    uint8_t key_bytes[32], nonce[AEAD_NONCE], additional[13], with_inner[LIMIT_RECORD_PLAINTEXT + 1];
    struct aead_record record = {
        .cipher = cipher, .nonce = nonce, .additional = additional, .inner = *state & 256 ? 23 : 0};
    size_t first = length ? *state / 7 % length : 0, second = (length - first) / 2,
           all = length + (record.inner != 0);
    struct iovec parts[] = {
        {text, first}, {text + first, second}, {NULL, 0}, {text + first + second, length - first - second}};
    struct iovec in_place = {into, length}, elsewhere = {text, length};
    struct {
        struct iovec *parts;
        int count;
    } ways[] = {{&in_place, 1}, {parts, 4}, {&elsewhere, 1}};
    void *key = NULL;

    record.additional_length = record.inner ? 5 : 13;
    fill_randomly(key_bytes, sizeof(key_bytes), state);
    fill_randomly(nonce, sizeof(nonce), state);
    fill_randomly(additional, sizeof(additional), state);
    fill_randomly(text, length, state);
    memcpy(with_inner, text, length);
    with_inner[length] = record.inner;
    seal_by_evp(&record, key_bytes, with_inner, all, expected);
    ck_assert(aead->engine->key_set(aead, &key, cipher, false, key_bytes));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        memset(into, 0xee, sizeof(into));
        if (ways[i].parts == &in_place)
            memcpy(into, text, length);
        record.parts = ways[i].parts;
        record.count = ways[i].count;
        ck_assert_ptr_eq(aead->engine->seal(aead, key, &record, into), into + all + AEAD_TAG);
        ck_assert_mem_eq(into, expected, all + AEAD_TAG);
        ck_assert_uint_eq(into[all + AEAD_TAG], 0xee);
    }
    aead->engine->key_free(key);
    decrypt_expected(aead, &record, key_bytes, with_inner, all, *state);
}

START_TEST(records_of_every_length_equal_those_of_evp)
{
    uint8_t cipher;
    struct aead *aead = open_pair(_i, &cipher);
    unsigned state = 1 + (unsigned)_i;

    if (!aead)
        return;
    for (size_t length = 0; length < 1100; length++)
        compare_length(aead, cipher, length, &state);
    for (size_t length = 1100; length <= LIMIT_RECORD_PLAINTEXT; length += 257)
        compare_length(aead, cipher, length, &state);
    for (size_t length = LIMIT_RECORD_PLAINTEXT - 20; length <= LIMIT_RECORD_PLAINTEXT; length++)
        compare_length(aead, cipher, length, &state);
    aead_close(aead);
}
END_TEST

/* Several keys, one after the other, in the same memory, as when another connection reuses a cipher context. */
START_TEST(replaced_key_is_used_by_the_next_record)
{
    uint8_t cipher, keys[2][32], nonce[AEAD_NONCE] = {0}, additional[5] = {0};
    struct aead *aead = open_pair(_i, &cipher);
    struct iovec part = {text, 100};
    struct aead_record record = {.parts = &part,
                                 .count = 1,
                                 .cipher = cipher,
                                 .nonce = nonce,
                                 .additional = additional,
                                 .additional_length = 5};
    void *key = NULL;

    if (!aead)
        return;
    memset(keys[0], 1, 32);
    memset(keys[1], 2, 32);
    for (int i = 0; i < 4; i++) {
        ck_assert(aead->engine->key_set(aead, &key, cipher, false, keys[i % 2]));
        seal_by_evp(&record, keys[i % 2], text, 100, expected);
        ck_assert_ptr_nonnull(aead->engine->seal(aead, key, &record, into));
        ck_assert_mem_eq(into, expected, 100 + AEAD_TAG);
    }
    aead->engine->key_free(key);
    aead_close(aead);
}
END_TEST

/* Linked with --wrap=free: freed memory must not contain a key. */
static uint8_t secret[32];
static unsigned freed_with_key, freed_after_seal;
void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    size_t size = memory ? malloc_usable_size(memory) : 0;

    freed_after_seal += size >= 1024;
    if (size >= 32 && secret[0] && memmem(memory, size, secret, 16))
        freed_with_key++;
    __real_free(memory);
}

START_TEST(freed_keys_are_wiped)
{
    uint8_t cipher, nonce[AEAD_NONCE] = {0}, additional[5] = {0};
    struct aead *aead = open_pair(_i, &cipher);
    struct iovec part = {text, 100};
    struct aead_record record = {.parts = &part,
                                 .count = 1,
                                 .cipher = cipher,
                                 .nonce = nonce,
                                 .additional = additional,
                                 .additional_length = 5};
    unsigned state = 99;
    void *key = NULL;

    if (!aead || aead->engine == &aead_openssl) { /* OpenSSL calls free in its own library, without the wrapper */
        aead_close(aead);
        return;
    }
    fill_randomly(secret, sizeof(secret), &state);
    ck_assert_uint_ne(secret[0], 0);
    ck_assert(aead->engine->key_set(aead, &key, cipher, false, secret));
    ck_assert_ptr_nonnull(memmem(key, malloc_usable_size(key), secret, 16));
    ck_assert_ptr_nonnull(aead->engine->seal(aead, key, &record, into));
    freed_after_seal = 0;
    aead->engine->key_free(key);
    ck_assert_uint_eq(freed_after_seal, 1);
    ck_assert_uint_eq(freed_with_key, 0);
    aead_close(aead);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, engine_gives_the_known_answers, 0, PAIRS);
    tcase_add_loop_test(tcase, vectors_of_the_specifications_are_sealed, 0, VECTORS * AEAD_KINDS);
    tcase_add_loop_test(tcase, records_of_every_length_equal_those_of_evp, 0, PAIRS);
    tcase_add_loop_test(tcase, replaced_key_is_used_by_the_next_record, 0, PAIRS);
    tcase_add_loop_test(tcase, freed_keys_are_wiped, 0, PAIRS);
}

int main(void)
{
    return run_suite("aead", add_tests);
}
