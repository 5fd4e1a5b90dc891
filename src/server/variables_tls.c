/*
 * Variables of TLS: the negotiated parameters and the client's certificate. The rows of variables_of_tls have a TLS
 * session as their subject; `http` and `stream` share them.
 */
#include "server/variables.h"

#include "server/connection.h"

static struct str get_ssl_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_protocol(subject);
}

static struct str get_ssl_cipher(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_cipher(subject);
}

static struct str get_ssl_curve(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_curve(subject);
}

static struct str get_ssl_alpn_protocol(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_alpn(subject);
}

static struct str get_ssl_server_name(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_server_name(subject);
}

static struct str get_ssl_session_reused(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_reused(subject) ? STR("r") : STR(".");
}

/* Variables of the client certificate; empty without one. */
#define OF_CERTIFICATE(name, fact)                                                                           \
    static struct str get_ssl_client_##name(const void *subject, struct str parameter, struct arena *arena)  \
    {                                                                                                        \
        return tls_session_client_property(subject, fact, arena);                                                \
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

static struct str get_ssl_client_verify(const void *subject, struct str parameter, struct arena *arena)
{
    return tls_session_client_verify(subject, arena);
}

const struct variable variables_of_tls[VARIABLES_OF_TLS] = {
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
    {"ssl_protocol", false, get_ssl_protocol, .type = "text",
     .help = "Version of TLS: TLSv1.2, TLSv1.3."},
    {"ssl_server_name", false, get_ssl_server_name, .type = "text",
     .help = "Name in the client's SNI extension."},
    {"ssl_session_reused", false, get_ssl_session_reused, .type = "text",
     .help = "\"r\" if the session was resumed, \".\" if not."},
};

static const void *tls_of(const void *subject)
{
    return request_state_of(subject)->connection->wire.tls;
}

/* Only for exchanges. */

static struct str get_ssl_session_id(const void *subject, struct str parameter, struct arena *arena)
{
    const struct tls_session *tls = tls_of(subject);
    char text[80];

    if (!tls)
        return (struct str){NULL, 0};
    return arena_copy(arena, tls_session_id(tls, text, sizeof(text)));
}

static struct str get_ssl_early(const void *subject, struct str parameter, struct arena *arena)
{
    return request_state_of(subject)->early ? STR("1") : STR("");
}

static const struct variable variables[] = {
    {"ssl_early_data", false, get_ssl_early, .type = "text",
     .help = "\"1\" while the request is TLS 1.3 early data, else empty."},
    {"ssl_session_id", false, get_ssl_session_id, .type = "text",
     .help = "Identifier of the session, in hexadecimal digits."},
};

static const struct variable_table variables_exchange = {
    .variables = variables,
    .count = sizeof(variables) / sizeof(variables[0]),
    .next = &variables_response,
};

const struct variable_table variables_tls = {variables_of_tls, VARIABLES_OF_TLS, &variables_exchange, tls_of};
