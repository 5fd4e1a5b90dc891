/*
 * Directives of `stream` about TLS to the servers behind: as those of http, but that proxy_ssl asks for it.
 */
#include "site/core_stream.h"

#include <errno.h>
#include <stddef.h>

#define AT(field) offsetof(struct core_stream_tls, field)
#define BOTH      (SCOPE_STREAM | SCOPE_STREAM_SERVER)

/* The directive that is to blame, as far as that can be told. */
static struct conf_mark mark_of(const struct conf_node *at)
{
    static const char *const names[] = {"proxy_ssl_certificate_key", "proxy_ssl_certificate", "proxy_ssl_ciphers",
                                        "proxy_ssl_trusted_certificate", "proxy_ssl"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct conf_node *node = conf_map_get(at, str_from(names[i]));

        if (node)
            return node->mark;
    }
    return at->mark;
}

/* Made now: a file that cannot be read is better told than with the first connection, and workers may not read keys. */
static int check_tls(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct core_stream_tls *own = conf;
    char error[256];

    own->ssl.no_server_name = !own->server_name;
    own->ssl.no_reuse = !own->session_reuse;
    own->ssl.no_alpn = true;
    if (!own->on || upstreams_add_tls(reader->upstreams, &own->ssl, error, sizeof(error)) == 0)
        return 0;
    conf_error(reader->errors, mark_of(at), STR("files of PEM, as proxy_ssl_certificate: /etc/ssl/client.pem"),
               "TLS to the server cannot be set up: %s", error);
    return -EINVAL;
}

static const char *const protocols[] = {"TLSv1.2", "TLSv1.3", NULL};

static const struct directive directives[] = {
    {.name = "proxy_ssl",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(on),
     .fallback = "off",
     .example = "proxy_ssl: on",
     .help = "Whether connections to servers use TLS."},
    {.name = "proxy_ssl_verify",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ssl.verify),
     .fallback = "on",
     .example = "proxy_ssl_verify: off",
     .help = "Whether the certificate of a server must be trusted and match its name. Default: on."},
    {.name = "proxy_ssl_name",
     .scopes = BOTH,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(name),
     .example = "proxy_ssl_name: app.internal",
     .help = "The name in the certificate and in SNI, if it is not the host of proxy_pass."},
    {.name = "proxy_ssl_server_name",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(server_name),
     .fallback = "on",
     .example = "proxy_ssl_server_name: off",
     .help = "Whether the server name is sent by SNI. Default: on."},
    {.name = "proxy_ssl_trusted_certificate",
     .scopes = BOTH,
     .type = DIRECTIVE_PATH,
     .offset = AT(ssl.trusted),
     .example = "proxy_ssl_trusted_certificate: /etc/ssl/internal-ca.pem",
     .help = "A PEM file with the trusted certificates, in place of the system's store."},
    {.name = "proxy_ssl_certificate",
     .scopes = BOTH,
     .type = DIRECTIVE_PATH,
     .offset = AT(ssl.certificate),
     .example = "proxy_ssl_certificate: /etc/ssl/client.pem",
     .help = "A PEM file with the client certificate and its chain, for servers that request one."},
    {.name = "proxy_ssl_certificate_key",
     .scopes = BOTH,
     .type = DIRECTIVE_PATH,
     .offset = AT(ssl.key),
     .example = "proxy_ssl_certificate_key: /etc/ssl/client.key",
     .help = "The key of proxy_ssl_certificate, if it is not in the same file. It is read before root privileges "
             "are dropped."},
    {.name = "proxy_ssl_protocols",
     .scopes = BOTH,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(ssl.protocols),
     .choices = protocols,
     .fallback = "TLSv1.2 TLSv1.3",
     .example = "proxy_ssl_protocols: TLSv1.3",
     .help = "TLS versions for connections to upstream servers."},
    {.name = "proxy_ssl_ciphers",
     .scopes = BOTH,
     .type = DIRECTIVE_TEXT,
     .offset = AT(ssl.ciphers),
     .example = "proxy_ssl_ciphers: ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256",
     .help = "Ciphers for connections to upstream servers: OpenSSL's names, of TLS 1.2 and of TLS 1.3."},
    {.name = "proxy_ssl_verify_depth",
     .scopes = BOTH,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(ssl.verify_depth),
     .fallback = "0",
     .high = 100,
     .example = "proxy_ssl_verify_depth: 2",
     .help = "The maximum number of certificates between the server's and a trusted one; 0: OpenSSL's own limit."},
    {.name = "proxy_ssl_session_reuse",
     .scopes = BOTH,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(session_reuse),
     .fallback = "on",
     .example = "proxy_ssl_session_reuse: off",
     .help = "Whether a connection resumes the TLS session of an earlier one, for a shorter handshake."},
    {0},
};

const struct conf_group core_stream_tls_group = {
    .name = "stream_ssl",
    .directives = directives,
    .size = sizeof(struct core_stream_tls),
    .check = check_tls,
};
