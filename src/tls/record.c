/*
 * Formats records; an AEAD engine encrypts them (tls/cipher_context.h).
 */
#include "tls/record.h"

#include "base/limits.h"
#include "tls/cipher_context.h"

#include <endian.h>
#include <errno.h>

enum { HEADER = 5, EXPLICIT_NONCE = 8, TAG = AEAD_TAG, AAD_MAX = 13, CONTROL_RESERVE = 16 };

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
    uint64_t limit = LIMIT_RECORDS_PER_KEY + (type == RECORD_APPLICATION_DATA ? 0 : CONTROL_RESERVE);

    if (!cipher_context_cache_has(cache, key->cipher))
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
    struct cipher_context *context = cipher_context_for(cache, key, false, hint);
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

ssize_t record_open(struct cipher_context_cache *cache, struct record_key *key, struct cipher_context **hint,
                    struct str record, char *into)
{
    uint8_t nonce[AEAD_NONCE];
    const uint8_t *bytes = (const uint8_t *)record.data;

    if (record.length < HEADER + 1 + TAG || key->version != RECORD_TLS_1_3)
        return -EBADMSG;
    struct cipher_context *context = cipher_context_cache_has(cache, key->cipher)
                                         ? cipher_context_for(cache, key, true, hint)
                                         : NULL;
    if (!context)
        return -ENOMEM;
    struct aead_sealed sealed = {.ciphertext = bytes + HEADER,
                                 .length = record.length - HEADER - TAG,
                                 .cipher = key->cipher,
                                 .additional_length = HEADER,
                                 .additional = bytes,
                                 .nonce = nonce};
    write_nonce(key, nonce);
    if (!context->aead->engine->decrypt(context->aead, context->expanded, &sealed, (uint8_t *)into))
        return -EBADMSG;
    advance_sequence(key);
    return (ssize_t)sealed.length;
}
