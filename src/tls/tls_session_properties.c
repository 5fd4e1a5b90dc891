/*
 * Properties of a session, for the log and for variables.
 */
#include "tls/tls_session_private.h"

#include <openssl/objects.h>
#include <openssl/x509v3.h>

struct tls_session *tls_session_of(const SSL *ssl)
{
    struct tls_bio *bio = BIO_get_data(SSL_get_rbio(ssl));

    return container_of(bio, struct tls_session, bio);
}

/*
 * Recognises methods with their blank or slash: "GET /", "POST ", "PRI *", "OPTIO". TLS begins with a byte below 32.
 */
bool tls_session_got_plain_http(const struct tls_session *session)
{
    const uint8_t *first = session->bio.first_bytes;

    if (!SSL_is_server(session->ssl) || session->finished || session->bio.consumed < TLS_BIO_FIRST ||
        first[0] < 'A' || first[0] > 'Z' || first[1] < 'A' || first[1] > 'Z')
        return false;
    for (int i = 2; i < TLS_BIO_FIRST; i++) {
        bool fits = (first[i] >= 'A' && first[i] <= 'Z') || first[i] == ' ' || first[i] == '/' ||
                    first[i] == '*' || first[i] == '-';
        if (!fits)
            return false;
    }
    return true;
}

bool tls_session_out_of_memory(const struct tls_session *session)
{
    return session->out_of_memory;
}

const char *tls_session_error(const struct tls_session *session)
{
    return session->error ? session->error : "no error";
}

bool tls_session_has_key(const struct tls_session *session)
{
    return session->bio.cipher != RECORD_NONE;
}

enum tls_no_key tls_session_no_key(const struct tls_session *session)
{
    int cipher = SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(session->ssl));

    if (cipher != NID_aes_128_gcm && cipher != NID_aes_256_gcm && cipher != NID_chacha20_poly1305)
        return TLS_NO_KEY_SUITE;
    if (SSL_SESSION_get_max_fragment_length(SSL_get_session(session->ssl)) != TLSEXT_max_fragment_length_DISABLED)
        return TLS_NO_KEY_FRAGMENT;
    return TLS_NO_KEY_LIBRARY;
}

struct str tls_session_protocol(const struct tls_session *session)
{
    return str_from(tls_session_is_negotiated(session) ? SSL_get_version(session->ssl) : NULL);
}

struct str tls_session_cipher(const struct tls_session *session)
{
    if (!tls_session_is_negotiated(session))
        return str_from(NULL);
    return str_from(SSL_CIPHER_get_name(SSL_get_current_cipher(session->ssl)));
}

/* nginx's names ("X25519", "prime256v1"); groups without an OpenSSL NID by their TLS name. */
struct str tls_session_curve(const struct tls_session *session)
{
    int group = tls_session_is_negotiated(session) ? (int)SSL_get_negotiated_group(session->ssl) : NID_undef;

    if (group == NID_undef)
        return str_from(NULL);
    return str_from(group & TLSEXT_nid_unknown ? SSL_group_to_name(session->ssl, group) : OBJ_nid2sn(group));
}

struct str tls_session_alpn(const struct tls_session *session)
{
    const unsigned char *name = NULL;
    unsigned length = 0;

    if (tls_session_is_negotiated(session))
        SSL_get0_alpn_selected(session->ssl, &name, &length);
    return str_of((const char *)name, length);
}

struct str tls_session_server_name(const struct tls_session *session)
{
    if (!tls_session_is_negotiated(session))
        return str_from(NULL);
    return str_from(SSL_get_servername(session->ssl, TLSEXT_NAMETYPE_host_name));
}

struct str tls_session_id(const struct tls_session *session, char *into, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    SSL_SESSION *resumable = tls_session_is_negotiated(session) ? SSL_get_session(session->ssl) : NULL;
    unsigned length = 0;
    const unsigned char *id = resumable ? SSL_SESSION_get_id(resumable, &length) : NULL;
    size_t used = 0;

    for (unsigned i = 0; i < length && used + 2 < size; i++) {
        into[used++] = digits[id[i] >> 4];
        into[used++] = digits[id[i] & 15];
    }
    return str_of(into, used);
}

bool tls_session_reused(const struct tls_session *session)
{
    return tls_session_is_negotiated(session) && SSL_session_reused(session->ssl) == 1;
}

const struct tls_settings *tls_session_settings(const struct tls_session *session)
{
    return session->server->settings;
}

bool tls_session_certificate_covers(const struct tls_session *session, struct str host)
{
    X509 *certificate = SSL_get_certificate(session->ssl);

    return certificate && host.length > 0 && X509_check_host(certificate, host.data, host.length, 0, NULL) == 1;
}
