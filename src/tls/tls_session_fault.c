/*
 * The failure of a session: its error text and its alert.
 */
#include "tls/tls_session_private.h"

#include <errno.h>
#include <openssl/err.h>

enum alert { UNEXPECTED_MESSAGE = 10, INTERNAL_ERROR = 80 }; /* RFC 8446 B.2 */

void tls_clear_errors(void)
{
    if (ERR_peek_error())
        ERR_clear_error();
}

/* Queues a fatal alert that OpenSSL does not send. */
static void queue_alert(struct tls_session *session, uint8_t description)
{
    const char fatal[] = {2, (char)description};

    if (tls_session_has_key(session))
        session->bio.output->record(session->bio.owner, RECORD_ALERT, str_of(fatal, sizeof(fatal)));
}

int tls_session_fail(struct tls_session *session, const char *text)
{
    if (session->bio.input_closed)
        queue_alert(session, UNEXPECTED_MESSAGE); /* RFC 8446 6.2 */
    session->failed = true;
    session->error = text;
    ERR_clear_error();
    return -EPROTO;
}

int tls_session_reject(struct tls_session *session, uint8_t alert, const char *text)
{
    queue_alert(session, alert);
    return tls_session_fail(session, text);
}

int tls_session_fail_allocation(struct tls_session *session)
{
    session->out_of_memory = true;
    return tls_session_reject(session, INTERNAL_ERROR, "out of memory");
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

const char *tls_session_fault(struct tls_session *session)
{
    unsigned long error = first_reason(&session->out_of_memory);

    if (session->out_of_memory)
        return "out of memory";
    if (tls_session_got_plain_http(session))
        return "plain HTTP was sent to a TLS port";
    if (session->bio.input_closed)
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
    case SSL_R_CALLBACK_FAILED:
        if (tls_session_is_challenge(session))
            return "no challenge tls-alpn-01 is pending for the name that the client sent";
        break;
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

int tls_session_result(struct tls_session *session, int result)
{
    switch (SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return session->bio.input_closed ? tls_session_fail(session, tls_session_fault(session)) : -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return tls_session_fail(session, tls_session_fault(session));
    }
}
