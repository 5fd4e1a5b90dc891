/*
 * New keys: the secrets from OpenSSL's key log callback, and KeyUpdates (RFC 8446 4.6.3, 7.2).
 */
#include "base/limits.h"
#include "tls/tls_receiver.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <openssl/crypto.h>

/* Parses the secret of "LABEL RANDOM SECRET" in hexadecimal. 0 if the line has another form. */
static size_t parse_secret(struct str line, uint8_t into[RECORD_SECRET_MAX])
{
    struct str hex = str_skip(line, (size_t)str_rfind(line, ' ') + 1);

    if (hex.length % 2 || hex.length > (size_t)2 * RECORD_SECRET_MAX)
        return 0;
    for (size_t i = 0; i < hex.length; i += 2) {
        int high = str_hex_digit(hex.data[i]), low = str_hex_digit(hex.data[i + 1]);
        if (high < 0 || low < 0)
            return 0;
        into[i / 2] = (uint8_t)(high << 4 | low);
    }
    return hex.length / 2;
}

/* OpenSSL before 3.2 changes its key after an own KeyUpdate without offering it: it is derived from the secret. */
static void derive_updated_key(struct tls_session *session, struct str line)
{
    uint8_t secret[RECORD_SECRET_MAX];
    struct record_key key;
    size_t length = parse_secret(line, secret);

    if (record_key_derive(session->bio.cipher, str_of((const char *)secret, length), &key) == 0) {
        session->bio.update_written = false;
        session->bio.output->key_ready(session->bio.owner, &key);
        record_key_wipe(&key);
    }
    OPENSSL_cleanse(secret, sizeof(secret));
}

/* Limits the CPU time for KeyUpdates: each costs two key derivations and, if it requests an answer, a record. */
static void count_key_update(struct tls_session *session)
{
    uint32_t now = (uint32_t)tls_session_now_ms(session);

    if (session->key_updates == 0 || now - session->updates_since_ms >= LIMIT_KEY_UPDATES_MS) {
        session->updates_since_ms = now;
        session->key_updates = 0;
    }
    if (++session->key_updates > LIMIT_KEY_UPDATES)
        session->bio.input_closed = true;
}

/* The first secret of the client's application data creates the receiver, later ones change its key. */
static void client_secret_changed(struct tls_session *session, struct str line)
{
    const struct tls_output *output = session->bio.output;
    struct cipher_context_cache *contexts =
        output->cipher_contexts ? output->cipher_contexts(session->bio.owner) : NULL;
    uint8_t secret[RECORD_SECRET_MAX];
    size_t length = parse_secret(line, secret);

    if (session->receiver)
        tls_receiver_set_secret(session->receiver, str_of((const char *)secret, length));
    else if (!session->finished && contexts)
        session->receiver = tls_receiver_create(contexts, session->bio.cipher, str_of((const char *)secret, length));
    OPENSSL_cleanse(secret, sizeof(secret));
}

/*
 * The key log callback: detects KeyUpdates, and provides the secrets of keys that OpenSSL does not offer: those of the
 * client, and before 3.2 the server's after its KeyUpdate.
 */
static void secret_changed(const SSL *ssl, const char *line)
{
    struct tls_session *session = tls_session_of(ssl);
    struct str text = str_from(line);
    bool server = SSL_is_server(ssl);

    if (str_starts(text, server ? STR("CLIENT_TRAFFIC_SECRET_N ") : STR("SERVER_TRAFFIC_SECRET_N "))) {
        count_key_update(session);
        if (server)
            client_secret_changed(session, text);
    } else if (server && str_starts(text, STR("CLIENT_TRAFFIC_SECRET_0 "))) {
        client_secret_changed(session, text);
    } else if (session->bio.update_written && str_starts(text, STR("SERVER_TRAFFIC_SECRET_N "))) {
        derive_updated_key(session, text);
    }
}

/*
 * OpenSSL formats each secret as text for a key log callback, a twelfth of a handshake's cost: the callback is set
 * only during calls that may replace a key.
 */
static void set_keylog_callback(struct tls_session *session, SSL_CTX_keylog_cb_func listener)
{
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(session->ssl), listener);
}

/* True if the next step of the handshake provides the secret of the client's application data, and no other. */
static bool gives_client_secret(const struct tls_session *session)
{
    return tls_session_has_key(session) && SSL_is_server(session->ssl) && session->bio.output->cipher_contexts;
}

int tls_session_do_handshake(struct tls_session *session)
{
    bool gives_secret = gives_client_secret(session);
    int result;

    if (gives_secret)
        set_keylog_callback(session, secret_changed);
    result = SSL_do_handshake(session->ssl);
    if (gives_secret)
        set_keylog_callback(session, NULL);
    return result;
}

/*
 * RFC 8446 4.6.3: a request is answered before the next application data. OpenSSL recorded it and writes the answer
 * in the next handshake call.
 */
static int respond_key_update(struct tls_session *session)
{
    const struct tls_output *output = session->bio.output;

    if (session->update_rejected || SSL_get_key_update_type(session->ssl) == SSL_KEY_UPDATE_NONE)
        return 0;
    if (output->may_update_key && !output->may_update_key(session->bio.owner)) {
        session->update_rejected = true;
        return 0;
    }
    return tls_session_update_key(session);
}

int tls_session_update_key(struct tls_session *session)
{
    if (session->failed || !session->finished)
        return -EPROTO;
    if (SSL_version(session->ssl) != TLS1_3_VERSION)
        return -EOPNOTSUPP;
    tls_clear_errors();
    if (SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
        return tls_session_fail(session, "a new key cannot be derived");
    set_keylog_callback(session, secret_changed);
    int result = SSL_do_handshake(session->ssl);
    set_keylog_callback(session, NULL);
    int error = result == 1 ? 0 : tls_session_result(session, result);
    if (error == -EPROTO)
        return error;
    /* Without the new key the next record would be sealed under the old one, which the peer has discarded. */
    if (session->bio.update_written)
        return tls_session_fail(session, "OpenSSL gave no key after its KeyUpdate");
    return 0;
}

ssize_t tls_session_read_record(struct tls_session *session, char *into, size_t size)
{
    size_t length = 0;
    tls_clear_errors();
    set_keylog_callback(session, secret_changed);
    int result = SSL_read_ex(session->ssl, into, size, &length);
    set_keylog_callback(session, NULL);
    int error = result == 1 ? -EAGAIN : tls_session_result(session, result);

    if (error != -EAGAIN)
        return error;
    int update = respond_key_update(session);
    if (update < 0)
        return update;
    return result == 1 ? (ssize_t)length : -EAGAIN;
}
