/*
 * Variables of TLS: what was agreed with the client, and what it has shown of itself.
 */
#include "server/variables.h"

#include "server/connection.h"

#define ABSENT ((struct str){NULL, 0})

static const struct tls_session *tls_of(const void *subject)
{
    return request_state_of(subject)->connection->wire.tls;
}

static struct str get_ssl_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_of(subject) ? tls_session_protocol(tls_of(subject)) : ABSENT;
}

static struct str get_ssl_cipher(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_of(subject) ? tls_session_cipher(tls_of(subject)) : ABSENT;
}

static struct str get_ssl_curve(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_of(subject) ? tls_session_curve(tls_of(subject)) : ABSENT;
}

static struct str get_ssl_alpn_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_of(subject) ? tls_session_alpn(tls_of(subject)) : ABSENT;
}

static struct str get_ssl_server_name(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_of(subject) ? tls_session_server_name(tls_of(subject)) : ABSENT;
}

static struct str get_ssl_session_reused(const void *subject, struct str parameter, struct arena *arena)
{
    if (!tls_of(subject))
        return ABSENT;
    return tls_session_reused(tls_of(subject)) ? STR("r") : STR(".");
}

static struct str get_ssl_session_id(const void *subject, struct str parameter, struct arena *arena)
{
    char text[80];

    if (!tls_of(subject))
        return ABSENT;
    return arena_copy(arena, tls_session_id(tls_of(subject), text, sizeof(text)));
}

/* The client's certificate: empty where it has shown none. */
#define OF_CERTIFICATE(name, fact)                                                                           \
    static struct str get_ssl_client_##name(const void *subject, struct str parameter, struct arena *arena)  \
    {                                                                                                        \
        return tls_of(subject) ? tls_session_client_fact(tls_of(subject), fact, arena) : ABSENT;             \
    }

OF_CERTIFICATE(cert, TLS_CLIENT_PEM_FOLDED)
OF_CERTIFICATE(escaped_cert, TLS_CLIENT_PEM_ESCAPED)
OF_CERTIFICATE(fingerprint, TLS_CLIENT_FINGERPRINT)
OF_CERTIFICATE(i_dn, TLS_CLIENT_ISSUER)
OF_CERTIFICATE(raw_cert, TLS_CLIENT_PEM)
OF_CERTIFICATE(s_dn, TLS_CLIENT_SUBJECT)
OF_CERTIFICATE(serial, TLS_CLIENT_SERIAL)
OF_CERTIFICATE(v_end, TLS_CLIENT_END)
OF_CERTIFICATE(v_remain, TLS_CLIENT_REMAIN)
OF_CERTIFICATE(v_start, TLS_CLIENT_START)

static struct str get_ssl_early(const void *subject, struct str parameter, struct arena *arena)
{
    return request_state_of(subject)->early ? STR("1") : STR("");
}

static struct str get_ssl_client_verify(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_of(subject) ? tls_session_client_verify(tls_of(subject), arena) : ABSENT;
}

static const struct variable variables[] = {
    {"ssl_alpn_protocol", false, get_ssl_alpn_protocol, .type = "text",
     .help = "Protocol selected by ALPN."},
    {"ssl_cipher", false, get_ssl_cipher, .type = "text",
     .help = "Cipher suite of the connection."},
    {"ssl_client_cert", false, get_ssl_client_cert, .type = "text",
     .help = "Certificate of the client in PEM; lines after the first begin with a tab."},
    {"ssl_client_escaped_cert", false, get_ssl_client_escaped_cert, .type = "text",
     .help = "Certificate of the client in PEM, percent-encoded."},
    {"ssl_client_fingerprint", false, get_ssl_client_fingerprint, .type = "text",
     .help = "SHA-1 of the certificate of the client, in hexadecimal digits."},
    {"ssl_client_i_dn", false, get_ssl_client_i_dn, .type = "text",
     .help = "Issuer of the certificate of the client (RFC 2253)."},
    {"ssl_client_raw_cert", false, get_ssl_client_raw_cert, .type = "text",
     .help = "Certificate of the client in PEM."},
    {"ssl_client_s_dn", false, get_ssl_client_s_dn, .type = "text",
     .help = "Subject of the certificate of the client (RFC 2253)."},
    {"ssl_client_serial", false, get_ssl_client_serial, .type = "text",
     .help = "Serial number of the certificate of the client."},
    {"ssl_client_v_end", false, get_ssl_client_v_end, .type = "time",
     .help = "End of the validity of the client certificate."},
    {"ssl_client_v_remain", false, get_ssl_client_v_remain, .type = "number",
     .help = "Days until the client certificate expires."},
    {"ssl_client_v_start", false, get_ssl_client_v_start, .type = "time",
     .help = "Start of the validity of the client certificate."},
    {"ssl_client_verify", false, get_ssl_client_verify, .type = "text",
     .help = "SUCCESS, NONE without a certificate, or FAILED with the reason."},
    {"ssl_curve", false, get_ssl_curve, .type = "text",
     .help = "Group of the key exchange."},
    {"ssl_early_data", false, get_ssl_early, .type = "text",
     .help = "\"1\" while the request is TLS 1.3 early data, else empty."},
    {"ssl_protocol", false, get_ssl_protocol, .type = "text",
     .help = "Version of TLS: TLSv1.2, TLSv1.3."},
    {"ssl_server_name", false, get_ssl_server_name, .type = "text",
     .help = "Name in the client's SNI extension."},
    {"ssl_session_id", false, get_ssl_session_id, .type = "text",
     .help = "Identifier of the session, in hexadecimal digits."},
    {"ssl_session_reused", false, get_ssl_session_reused, .type = "text",
     .help = "\"r\" if the session was resumed, \".\" if not."},
};

const struct variable_table variables_tls = {
    variables,
    sizeof(variables) / sizeof(variables[0]),
    &variables_answer,
};
