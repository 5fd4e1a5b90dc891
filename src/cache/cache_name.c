/*
 * Names of cache files, and checksums: over keys (SHA-256, so that collisions cannot be constructed) and over bodies
 * (fast, only against accidental damage).
 */
#include "cache/cache_file.h"

#include <openssl/evp.h>
#include <stdio.h>

#define MIX 0x9e3779b97f4a7c15ull

static uint64_t hash_mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * MIX;
    return state ^ (state >> 29);
}

void cache_checksum_add(struct cache_checksum *sum, struct str bytes)
{
    size_t partial = sum->length % 8;
    uint64_t word;

    if (bytes.length == 0) /* then data may be NULL, which is invalid for memcpy */
        return;
    sum->length += bytes.length;
    if (partial > 0) {
        size_t missing = 8 - partial < bytes.length ? 8 - partial : bytes.length;

        memcpy(sum->part + partial, bytes.data, missing);
        bytes = str_skip(bytes, missing);
        if (partial + missing < 8)
            return;
        memcpy(&word, sum->part, 8);
        sum->state = hash_mix(sum->state, word);
    }
    for (; bytes.length >= 8; bytes = str_of(bytes.data + 8, bytes.length - 8)) {
        memcpy(&word, bytes.data, 8);
        sum->state = hash_mix(sum->state, word);
    }
    if (bytes.length > 0)
        memcpy(sum->part, bytes.data, bytes.length);
}

uint64_t cache_checksum_end(const struct cache_checksum *sum)
{
    uint64_t word = 0;

    memcpy(&word, sum->part, sum->length % 8);
    return hash_mix(hash_mix(sum->state, word), sum->length);
}

void cache_hash_key(struct str key, struct cache_hash *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};

    /* Fails only when out of memory. All such keys have one name, but the key in the file differs, which is a miss. */
    (void)EVP_Digest(key.data, key.length, digest, NULL, EVP_sha256(), NULL);
    memcpy(out->bytes, digest, sizeof(out->bytes));
}

static char *write_hex(char *into, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *into++ = "0123456789abcdef"[bytes[i] >> 4];
        *into++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *into = '\0';
    return into;
}

void cache_file_name(const struct cache_directory *directory, const struct cache_id *id, char *into)
{
    char hex[33];
    const char *end = write_hex(hex, id->hash.bytes, sizeof(id->hash.bytes));

    for (unsigned i = 0; i < CACHE_LEVELS && directory->levels[i]; i++) {
        end -= directory->levels[i];
        memcpy(into, end, directory->levels[i]);
        into += directory->levels[i];
        *into++ = '/';
    }
    snprintf(into, 64, "%s.%016llx", hex, (unsigned long long)id->sequence);
}

/* Parses "HASH.SEQUENCE" at the start of a name. Returns the rest, or NULL. */
static const char *parse_front(const char *name, struct cache_id *out_id)
{
    struct cache_id id = {.sequence = 0};

    for (unsigned i = 0; i < 32; i++) {
        int digit = name[i] ? str_hex_digit(name[i]) : -1;

        if (digit < 0)
            return NULL;
        id.hash.bytes[i / 2] = (unsigned char)(id.hash.bytes[i / 2] << 4 | digit);
    }
    if (name[32] != '.')
        return NULL;
    for (unsigned i = 33; i < 49; i++) {
        int digit = name[i] ? str_hex_digit(name[i]) : -1;

        if (digit < 0)
            return NULL;
        id.sequence = id.sequence << 4 | (unsigned)digit;
    }
    *out_id = id;
    return name + 49;
}

bool cache_file_parse_name(const char *name, struct cache_id *out_id)
{
    struct cache_id id;
    const char *rest = parse_front(name, &id);

    if (!rest || *rest || id.sequence == 0)
        return false;
    *out_id = id;
    return true;
}

bool cache_file_is_temporary(const char *name)
{
    struct cache_id id;
    const char *rest = parse_front(name, &id);

    return rest && strcmp(rest, ".tmp") == 0;
}
