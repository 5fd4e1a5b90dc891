/*
 * Runs one SSL: the BIO provides its input and receives its output, and a failure is reported as one error text.
 * OpenSSL's error queue is empty before and after each call.
 */
#include "tls/tls_session.h"

#include "base/limits.h"
#include "tls/tls_receiver.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdlib.h>

struct tls_session *tls_session_create(struct tls_context *context, const struct tls_output *output,
                                       void *owner)
{
    struct tls_session *session = calloc(1, sizeof(*session));

    if (!session)
        return NULL;
    session->bio.output = output;
    session->bio.owner = owner;
    session->server = context->default_server;
    BIO *base = tls_bio_create(context->method, &session->bio);
    session->ssl = base ? SSL_new(context->default_server->openssl) : NULL;
    if (!session->ssl) {
        ERR_clear_error();
        BIO_free(base);
        free(session);
        return NULL;
    }
    SSL_set_bio(session->ssl, base, base);
    session->early = context->accepts_early_data ? EARLY_POSSIBLE : EARLY_NONE;
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
    tls_receiver_destroy(session->receiver);
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

/* 0, TLS_SESSION_CHALLENGE, -EAGAIN, -EPROTO. */
static int finish_handshake(struct tls_session *session)
{
    int result = tls_session_do_handshake(session);

    if (result == 1) {
        session->finished = true;
        session->early = EARLY_NONE;
        session->bio.established = true;
        return tls_session_is_challenge(session) ? TLS_SESSION_CHALLENGE : 0;
    }
    int error = tls_session_result(session, result);
    return error ? error : tls_session_fail(session, "the peer closed the connection during the handshake");
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
        error = tls_session_result(session, -1);
        return error ? error : tls_session_fail(session, "the peer closed the connection during the handshake");
    }
}

int tls_session_handshake(struct tls_session *session)
{
    if (session->failed)
        return -EPROTO;
    if (session->finished)
        return 0;
    if (session->bio.consumed > LIMIT_HANDSHAKE_BYTES)
        return tls_session_fail(session, "the handshake is too long");
    tls_clear_errors();
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
    size_t first = session->early == EARLY_DETECTED && size > 0, length = 0;
    int error = 0;

    tls_clear_errors();
    if (first) {
        *into = session->first_early;
        session->early = EARLY_READING;
    }
    if (session->early == EARLY_READING && size > first) {
        switch (SSL_read_early_data(session->ssl, into + first, size - first, &length)) {
        case SSL_READ_EARLY_DATA_SUCCESS:
            break;
        case SSL_READ_EARLY_DATA_FINISH:
            session->early = EARLY_RECEIVED;
            break;
        default:
            error = tls_session_result(session, -1);
            error = error ? error : tls_session_fail(session, "the peer closed the connection during the handshake");
            break;
        }
    }
    if (first + length > 0)
        return (ssize_t)(first + length);
    return error || session->early != EARLY_RECEIVED ? error : finish_handshake(session);
}

ssize_t tls_session_read(struct tls_session *session, char *into, size_t size)
{
    ssize_t result;

    if (session->failed)
        return -EPROTO;
    if (tls_session_early(session) && (result = read_early(session, into, size)) != 0)
        return result;
    if (session->receiver && tls_receiver_pending(session->receiver))
        return tls_receiver_read(session, into, size);
    do {
        /* OpenSSL would answer at the peer's next message: after a rejection no input is passed on. */
        if (session->update_rejected && SSL_pending(session->ssl) == 0) {
            session->bio.input = (struct str){NULL, 0};
            return -EAGAIN;
        }
        /* Without pending input, SSL_read would needlessly allocate and free a buffer. */
        if (session->bio.input.length == 0 && !SSL_has_pending(session->ssl))
            return -EAGAIN;
        result = session->receiver ? tls_receiver_read(session, into, size)
                                   : tls_session_read_record(session, into, size);
    } while (result == -EAGAIN && session->bio.input.length > 0);
    return result;
}

ssize_t tls_session_write(struct tls_session *session, struct str plaintext)
{
    size_t written = 0;

    if (session->failed || !tls_session_is_negotiated(session))
        return -EPROTO;
    if (tls_session_has_key(session))
        return -EINVAL;
    if (str_empty(plaintext))
        return 0;
    tls_clear_errors();
    int result = tls_session_early(session)
                     ? SSL_write_early_data(session->ssl, plaintext.data, plaintext.length, &written)
                     : SSL_write_ex(session->ssl, plaintext.data, plaintext.length, &written);
    if (result != 1 || written != plaintext.length)
        return tls_session_fail(session, tls_session_fault(session));
    return (ssize_t)written;
}

/*
 * OpenSSL cannot send close_notify during the handshake; the client may read one once it can read application data.
 */
static void queue_early_close_notify(struct tls_session *session)
{
    static const char close_notify[] = {1, 0};

    if (tls_session_has_key(session))
        session->bio.output->record(session->bio.owner, RECORD_ALERT, str_of(close_notify, sizeof(close_notify)));
}

void tls_session_shutdown(struct tls_session *session)
{
    if (session->failed || session->close_notify_queued || !tls_session_is_negotiated(session))
        return;
    session->close_notify_queued = true;
    if (tls_session_early(session)) {
        queue_early_close_notify(session);
        return;
    }
    tls_clear_errors();
    if (SSL_shutdown(session->ssl) < 0)
        ERR_clear_error();
}
