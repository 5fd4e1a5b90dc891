/*
 * Converts between struct record_key and the kernel's structs. The kernel splits the nonce into 4 bytes of salt and
 * 8 of iv, which is the explicit nonce in TLS 1.2 AES-GCM and the rest of the static nonce in TLS 1.3.
 */
#include "tls/ktls_layout.h"

#include <errno.h>

static uint64_t read_be64(const unsigned char *bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static void write_be64(unsigned char *bytes, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (unsigned char)value;
}

static void read_gcm(struct record_key *key, const unsigned char *salt, const unsigned char *iv,
                     const unsigned char *secret, const unsigned char *sequence)
{
    memcpy(key->key, secret, record_key_length(key->cipher));
    memcpy(key->iv, salt, 4);
    memcpy(key->version == RECORD_TLS_1_3 ? key->iv + 4 : key->explicit_nonce, iv, 8);
    key->sequence = read_be64(sequence);
}

int ktls_key_read(const void *offered, struct record_key *out_key)
{
    const union ktls_key *layout = offered;
    struct record_key key = {.version = layout->head.version};

    if (key.version != RECORD_TLS_1_2 && key.version != RECORD_TLS_1_3)
        return -EINVAL;
    switch (layout->head.cipher_type) {
    case TLS_CIPHER_AES_GCM_128:
        key.cipher = RECORD_AES_128_GCM;
        read_gcm(&key, layout->aes_128_gcm.salt, layout->aes_128_gcm.iv, layout->aes_128_gcm.key,
                 layout->aes_128_gcm.rec_seq);
        break;
    case TLS_CIPHER_AES_GCM_256:
        key.cipher = RECORD_AES_256_GCM;
        read_gcm(&key, layout->aes_256_gcm.salt, layout->aes_256_gcm.iv, layout->aes_256_gcm.key,
                 layout->aes_256_gcm.rec_seq);
        break;
    case TLS_CIPHER_CHACHA20_POLY1305:
        key.cipher = RECORD_CHACHA20_POLY1305;
        memcpy(key.key, layout->chacha20_poly1305.key, sizeof(layout->chacha20_poly1305.key));
        memcpy(key.iv, layout->chacha20_poly1305.iv, sizeof(layout->chacha20_poly1305.iv));
        key.sequence = read_be64(layout->chacha20_poly1305.rec_seq);
        break;
    default:
        return -EINVAL;
    }
    *out_key = key;
    record_key_wipe(&key);
    return 0;
}

static void write_gcm(const struct record_key *key, unsigned char *salt, unsigned char *iv,
                      unsigned char *secret, unsigned char *sequence)
{
    memcpy(secret, key->key, record_key_length(key->cipher));
    memcpy(salt, key->iv, 4);
    memcpy(iv, key->version == RECORD_TLS_1_3 ? key->iv + 4 : key->explicit_nonce, 8);
    write_be64(sequence, key->sequence);
}

size_t ktls_key_write(const struct record_key *key, union ktls_key *out_layout)
{
    memset(out_layout, 0, sizeof(*out_layout));
    out_layout->head.version = key->version;
    switch ((enum record_cipher)key->cipher) {
    case RECORD_NONE:
        return 0;
    case RECORD_AES_128_GCM:
        out_layout->head.cipher_type = TLS_CIPHER_AES_GCM_128;
        write_gcm(key, out_layout->aes_128_gcm.salt, out_layout->aes_128_gcm.iv, out_layout->aes_128_gcm.key,
                  out_layout->aes_128_gcm.rec_seq);
        return sizeof(out_layout->aes_128_gcm);
    case RECORD_AES_256_GCM:
        out_layout->head.cipher_type = TLS_CIPHER_AES_GCM_256;
        write_gcm(key, out_layout->aes_256_gcm.salt, out_layout->aes_256_gcm.iv, out_layout->aes_256_gcm.key,
                  out_layout->aes_256_gcm.rec_seq);
        return sizeof(out_layout->aes_256_gcm);
    case RECORD_CHACHA20_POLY1305:
        out_layout->head.cipher_type = TLS_CIPHER_CHACHA20_POLY1305;
        memcpy(out_layout->chacha20_poly1305.key, key->key, sizeof(out_layout->chacha20_poly1305.key));
        memcpy(out_layout->chacha20_poly1305.iv, key->iv, sizeof(out_layout->chacha20_poly1305.iv));
        write_be64(out_layout->chacha20_poly1305.rec_seq, key->sequence);
        return sizeof(out_layout->chacha20_poly1305);
    }
    return 0;
}
