/*
 * Generates and parses ticket keys. Readers in other processes take no lock: the writer completes a key before it
 * publishes its number, and overwrites it only after it has published the next number. A reader copies a key again if
 * the number has changed meanwhile.
 */
#include "tls/ticket_keys.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>

static bool generate_random(uint8_t *bytes, size_t size)
{
    return RAND_priv_bytes(bytes, (int)size) == 1;
}

int ticket_keys_rotate(struct ticket_keys *keys)
{
    uint64_t number = keys->number + 1;
    struct ticket_key *next = &keys->keys[number % TICKET_KEYS_GENERATED];
    struct ticket_key *oldest = &keys->keys[(number + 1) % TICKET_KEYS_GENERATED];

    if (RAND_bytes(next->name, sizeof(next->name)) != 1 || !generate_random(next->hmac, sizeof(next->hmac)) ||
        !generate_random(next->aes, sizeof(next->aes))) {
        OPENSSL_cleanse(next, sizeof(*next));
        ERR_clear_error();
        return -EIO;
    }
    next->size = sizeof(next->aes);
    __atomic_store_n(&keys->number, number, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    OPENSSL_cleanse(oldest, sizeof(*oldest));
    return 0;
}

void ticket_keys_wipe(struct ticket_keys *keys)
{
    OPENSSL_cleanse(keys, sizeof(*keys));
}

bool ticket_keys_get(const struct ticket_keys *keys, unsigned age, struct ticket_key *out_key)
{
    uint64_t number;

    do {
        number = __atomic_load_n(&keys->number, __ATOMIC_ACQUIRE);
        if (age > 1 || number <= age)
            return false;
        *out_key = keys->keys[(number - age) % TICKET_KEYS_GENERATED];
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&keys->number, __ATOMIC_RELAXED) != number);
    return out_key->size == sizeof(out_key->aes); /* another process may write any size */
}

static const char *copy_part(uint8_t *into, const char *from, size_t size)
{
    memcpy(into, from, size);
    return from + size;
}

int ticket_key_parse(struct str bytes, struct ticket_key *out_key)
{
    struct ticket_key key = {.size = bytes.length == 80 ? 32 : 16};
    const char *from = bytes.data;

    if (bytes.length != 48 && bytes.length != 80)
        return -EINVAL;
    from = copy_part(key.name, from, sizeof(key.name));
    if (key.size == 16)
        from = copy_part(key.aes, from, key.size);
    from = copy_part(key.hmac, from, key.size);
    if (key.size == 32)
        copy_part(key.aes, from, key.size);
    *out_key = key;
    OPENSSL_cleanse(&key, sizeof(key));
    return 0;
}
