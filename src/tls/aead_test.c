/*
 * Known answers of the AEAD engines. The longest plaintexts exceed the unrolled loops of any implementation; the tag
 * depends on every byte of the ciphertext.
 */
#include "tls/aead_choice.h"

#include "base/limits.h"

#include <string.h>

struct answer {
    uint8_t cipher;
    uint16_t length;  /* of the plaintext, without the content type */
    uint8_t start[2]; /* of the ciphertext */
    const char *tag;  /* AEAD_TAG bytes */
};

/*
 * Computed by a program that shares no code with any engine, and that reproduces test case 4 of the GCM specification
 * and RFC 8439 2.8.2. Key byte i is 29 i + 1, nonce byte 17 i + 3, additional byte 13 i + 5 (5 bytes), plaintext byte
 * 7 i + i / 256, followed by the content type 23.
 */
static const struct answer answers[] = {
    {RECORD_AES_128_GCM, 0, {0x36}, "\x29\x2a\x80\xda\x4d\x53\xd2\xe3\x72\x19\x4e\xa4\x10\x83\x4e\x03"},
    {RECORD_AES_128_GCM, 1, {0x21, 0x3e}, "\xab\x22\x8c\xa6\x4f\x92\xae\xf5\xb7\x40\x79\x27\x84\x2d\x2a\xcf"},
    {RECORD_AES_128_GCM,
     60,
     {0x21, 0x2e},
     "\xe3\x43\x2a\x9f\x3f\xae\x84\xd4\xcd\x66\x39\x81\x52\x79\x8c\x6d"},
    {RECORD_AES_128_GCM,
     1200,
     {0x21, 0x2e},
     "\xf0\x3c\xc4\x2c\xef\x67\x28\x44\xcf\xcb\x1c\x8c\xb3\x3f\x21\xfc"},
    {RECORD_AES_128_GCM,
     16384,
     {0x21, 0x2e},
     "\x22\xfb\x78\x1f\x83\x58\x8d\x3d\x9d\x09\xd4\x04\xff\x5f\x43\x0e"},
    {RECORD_AES_256_GCM, 0, {0xb4}, "\x71\x7a\x6e\x73\x99\x3d\x8a\x4a\x5f\xd8\x1d\x6d\x15\xde\x9c\xf9"},
    {RECORD_AES_256_GCM, 1, {0xa3, 0xd9}, "\x57\x1c\x30\xb1\xf1\xab\xca\xcd\x9a\xef\xf0\x70\x8f\x67\xa4\x14"},
    {RECORD_AES_256_GCM,
     60,
     {0xa3, 0xc9},
     "\x14\x88\xfc\xc8\x63\x39\x3b\xb2\x4c\xf5\x0b\xd3\x01\xde\x6d\xe9"},
    {RECORD_AES_256_GCM,
     1200,
     {0xa3, 0xc9},
     "\x55\x3d\xf9\x4a\x25\x1c\xef\xf6\xb3\x9b\xdb\x36\x95\x88\xe5\x3c"},
    {RECORD_AES_256_GCM,
     16384,
     {0xa3, 0xc9},
     "\x57\xd1\xe2\x77\x08\xc4\x9d\x37\xe7\xd8\xd4\xd3\x0b\x0d\xb1\xe6"},
    {RECORD_CHACHA20_POLY1305, 0, {0x59}, "\x63\x35\xec\x9a\x9e\xfa\x61\xa8\xc1\xcc\xbc\x0f\x0d\x38\xa7\xd0"},
    {RECORD_CHACHA20_POLY1305,
     1,
     {0x4e, 0x81},
     "\xba\x41\xbc\x3a\x14\x74\x33\x8b\x45\x09\xd3\x7a\x76\x06\xcc\xc0"},
    {RECORD_CHACHA20_POLY1305,
     60,
     {0x4e, 0x91},
     "\xdc\x6e\xfd\xb5\x5e\x7d\x0f\x91\x14\xba\x32\xdc\x90\x0b\x2b\x2e"},
    {RECORD_CHACHA20_POLY1305,
     1200,
     {0x4e, 0x91},
     "\x84\x9b\x92\xa4\xe8\x20\x74\x81\x7e\x38\xc2\xe8\x70\xa3\xf8\x39"},
    {RECORD_CHACHA20_POLY1305,
     16384,
     {0x4e, 0x91},
     "\xf8\x45\xe7\xf8\x02\x2d\xcd\x25\x4c\x5a\xbb\x3c\x5c\x89\xd1\x56"},
};

enum { INNER = 23 };

/* The memory of a test. */
struct test_memory {
    uint8_t plaintext[LIMIT_RECORD_PLAINTEXT];
    uint8_t into[LIMIT_RECORD_PLAINTEXT + 1 + AEAD_TAG];
};

static void fill_pattern(uint8_t *into, size_t length, unsigned factor, unsigned first)
{
    for (size_t i = 0; i < length; i++)
        into[i] = (uint8_t)(i * factor + first);
}

static bool output_matches(struct aead *aead, void *key, const struct answer *answer, const struct iovec *parts,
                           int count, uint8_t *into)
{
    uint8_t nonce[AEAD_NONCE], additional[5];
    struct aead_record record = {.parts = parts,
                                 .count = count,
                                 .cipher = answer->cipher,
                                 .inner = INNER,
                                 .additional_length = sizeof(additional),
                                 .additional = additional,
                                 .nonce = nonce};
    size_t length = answer->length + 1u;
    const uint8_t *end;

    fill_pattern(nonce, sizeof(nonce), 17, 3);
    fill_pattern(additional, sizeof(additional), 13, 5);
    end = aead->engine->seal(aead, key, &record, into);
    return end == into + length + AEAD_TAG && memcmp(into, answer->start, length < 2 ? length : 2) == 0 &&
           memcmp(into + length, answer->tag, AEAD_TAG) == 0;
}

static bool begins_in_place(struct aead *aead, void *key, const struct answer *answer, struct iovec parts[3],
                            struct test_memory *memory)
{
    memcpy(memory->into, memory->plaintext, parts[0].iov_len);
    parts[0].iov_base = memory->into;
    return output_matches(aead, key, answer, parts, 3, memory->into);
}

/* In place, gathered from parts that split cipher blocks, and with only the first part in place. */
static bool answers_correctly(struct aead *aead, void *key, const struct answer *answer, struct test_memory *memory)
{
    size_t first = answer->length / 3u, second = answer->length / 2u - first;
    struct iovec whole = {memory->into, answer->length};
    struct iovec parts[] = {{memory->plaintext, first},
                            {memory->plaintext + first, second},
                            {memory->plaintext + first + second, answer->length - first - second}};

    memcpy(memory->into, memory->plaintext, answer->length);
    return output_matches(aead, key, answer, &whole, 1, memory->into) &&
           output_matches(aead, key, answer, parts, 3, memory->into) &&
           begins_in_place(aead, key, answer, parts, memory);
}

static bool decrypts_record(struct aead *aead, void *key, const struct answer *answer, struct test_memory *memory)
{
    uint8_t nonce[AEAD_NONCE], additional[5];
    struct aead_sealed sealed = {.ciphertext = memory->into,
                                 .length = answer->length + 1u,
                                 .cipher = answer->cipher,
                                 .additional_length = sizeof(additional),
                                 .additional = additional,
                                 .nonce = nonce};

    fill_pattern(nonce, sizeof(nonce), 17, 3);
    fill_pattern(additional, sizeof(additional), 13, 5);
    return aead->engine->decrypt(aead, key, &sealed, memory->into);
}

/* The record that answers_correctly has left in `into`, in place; then one with a changed tag, which is rejected. */
static bool decrypts_correctly(struct aead *aead, void *key, const struct answer *answer, struct test_memory *memory)
{
    uint8_t *tag = memory->into + answer->length + 1;

    if (!decrypts_record(aead, key, answer, memory) || memcmp(memory->into, memory->plaintext, answer->length) != 0 ||
        memory->into[answer->length] != INNER)
        return false;
    tag[AEAD_TAG - 1] ^= 1;
    return !decrypts_record(aead, key, answer, memory);
}

/* One key for each direction. */
static bool set_keys(struct aead *aead, uint8_t cipher, void *keys[2])
{
    uint8_t bytes[32];

    fill_pattern(bytes, sizeof(bytes), 29, 1);
    return aead->engine->key_set(aead, &keys[0], cipher, false, bytes) &&
           aead->engine->key_set(aead, &keys[1], cipher, true, bytes);
}

bool aead_test(struct aead *aead, uint8_t cipher)
{
    struct test_memory memory;
    void *keys[2] = {NULL, NULL};
    bool good = set_keys(aead, cipher, keys);

    for (size_t i = 0; i < sizeof(memory.plaintext); i++)
        memory.plaintext[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t i = 0; good && i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i].cipher == cipher)
            good = answers_correctly(aead, keys[0], &answers[i], &memory) &&
                   decrypts_correctly(aead, keys[1], &answers[i], &memory);
    }
    aead->engine->key_free(keys[0]);
    aead->engine->key_free(keys[1]);
    return good;
}
