/*
 * The key of a receiver, and its memory.
 */
#include "tls/tls_receiver.h"

#include <openssl/crypto.h>
#include <stdlib.h>

struct tls_receiver *tls_receiver_create(struct cipher_context_cache *cache, uint8_t cipher, struct str secret)
{
    struct tls_receiver *receiver = calloc(1, sizeof(*receiver));

    if (!receiver)
        return NULL;
    receiver->cache = cache;
    receiver->cipher = cipher;
    buffer_init(&receiver->partial, RECORD_HEADER + RECORD_CIPHERTEXT_MAX);
    tls_receiver_set_secret(receiver, secret);
    return receiver;
}

void tls_receiver_free_plaintext(struct tls_receiver *receiver)
{
    if (receiver->plaintext)
        OPENSSL_cleanse(receiver->plaintext, receiver->unread_to);
    free(receiver->plaintext);
    receiver->plaintext = NULL;
    receiver->unread_from = receiver->unread_to = 0;
}

void tls_receiver_destroy(struct tls_receiver *receiver)
{
    if (!receiver)
        return;
    record_release(receiver->cache, &receiver->context);
    record_key_wipe(&receiver->key);
    OPENSSL_cleanse(receiver->secret, sizeof(receiver->secret));
    buffer_finish(&receiver->partial);
    tls_receiver_free_plaintext(receiver);
    free(receiver);
}

void tls_receiver_set_secret(struct tls_receiver *receiver, struct str secret)
{
    size_t length = secret.length < RECORD_SECRET_MAX ? secret.length : RECORD_SECRET_MAX;

    record_key_wipe(&receiver->key);
    receiver->openssl_sequence = 0;
    memcpy(receiver->secret, secret.data, length);
    receiver->secret_length = (uint8_t)length;
}

size_t tls_receiver_pending(const struct tls_receiver *receiver)
{
    return receiver->unread_to - receiver->unread_from;
}

void tls_receiver_derive_key(struct tls_receiver *receiver)
{
    struct str secret = str_of((const char *)receiver->secret, receiver->secret_length);

    if (record_key_derive(receiver->cipher, secret, &receiver->key) < 0)
        return;
    receiver->key.sequence = receiver->openssl_sequence;
    OPENSSL_cleanse(receiver->secret, sizeof(receiver->secret));
}
