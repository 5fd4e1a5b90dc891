/*
 * Runs one SSL: the BIO provides its input and receives its output, and a failure is reported as one error text.
 * OpenSSL's error queue is empty before and after each call.
 */
#include "tls/tls_session.h"

#include "base/limits.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdlib.h>

struct tls_session *tls_session_of(const SSL *ssl)
{
    struct tls_bio *bio = BIO_get_data(SSL_get_rbio(ssl));

    return container_of(bio, struct tls_session, bio);
}

struct tls_session *tls_session_create(struct tls_context *context, const struct tls_output *output,
                                       void *owner)
{
    struct tls_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    session->bio.output = output;
    session->bio.owner = owner;
    session->server = context->fallback;
    BIO *base = tls_bio_create(context->method, &session->bio);
    session->ssl = base ? SSL_new(context->fallback->openssl) : NULL;
    if (!session->ssl) {
        ERR_clear_error();
        BIO_free(base);
        free(session);
        return NULL;
    }
    SSL_set_bio(session->ssl, base, base);
    session->early = context->may_be_early ? EARLY_POSSIBLE : EARLY_NONE;
    if (context->client)
        SSL_set_connect_state(session->ssl);
    else
        SSL_set_accept_state(session->ssl);
    return session;
}

void tls_session_destroy(struct tls_session *session)
{
    if (!session)
        return;
    /* A session closed without close_notify remains resumable; after an alert OpenSSL has removed the session. */
    if (SSL_is_server(session->ssl))
        SSL_set_shutdown(session->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(session->ssl);
    free(session);
}

void tls_session_set_input(struct tls_session *session, struct str ciphertext)
{
    session->bio.input = ciphertext;
}

size_t tls_session_input_left(const struct tls_session *session)
{
    return session->bio.input.length;
}

struct str tls_session_return_input(struct tls_session *session)
{
    struct str rest = session->bio.input;

    session->bio.input = (struct str){NULL, 0};
    return rest;
}

/* OpenSSL sends no alert after input was cut off: it is created here (RFC 8446 6.2: unexpected_message). */
static void alert_cut(struct tls_session *session)
{
    static const char fatal[] = {2, 10};

    if (session->bio.cut && tls_session_has_key(session))
        session->bio.output->record(session->bio.owner, RECORD_ALERT, str_of(fatal, sizeof(fatal)));
}

static int session_fail(struct tls_session *session, const char *sentence)
{
    alert_cut(session);
    session->failed = true;
    session->error = sentence;
    ERR_clear_error();
    return -EPROTO;
}

/*
 * The first reason of the SSL library: a cipher's reason precedes it, and from 3.2 on "record layer failure" follows
 * it. *out_memory is set if any reason is a failed allocation.
 */
static unsigned long first_reason(bool *out_memory)
{
    unsigned long first = 0, next;

    while ((next = ERR_get_error())) {
        if (ERR_GET_REASON(next) == ERR_R_MALLOC_FAILURE)
            *out_memory = true;
        if (!first || (ERR_GET_LIB(first) != ERR_LIB_SSL && ERR_GET_LIB(next) == ERR_LIB_SSL))
            first = next;
    }
    return first;
}

/* Replaces OpenSSL's most frequent reasons by texts for administrators. */
static const char *fault_text(struct tls_session *session)
{
    unsigned long error = first_reason(&session->out_of_memory);

    if (session->out_of_memory)
        return "out of memory";
    if (tls_session_got_plain_http(session))
        return "plain HTTP was sent to a TLS port";
    if (session->bio.cut)
        return "the peer sent too many KeyUpdate or renegotiation requests";
    if (ERR_GET_LIB(error) != ERR_LIB_SSL)
        return error ? ERR_reason_error_string(error) : "the TLS connection failed";
    switch (ERR_GET_REASON(error)) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return X509_verify_cert_error_string(SSL_get_verify_result(session->ssl));
    case SSL_R_WRONG_VERSION_NUMBER:
        return session->finished ? "a record with a wrong version" : "the peer does not use TLS";
    case SSL_R_UNSUPPORTED_PROTOCOL:
        return "the client supports none of ssl_protocols";
    case SSL_R_NO_SHARED_CIPHER:
        return "no cipher is common to the client and ssl_ciphers (or the client supports no configured certificate)";
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return "the client offers only application protocols (ALPN) that are not supported";
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
        return "a record could not be decrypted";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        return "the client does not trust the certificate";
    default:
        break;
    }
    const char *reason = ERR_reason_error_string(error);
    return reason ? reason : "the TLS connection failed";
}

/* Maps a failed call on the SSL: -EAGAIN, 0 (the peer closed), or -EPROTO with its error text. */
static int ssl_result(struct tls_session *session, int result)
{
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return session->bio.cut ? session_fail(session, fault_text(session)) : -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return session_fail(session, fault_text(session));
    }
}

static void clear_errors(void)
{
    if (ERR_peek_error())
        ERR_clear_error();
}

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
        session->bio.cut = true;
}

/* The key log callback: detects KeyUpdates and derives the own key where OpenSSL does not offer it (before 3.2). */
static void secret_changed(const SSL *ssl, const char *line)
{
    struct tls_session *session = tls_session_of(ssl);
    struct str text = str_from(line);
    struct str peers = SSL_is_server(ssl) ? STR("CLIENT_TRAFFIC_SECRET_N ") : STR("SERVER_TRAFFIC_SECRET_N ");

    if (str_starts(text, peers)) {
        count_key_update(session);
    } else if (session->bio.update_written && str_starts(text, STR("SERVER_TRAFFIC_SECRET_N "))) {
        derive_updated_key(session, text);
    }
}

/* 0, -EAGAIN, -EPROTO. */
static int finish_handshake(struct tls_session *session)
{
    int result = SSL_do_handshake(session->ssl);

    if (result == 1) {
        session->finished = true;
        session->early = EARLY_NONE;
        session->bio.established = true;
        return 0;
    }
    int error = ssl_result(session, result);
    return error ? error : session_fail(session, "the peer closed the connection during the handshake");
}

/* Runs until the presence of early data is known. 0: there are none. */
static int await_early(struct tls_session *session)
{
    size_t length = 0;
    int error;

    switch (SSL_read_early_data(session->ssl, &session->first_early, 1, &length)) {
    case SSL_READ_EARLY_DATA_SUCCESS:
        session->early = EARLY_DETECTED;
        return TLS_SESSION_EARLY;
    case SSL_READ_EARLY_DATA_FINISH:
        session->early = EARLY_NONE;
        return 0;
    default:
        error = ssl_result(session, -1);
        return error ? error : session_fail(session, "the peer closed the connection during the handshake");
    }
}

int tls_session_handshake(struct tls_session *session)
{
    if (session->failed)
        return -EPROTO;
    if (session->finished)
        return 0;
    if (session->bio.consumed > LIMIT_HANDSHAKE_BYTES)
        return session_fail(session, "the handshake is too long");
    clear_errors();
    int early = session->early == EARLY_POSSIBLE ? await_early(session) : 0;
    return early ? early : finish_handshake(session);
}

bool tls_session_early(const struct tls_session *session)
{
    return session->early >= EARLY_DETECTED;
}

/* Reads early data, then the rest of the handshake: 0 once that is complete. */
static ssize_t read_early(struct tls_session *session, char *into, size_t size)
{
    size_t held = session->early == EARLY_DETECTED && size > 0, length = 0;
    int error = 0;

    clear_errors();
    if (held) {
        *into = session->first_early;
        session->early = EARLY_READING;
    }
    if (session->early == EARLY_READING && size > held) {
        switch (SSL_read_early_data(session->ssl, into + held, size - held, &length)) {
        case SSL_READ_EARLY_DATA_SUCCESS:
            break;
        case SSL_READ_EARLY_DATA_FINISH:
            session->early = EARLY_OVER;
            break;
        default:
            error = ssl_result(session, -1);
            error = error ? error : session_fail(session, "the peer closed the connection during the handshake");
            break;
        }
    }
    if (held + length > 0)
        return (ssize_t)(held + length);
    return error || session->early != EARLY_OVER ? error : finish_handshake(session);
}

/*
 * RFC 8446 4.6.3: a request is answered before the next application data. OpenSSL recorded it and writes the answer
 * in the next handshake call.
 */
static int respond_key_update(struct tls_session *session)
{
    const struct tls_output *output = session->bio.output;

    if (session->update_refused || SSL_get_key_update_type(session->ssl) == SSL_KEY_UPDATE_NONE)
        return 0;
    if (output->may_update_key && !output->may_update_key(session->bio.owner)) {
        session->update_refused = true;
        return 0;
    }
    return tls_session_update_key(session);
}

/*
 * OpenSSL formats each secret as text for a key log callback, a twelfth of a handshake's cost: the callback is set
 * only during calls that may replace a key.
 */
static void set_keylog_callback(struct tls_session *session, SSL_CTX_keylog_cb_func listener)
{
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(session->ssl), listener);
}

int tls_session_update_key(struct tls_session *session)
{
    if (session->failed || !session->finished)
        return -EPROTO;
    if (SSL_version(session->ssl) != TLS1_3_VERSION)
        return -EOPNOTSUPP;
    clear_errors();
    if (SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
        return session_fail(session, "a new key cannot be derived");
    set_keylog_callback(session, secret_changed);
    int result = SSL_do_handshake(session->ssl);
    set_keylog_callback(session, NULL);
    int error = result == 1 ? 0 : ssl_result(session, result);
    if (error == -EPROTO)
        return error;
    /* Without the new key the next record would be sealed under the old one, which the peer has discarded. */
    if (session->bio.update_written)
        return session_fail(session, "OpenSSL gave no key after its KeyUpdate");
    return 0;
}

/* Reads at most one record, so that a request for a new key is seen before OpenSSL answers it. */
static ssize_t read_one_record(struct tls_session *session, char *into, size_t size)
{
    size_t length = 0;
    clear_errors();
    set_keylog_callback(session, secret_changed);
    int result = SSL_read_ex(session->ssl, into, size, &length);
    set_keylog_callback(session, NULL);
    int error = result == 1 ? -EAGAIN : ssl_result(session, result);

    if (error != -EAGAIN)
        return error;
    int update = respond_key_update(session);
    if (update < 0)
        return update;
    return result == 1 ? (ssize_t)length : -EAGAIN;
}

ssize_t tls_session_read(struct tls_session *session, char *into, size_t size)
{
    ssize_t result;

    if (session->failed)
        return -EPROTO;
    if (tls_session_early(session) && (result = read_early(session, into, size)) != 0)
        return result;
    do {
        /* OpenSSL would answer at the peer's next message: after a refusal no input is passed on. */
        if (session->update_refused && SSL_pending(session->ssl) == 0) {
            session->bio.input = (struct str){NULL, 0};
            return -EAGAIN;
        }
        /* Without pending input, SSL_read would needlessly allocate and free a buffer. */
        if (session->bio.input.length == 0 && !SSL_has_pending(session->ssl))
            return -EAGAIN;
        result = read_one_record(session, into, size);
    } while (result == -EAGAIN && session->bio.input.length > 0);
    return result;
}

ssize_t tls_session_write(struct tls_session *session, struct str plaintext)
{
    size_t written = 0;

    if (session->failed || !tls_session_agreed(session))
        return -EPROTO;
    if (tls_session_has_key(session))
        return -EINVAL;
    if (str_empty(plaintext))
        return 0;
    clear_errors();
    int result = tls_session_early(session)
                     ? SSL_write_early_data(session->ssl, plaintext.data, plaintext.length, &written)
                     : SSL_write_ex(session->ssl, plaintext.data, plaintext.length, &written);
    if (result != 1 || written != plaintext.length)
        return session_fail(session, fault_text(session));
    return (ssize_t)written;
}

/*
 * OpenSSL cannot send close_notify during the handshake; the client may read one once it can read application data.
 */
static void shut_early(struct tls_session *session)
{
    static const char close_notify[] = {1, 0};

    if (tls_session_has_key(session))
        session->bio.output->record(session->bio.owner, RECORD_ALERT, str_of(close_notify, sizeof(close_notify)));
}

void tls_session_shutdown(struct tls_session *session)
{
    if (session->failed || session->shut || !tls_session_agreed(session))
        return;
    session->shut = true;
    if (tls_session_early(session)) {
        shut_early(session);
        return;
    }
    clear_errors();
    if (SSL_shutdown(session->ssl) < 0)
        ERR_clear_error();
}
