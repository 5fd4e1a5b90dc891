/*
 * BIO_CTRL_SET_KTLS and its relatives are not public; their numbers are the same from OpenSSL 3.0 to 3.5. An unknown
 * key is declined, and OpenSSL continues to seal. If the numbers change, no key arrives, with the same effect.
 */
#include "tls/tls_bio.h"

#include "base/limits.h"
#include "tls/ktls_layout.h"

#include <openssl/crypto.h>

enum { SET_KTLS = 72, GET_KTLS_SEND = 73, SET_KTLS_TYPE = 74, CLEAR_KTLS_TYPE = 75, GET_KTLS_RECEIVE = 76 };

#ifdef BIO_CTRL_GET_KTLS_SEND
_Static_assert(GET_KTLS_SEND == BIO_CTRL_GET_KTLS_SEND && GET_KTLS_RECEIVE == BIO_CTRL_GET_KTLS_RECV,
               "the controls of kTLS have moved: see include/internal/bio.h of this OpenSSL");
#endif

enum { MESSAGE_KEY_UPDATE = 24 }; /* RFC 8446 4 */

/* Counts alerts: OpenSSL responds to some warnings with warnings (RFC 5246 7.2.2: no_renegotiation). */
static void count_alert(struct tls_bio *bio)
{
    if (bio->established && ++bio->alerts >= LIMIT_TLS_ALERTS)
        bio->input_closed = true;
}

static int bio_write(BIO *base, const char *bytes, size_t length, size_t *out_written)
{
    struct tls_bio *bio = BIO_get_data(base);
    uint8_t type = bio->type ? bio->type : RECORD_APPLICATION_DATA;

    BIO_clear_retry_flags(base);
    *out_written = length;
    bio->type = 0;
    if (length == 0)
        return 1;
    if (bio->cipher == RECORD_NONE) {
        if ((uint8_t)bytes[0] == RECORD_ALERT)
            count_alert(bio);
        bio->output->ciphertext(bio->owner, str_of(bytes, length));
        return 1;
    }
    if (type == RECORD_ALERT)
        count_alert(bio);
    if (type == RECORD_HANDSHAKE && bytes[0] == MESSAGE_KEY_UPDATE)
        bio->update_written = true;
    bio->output->record(bio->owner, type, str_of(bytes, length));
    return 1;
}

static int bio_read(BIO *base, char *into, size_t size, size_t *out_read)
{
    struct tls_bio *bio = BIO_get_data(base);
    size_t length = bio->input.length < size ? bio->input.length : size;

    BIO_clear_retry_flags(base);
    *out_read = 0;
    if (bio->input_closed)
        return 0;
    if (length == 0) {
        BIO_set_retry_read(base);
        return 0;
    }
    memcpy(into, bio->input.data, length);
    for (size_t i = 0; i < length && bio->consumed + i < TLS_BIO_FIRST; i++)
        bio->first_bytes[bio->consumed + i] = (uint8_t)into[i];
    bio->consumed += length;
    bio->input = str_skip(bio->input, length);
    *out_read = length;
    return 1;
}

/* Declines receive keys (direction 0, offered from 3.2 on): OpenSSL decrypts. */
static long accept_key(struct tls_bio *bio, long direction, const void *offered)
{
    struct record_key key;

    if (direction == 0 || !offered || ktls_key_read(offered, &key) < 0)
        return 0;
    bio->cipher = key.cipher;
    bio->update_written = false;
    bio->output->key_ready(bio->owner, &key);
    record_key_wipe(&key);
    return 1;
}

static long bio_control(BIO *base, int command, long number, void *pointer)
{
    struct tls_bio *bio = BIO_get_data(base);

    switch (command) {
    case BIO_CTRL_FLUSH:
        return 1;
    case SET_KTLS:
        return accept_key(bio, number, pointer);
    case GET_KTLS_SEND:
        return bio->cipher != RECORD_NONE;
    case SET_KTLS_TYPE:
        bio->type = (uint8_t)number;
        return 1;
    case CLEAR_KTLS_TYPE:
        bio->type = 0;
        return 1;
    case GET_KTLS_RECEIVE:
    default:
        return 0;
    }
}

BIO_METHOD *tls_bio_method(void)
{
    /* A fixed index: BIO_get_new_index has few, and every reload would use one. */
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_START | BIO_TYPE_SOURCE_SINK, "sluice");

    if (method && BIO_meth_set_write_ex(method, bio_write) && BIO_meth_set_read_ex(method, bio_read) &&
        BIO_meth_set_ctrl(method, bio_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

BIO *tls_bio_create(const BIO_METHOD *method, struct tls_bio *bio)
{
    BIO *base = BIO_new(method);

    if (!base)
        return NULL;
    BIO_set_data(base, bio);
    BIO_set_init(base, 1);
    return base;
}
