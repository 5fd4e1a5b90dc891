/*
 * TLS to upstream servers: the directives that `http` and `stream` share.
 */
#ifndef UPSTREAM_UPSTREAM_SSL_H
#define UPSTREAM_UPSTREAM_SSL_H

#include "conf/directive.h"
#include "tls/tls_client.h"
#include "tls/tls_context.h"

#include <stddef.h>

/* The values of the directives of UPSTREAM_SSL_ROWS. */
struct upstream_ssl_conf {
    struct tls_client_settings settings;    /* complete after upstream_ssl_conf_complete */
    bool server_name, session_reuse;        /* directive values, stored inverted in `settings` */
    struct conf_rows commands;              /* struct tls_command */
    const struct template *name;            /* in SNI and in the certificate; NULL: the host of the target */
};

/* The choices of proxy_ssl_protocols. */
extern const char *const upstream_ssl_protocols[];

/* Reads "Options PrioritizeChaCha" into a struct tls_command. */
directive_row upstream_read_ssl_command;

/*
 * Completes the settings. If TLS is used, or trusted certificates are named at this place, also creates the TLS
 * context: an unreadable file is reported while the configuration is loaded, and workers may lack the permission to
 * read keys. `prefix` is that of the directives, "proxy". 0, or -EINVAL (reported).
 */
MUST_CHECK int upstream_ssl_conf_complete(struct upstream_ssl_conf *conf, const char *prefix, bool used,
                                          struct conf_reader *reader, const struct conf_node *at);

/* Rows of a directive table. `at` is the offset of a struct upstream_ssl_conf. */
#define UPSTREAM_SSL_ROWS(prefix, where, at)                                                                           \
    {.name = prefix "_ssl_verify",                                                                                     \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_SWITCH,                                                                                         \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.verify),                                             \
     .default_value = "on",                                                                                            \
     .example = prefix "_ssl_verify: off",                                                                             \
     .help = "Whether the certificate of a server must be trusted and match its name. Default: on."},                  \
    {.name = prefix "_ssl_trusted_certificate",                                                                        \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.trusted),                                            \
     .example = prefix "_ssl_trusted_certificate: /etc/ssl/internal-ca.pem",                                           \
     .help = "A PEM file with the trusted certificates, in place of the system's store."},                             \
    {.name = prefix "_ssl_certificate",                                                                                \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.certificate),                                        \
     .example = prefix "_ssl_certificate: /etc/ssl/client.pem",                                                        \
     .help = "A PEM file with the client certificate and its chain, for servers that request one."},                   \
    {.name = prefix "_ssl_certificate_key",                                                                            \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.key),                                                \
     .example = prefix "_ssl_certificate_key: /etc/ssl/client.key",                                                    \
     .help = "The key of " prefix "_ssl_certificate, if it is not in the same file. It is read before root "           \
             "privileges are dropped."},                                                                               \
    {.name = prefix "_ssl_password_file",                                                                              \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.passwords),                                          \
     .example = prefix "_ssl_password_file: /etc/ssl/client.passwords",                                                \
     .help = "A file of passwords for an encrypted key, one per line, which are tried in order."},                     \
    {.name = prefix "_ssl_crl",                                                                                        \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.crl),                                                \
     .example = prefix "_ssl_crl: /etc/ssl/internal-revoked.pem",                                                      \
     .help = "A PEM file with certificate revocation lists. Every authority between the server's certificate and "     \
             "the trusted one needs its list there."},                                                                 \
    {.name = prefix "_ssl_conf_command",                                                                               \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_REPEAT,                                                                                         \
     .offset = (at) + offsetof(struct upstream_ssl_conf, commands),                                                    \
     .row_size = sizeof(struct tls_command),                                                                           \
     .row = upstream_read_ssl_command,                                                                                 \
     .schema = "{\"type\": \"string\"}",                                                                               \
     .syntax = "name value",                                                                                           \
     .example = prefix "_ssl_conf_command: [SignatureAlgorithms ECDSA+SHA256, Groups X25519]",                         \
     .help = "Commands for OpenSSL, in the syntax of SSL_CONF_cmd, executed after all other TLS settings for "         \
             "upstream servers. They cannot permit versions before TLS 1.2."},                                         \
    {.name = prefix "_ssl_protocols",                                                                                  \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_FLAGS,                                                                                          \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.protocols),                                          \
     .choices = upstream_ssl_protocols,                                                                                \
     .default_value = "TLSv1.2 TLSv1.3",                                                                               \
     .example = prefix "_ssl_protocols: TLSv1.3",                                                                      \
     .help = "TLS versions for connections to upstream servers."},                                                     \
    {.name = prefix "_ssl_ciphers",                                                                                    \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_TEXT,                                                                                           \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.ciphers),                                            \
     .example = prefix "_ssl_ciphers: ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256",                             \
     .help = "Ciphers for connections to upstream servers: OpenSSL's names, of TLS 1.2 and of TLS 1.3."},              \
    {.name = prefix "_ssl_verify_depth",                                                                               \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_NUMBER,                                                                                         \
     .offset = (at) + offsetof(struct upstream_ssl_conf, settings.verify_depth),                                       \
     .default_value = "0",                                                                                             \
     .high = 100,                                                                                                      \
     .example = prefix "_ssl_verify_depth: 2",                                                                         \
     .help = "The maximum number of certificates between the server's and a trusted one; 0: OpenSSL's own limit."},    \
    {.name = prefix "_ssl_server_name",                                                                                \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_SWITCH,                                                                                         \
     .offset = (at) + offsetof(struct upstream_ssl_conf, server_name),                                                 \
     .default_value = "on",                                                                                            \
     .example = prefix "_ssl_server_name: off",                                                                        \
     .help = "Whether the server name is sent by SNI. Default: on."},                                                  \
    {.name = prefix "_ssl_session_reuse",                                                                              \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_SWITCH,                                                                                         \
     .offset = (at) + offsetof(struct upstream_ssl_conf, session_reuse),                                               \
     .default_value = "on",                                                                                            \
     .example = prefix "_ssl_session_reuse: off",                                                                      \
     .help = "Whether a connection resumes the TLS session of an earlier one, for a shorter handshake."},              \
    {.name = prefix "_ssl_name",                                                                                       \
     .scopes = (where),                                                                                                \
     .line = true,                                                                                                     \
     .type = DIRECTIVE_TEMPLATE,                                                                                       \
     .offset = (at) + offsetof(struct upstream_ssl_conf, name),                                                        \
     .example = prefix "_ssl_name: app.internal",                                                                      \
     .help = "The name in the certificate and in SNI, if it is not the host of " prefix "_pass."}

#endif
