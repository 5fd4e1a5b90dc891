/*
 * Keys of session tickets: the input is a key file, and the memory that workers and an upgrade share. A parsed file
 * contains exactly its bytes. Each key of the memory has the size of a generated one, and the next key encrypts, with
 * the present one for decryption.
 */
#include "fuzz.h"

#include "tls/ticket_keys.h"

#include <openssl/crypto.h>
#include <string.h>

/* Prints a key in the format of its file. */
static size_t print_key(const struct ticket_key *key, uint8_t *out)
{
    size_t size = key->size, length = sizeof(key->name);
    const uint8_t *first = size == sizeof(key->aes) ? key->hmac : key->aes;

    memcpy(out, key->name, length);
    memcpy(out + length, first, size);
    memcpy(out + length + size, first == key->hmac ? key->aes : key->hmac, size);
    return length + 2 * size;
}

static void check_unused(const uint8_t *bytes, size_t used, size_t size)
{
    for (size_t i = used; i < size; i++)
        HOLDS(bytes[i] == 0);
}

static void check_file(struct str file)
{
    struct ticket_key key, before;
    uint8_t printed[sizeof(key)];
    int error;

    memset(&key, 0xa5, sizeof(key));
    before = key;
    error = ticket_key_parse(file, &key);
    HOLDS((error == 0) == (file.length == 80 || file.length == 48));
    if (error < 0) {
        HOLDS(memcmp(&key, &before, sizeof(key)) == 0);
        return;
    }
    HOLDS(print_key(&key, printed) == file.length && memcmp(printed, file.data, file.length) == 0);
    check_unused(key.aes, key.size, sizeof(key.aes));
    check_unused(key.hmac, key.size, sizeof(key.hmac));
}

static bool same_key(const struct ticket_key *a, const struct ticket_key *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* The number of keys grows by one with each key, beginning at 0; only a faulty worker writes the largest numbers. */
static void check_memory(struct ticket_keys *keys)
{
    struct ticket_key current, next, previous;
    bool has_current = ticket_keys_get(keys, 0, &current);

    HOLDS(!has_current || (current.size == sizeof(current.aes) && keys->number > 0));
    HOLDS(!ticket_keys_get(keys, 2, &previous));
    if (keys->number > UINT64_MAX - TICKET_KEYS_GENERATED)
        return;
    HOLDS(ticket_keys_rotate(keys) == 0);
    HOLDS(ticket_keys_get(keys, 0, &next) && next.size == sizeof(next.aes));
    HOLDS(ticket_keys_get(keys, 1, &previous) == has_current);
    HOLDS(!has_current || (same_key(&previous, &current) && !same_key(&next, &current)));
    HOLDS(ticket_keys_rotate(keys) == 0);
    HOLDS(ticket_keys_get(keys, 1, &previous) && same_key(&previous, &next));
    for (unsigned i = 0; has_current && i < TICKET_KEYS_GENERATED; i++)
        HOLDS(!same_key(&keys->keys[i], &current));
    ticket_keys_wipe(keys);
    HOLDS(!ticket_keys_get(keys, 0, &next) && !ticket_keys_get(keys, 1, &next));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct ticket_keys keys = {.number = 0};

    check_file(str_of((const char *)bytes, size));
    memcpy(&keys, bytes, size < sizeof(keys) ? size : sizeof(keys));
    check_memory(&keys);
    return 0;
}
