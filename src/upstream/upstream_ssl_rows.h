/*
 * Directives of TLS to upstream servers, shared by `http` and `stream`. `prefix` is that of their names, "proxy";
 * `at_...` are offsets in the group's struct: of its struct tls_client_settings, of the switches proxy_ssl_server_name
 * and proxy_ssl_session_reuse, and of the template proxy_ssl_name.
 */
#ifndef UPSTREAM_UPSTREAM_SSL_ROWS_H
#define UPSTREAM_UPSTREAM_SSL_ROWS_H

#include "conf/directive.h"
#include "tls/tls_client.h"

#include <stddef.h>

/* The choices of proxy_ssl_protocols. */
extern const char *const upstream_ssl_protocols[];

#define UPSTREAM_SSL_ROWS(prefix, where, at_settings, at_server_name, at_session_reuse, at_name)                       \
    {.name = prefix "_ssl_verify",                                                                                     \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_SWITCH,                                                                                         \
     .offset = (at_settings) + offsetof(struct tls_client_settings, verify),                                           \
     .default_value = "on",                                                                                            \
     .example = prefix "_ssl_verify: off",                                                                             \
     .help = "Whether the certificate of a server must be trusted and match its name. Default: on."},                  \
    {.name = prefix "_ssl_trusted_certificate",                                                                        \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at_settings) + offsetof(struct tls_client_settings, trusted),                                          \
     .example = prefix "_ssl_trusted_certificate: /etc/ssl/internal-ca.pem",                                           \
     .help = "A PEM file with the trusted certificates, in place of the system's store."},                             \
    {.name = prefix "_ssl_certificate",                                                                                \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at_settings) + offsetof(struct tls_client_settings, certificate),                                      \
     .example = prefix "_ssl_certificate: /etc/ssl/client.pem",                                                        \
     .help = "A PEM file with the client certificate and its chain, for servers that request one."},                   \
    {.name = prefix "_ssl_certificate_key",                                                                            \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_PATH,                                                                                           \
     .offset = (at_settings) + offsetof(struct tls_client_settings, key),                                              \
     .example = prefix "_ssl_certificate_key: /etc/ssl/client.key",                                                    \
     .help = "The key of " prefix "_ssl_certificate, if it is not in the same file. It is read before root "           \
             "privileges "                                                                                             \
             "are dropped."},                                                                                          \
    {.name = prefix "_ssl_protocols",                                                                                  \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_FLAGS,                                                                                          \
     .offset = (at_settings) + offsetof(struct tls_client_settings, protocols),                                        \
     .choices = upstream_ssl_protocols,                                                                                \
     .default_value = "TLSv1.2 TLSv1.3",                                                                               \
     .example = prefix "_ssl_protocols: TLSv1.3",                                                                      \
     .help = "TLS versions for connections to upstream servers."},                                                     \
    {.name = prefix "_ssl_ciphers",                                                                                    \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_TEXT,                                                                                           \
     .offset = (at_settings) + offsetof(struct tls_client_settings, ciphers),                                          \
     .example = prefix "_ssl_ciphers: ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256",                             \
     .help = "Ciphers for connections to upstream servers: OpenSSL's names, of TLS 1.2 and of TLS 1.3."},              \
    {.name = prefix "_ssl_verify_depth",                                                                               \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_NUMBER,                                                                                         \
     .offset = (at_settings) + offsetof(struct tls_client_settings, verify_depth),                                     \
     .default_value = "0",                                                                                             \
     .high = 100,                                                                                                      \
     .example = prefix "_ssl_verify_depth: 2",                                                                         \
     .help = "The maximum number of certificates between the server's and a trusted one; 0: OpenSSL's own limit."},    \
    {.name = prefix "_ssl_server_name",                                                                                \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_SWITCH,                                                                                         \
     .offset = (at_server_name),                                                                                       \
     .default_value = "on",                                                                                            \
     .example = prefix "_ssl_server_name: off",                                                                        \
     .help = "Whether the server name is sent by SNI. Default: on."},                                                  \
    {.name = prefix "_ssl_session_reuse",                                                                              \
     .scopes = (where),                                                                                                \
     .type = DIRECTIVE_SWITCH,                                                                                         \
     .offset = (at_session_reuse),                                                                                     \
     .default_value = "on",                                                                                            \
     .example = prefix "_ssl_session_reuse: off",                                                                      \
     .help = "Whether a connection resumes the TLS session of an earlier one, for a shorter handshake."},              \
    {.name = prefix "_ssl_name",                                                                                       \
     .scopes = (where),                                                                                                \
     .line = true,                                                                                                     \
     .type = DIRECTIVE_TEMPLATE,                                                                                       \
     .offset = (at_name),                                                                                              \
     .example = prefix "_ssl_name: app.internal",                                                                      \
     .help = "The name in the certificate and in SNI, if it is not the host of " prefix "_pass."}

#endif
