/*
 * The write key: sizes, wiping, and derivation from a traffic secret (RFC 8446 7.1, 7.3).
 */
#include "tls/record.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

void record_key_wipe(struct record_key *key)
{
    OPENSSL_cleanse(key, sizeof(*key));
}

const char *record_cipher_name(uint8_t cipher)
{
    static const char *const names[RECORD_CIPHERS] = {"", "AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};

    return cipher < RECORD_CIPHERS ? names[cipher] : "";
}

size_t record_key_length(uint8_t cipher)
{
    switch ((enum record_cipher)cipher) {
    case RECORD_NONE:
        return 0;
    case RECORD_AES_128_GCM:
        return 16;
    case RECORD_AES_256_GCM:
    case RECORD_CHACHA20_POLY1305:
        return 32;
    }
    return 0;
}

static bool expand_label(EVP_KDF_CTX *kdf, const char *digest, struct str secret, const char *label,
                         uint8_t *out, size_t length)
{
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret.data, secret.length),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)(uintptr_t) "tls13 ", 6),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)(uintptr_t)label, strlen(label)),
        OSSL_PARAM_construct_end(),
    };

    return EVP_KDF_derive(kdf, out, length, parameters) == 1;
}

int record_key_derive(uint8_t cipher, struct str secret, struct record_key *out_key)
{
    size_t length = record_key_length(cipher);
    bool sha384 = cipher == RECORD_AES_256_GCM;
    struct record_key key = {.version = RECORD_TLS_1_3, .cipher = cipher};

    if (length == 0 || secret.length != (sha384 ? 48 : 32))
        return -EINVAL;
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, NULL);
    EVP_KDF_CTX *derivation = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    const char *digest = sha384 ? "SHA384" : "SHA256";
    bool good = derivation && expand_label(derivation, digest, secret, "key", key.key, length) &&
                expand_label(derivation, digest, secret, "iv", key.iv, sizeof(key.iv));

    EVP_KDF_CTX_free(derivation);
    EVP_KDF_free(kdf);
    if (good)
        *out_key = key;
    else
        ERR_clear_error();
    record_key_wipe(&key);
    return good ? 0 : -ENOMEM;
}
