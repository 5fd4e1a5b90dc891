/*
 * Directives of TLS: certificates, protocols and ciphers, tickets, and kernel TLS.
 */
#include "base/limits.h"
#include "site/core.h"

#include <stddef.h>

#define AT(field) offsetof(struct core_ssl, field)

static const char *const protocols[] = {"TLSv1.2", "TLSv1.3", NULL};
static const char *const verify[] = {"off", "on", "optional", "optional_no_ca", NULL};
static const char *const ktls[] = {"auto", "on", "off", NULL};

static const struct directive directives[] = {
    {.name = "ssl_certificate",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(certificates),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_certificate,
     .syntax = "file | self-signed | acme",
     .example = "ssl_certificate: [ecdsa.pem, rsa.pem]",
     .help =
         "PEM files, each with the server's certificate followed by its chain; self-signed: generated at start; or "
         "acme: obtained from a certificate authority for the names of `server_name`, and renewed (`acme`)."},
    {.name = "ssl_certificate_key",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(keys),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_file,
     .syntax = "file",
     .example = "ssl_certificate_key: [ecdsa.key, rsa.key]",
     .help = "The private keys as PEM, in the order of ssl_certificate; default: in the certificate files."},
    {.name = "acme",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_BLOCK,
     .offset = AT(acme),
     .children = core_acme_children,
     .example = "acme: {email: admin@example.org}",
     .help = "Settings of `ssl_certificate: acme`: certificates by ACME (RFC 8555) for the names of `server_name`. "
             "Its use accepts the terms of service of the authority. The client program (`client`) requests them in a "
             "process of its own. This server answers the challenges on all its addresses: one of them must be port "
             "80 of each name, or port 443 with `challenge: tls-alpn-01`. Until the first certificate arrives, a "
             "self-signed one is used; new ones are used by new connections without a reload. A certificate is "
             "renewed after two thirds of its lifetime, or in the window of the authority (ACME Renewal Information, "
             "RFC 9773) if the client requests it; after failures, the delay grows up to 12 hours. A reload tries "
             "again soon. Servers with the same first name share a certificate with the names of all."},
    {.name = "ssl_password_file",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(passwords),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_file,
     .syntax = "file",
     .example = "ssl_password_file: keys.pass",
     .help = "A file with the pass phrases of encrypted keys, one per line; the server tries each. It is read at "
             "start and when a key is reloaded, and then wiped from memory."},
    {.name = "ssl_reject_handshake",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(reject),
     .default_value = "off",
     .example = "ssl_reject_handshake: on",
     .help = "Reject TLS handshakes for this server with the alert unrecognized_name, so that a client that sends "
             "no name, or a name that is not served, gets no certificate. The server needs no certificate."},
    {.name = "ssl_certificate_cache",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(files),
     .row_size = sizeof(struct core_ssl_files),
     .row = core_ssl_read_certificate_cache,
     .default_value = "valid=10s",
     .schema =
         "{\"oneOf\": [{\"type\": \"boolean\"}, {\"type\": \"string\"}, {\"type\": \"object\", "
         "\"additionalProperties\": false, \"properties\": {\"valid\": {\"type\": \"string\"}, \"max\": "
         "{\"type\": \"integer\"}, \"inactive\": {\"type\": \"string\"}}}]}",
     .syntax = "off | valid=time",
     .example = "ssl_certificate_cache: valid=1m",
     .help = "The interval at which the files of certificates, keys, ticket keys, authorities and revocation lists "
             "are checked (the shortest of all servers applies): changed and valid files are used for new "
             "connections. off: only at a reload. nginx's options max and inactive have no effect."},
    {.name = "ssl_protocols",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(protocols),
     .choices = protocols,
     .default_value = "TLSv1.2 TLSv1.3",
     .example = "ssl_protocols: TLSv1.3",
     .help = "The permitted TLS versions."},
    {.name = "ssl_ciphers",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_TEXT,
     .offset = AT(ciphers),
     .default_value = TLS_CIPHERS_DEFAULT,
     .example = "ssl_ciphers: ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
     .help = "Cipher suites of TLS 1.2, by OpenSSL's names; by default AES-128-GCM is first, which the kernel "
             "encrypts fastest."},
    {.name = "ssl_ciphersuites",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_TEXT,
     .offset = AT(ciphersuites),
     .default_value = TLS_CIPHERSUITES_DEFAULT,
     .example = "ssl_ciphersuites: TLS_AES_128_GCM_SHA256",
     .help = "Cipher suites of TLS 1.3."},
    {.name = "ssl_ecdh_curve",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_TEXT,
     .offset = AT(curves),
     .default_value = "auto",
     .example = "ssl_ecdh_curve: X25519:prime256v1",
     .help = "Groups of the key exchange, in order of preference: ?X25519MLKEM768:X25519:prime256v1, where ? "
             "means: if this OpenSSL has it (X25519MLKEM768 from 3.5 on). auto: OpenSSL's default, which prefers "
             "that group where available."},
    {.name = "ssl_dhparam",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(dh_parameters),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_dh,
     .syntax = "file | auto",
     .example = "ssl_dhparam: auto",
     .help = "Parameters for suites of TLS 1.2 whose names begin with DHE, if `ssl_ciphers` has any: a PEM file of "
             "at least 2048 bits, or auto: groups of OpenSSL, of the strength of the certificate's key. Without it "
             "these suites are not used; the default list has none."},
    {.name = "ssl_conf_command",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(commands),
     .row_size = sizeof(struct core_ssl_commands),
     .row = core_ssl_read_commands,
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\", \"additionalProperties\": "
               "{\"type\": \"string\"}}]}",
     .syntax = "name value",
     .example = "ssl_conf_command: [Options PrioritizeChaCha, {SignatureAlgorithms: 'ECDSA+SHA256:RSA-PSS+SHA256'}]",
     .help = "Settings of OpenSSL by its own names (SSL_CONF_cmd), applied after all others, in their order. "
             "Settings that name files, or that sluice overrides, are rejected."},
    {.name = "ssl_prefer_server_ciphers",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(prefer_server_ciphers),
     .default_value = "on",
     .example = "ssl_prefer_server_ciphers: off",
     .help = "The server's order of cipher suites decides, not the client's (on by default, unlike nginx)."},
    {.name = "ssl_session_tickets",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(session_tickets),
     .default_value = "on",
     .example = "ssl_session_tickets: off",
     .help = "Let clients resume sessions by tickets; one ticket per handshake."},
    {.name = "ssl_session_cache",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(session_cache),
     .row_size = sizeof(struct core_ssl_cache),
     .row = core_ssl_read_cache,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .syntax = "off | none | builtin[:number] | shared:name:size",
     .example = "ssl_session_cache: shared:SSL:10m",
     .help = "Cache the sessions of clients without tickets: those of TLS 1.2 that do not support them, and all if "
             "`ssl_session_tickets: off`. shared:NAME:SIZE is memory that all workers and all servers with that "
             "name share (1m: about 3000 sessions); builtin or builtin:NUMBER is a cache without a name for that "
             "number of sessions; off and none (default): no cache."},
    {.name = "ssl_alpn",
     .scopes = SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_WORDS,
     .offset = AT(alpn),
     .example = "ssl_alpn: postgresql",
     .help = "Protocols for ALPN, in order of preference; a client that offers only others is rejected. Without it "
             "ALPN is not used."},
    {.name = "ssl_early_data",
     .scopes = SCOPE_HTTP | SCOPE_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(early_data),
     .default_value = "off",
     .example = "ssl_early_data: on",
     .help = "Accept requests in the first bytes of a resumed connection (0-RTT). An attacker can replay them: "
             "this machine accepts each only once, only GET, HEAD and OPTIONS without a body are answered, others "
             "and those to servers without early data get 425, and upstream servers receive `Early-Data: 1` "
             "(RFC 8470)."},
    {.name = "ssl_session_ticket_key",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(ticket_keys),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_file,
     .syntax = "file",
     .example = "ssl_session_ticket_key: [new.key, old.key]",
     .help = "Files of 80 bytes (or 48), for several machines with the same tickets: the first one encrypts "
             "tickets, all of them decrypt. Without it keys are generated at start and again whenever the longest "
             "`ssl_session_timeout` has passed, or at once by `sluice ctl ticket-keys rotate`; workers share them, and "
             "a reload keeps them."},
    {.name = "ssl_session_timeout",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_DURATION,
     .offset = AT(session_timeout_ms),
     .low = 1000,
     .high = 7ull * 86400 * 1000,
     .default_value = "5m",
     .example = "ssl_session_timeout: 1d",
     .help = "How long a session may be resumed; at most seven days (RFC 8446 4.6.1)."},
    {.name = "ssl_verify_client",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(verify_client),
     .choices = verify,
     .default_value = "off",
     .example = "ssl_verify_client: optional",
     .help = "Request client certificates. on: a client without a certificate, or with one that is not trusted, "
             "gets 400 (for error_page: 496, 495); optional: a client without a certificate is accepted, too; "
             "optional_no_ca: also a certificate with an unknown issuer. A request for a server other than that of "
             "the connection gets 421."},
    {.name = "ssl_client_certificate",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(client_certificate),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_file,
     .syntax = "file",
     .example = "ssl_client_certificate: clients-ca.pem",
     .help = "A PEM file of certificate authorities that are trusted for client certificates; their names are sent "
             "to clients."},
    {.name = "ssl_trusted_certificate",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(trusted_certificate),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_file,
     .syntax = "file",
     .example = "ssl_trusted_certificate: clients-ca.pem",
     .help = "A PEM file of certificate authorities that are trusted for client certificates; their names are not "
             "sent to clients."},
    {.name = "ssl_verify_depth",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(verify_depth),
     .low = 0,
     .high = 100,
     .default_value = "1",
     .example = "ssl_verify_depth: 2",
     .help = "The maximum number of certificates between the client's and a trusted one."},
    {.name = "ssl_crl",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(crl),
     .row_size = sizeof(struct core_file),
     .row = core_ssl_read_file,
     .syntax = "file",
     .example = "ssl_crl: revoked.pem",
     .help =
         "A PEM file of certificate revocation lists: each authority of a client's chain needs one."},
    {.name = "ssl_buffer_size",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_SIZE,
     .offset = AT(buffer_size),
     .low = 1024,
     .high = LIMIT_RECORD_PLAINTEXT,
     .default_value = "16k",
     .example = "ssl_buffer_size: 4k",
     .help = "The maximum length of a record that is encrypted in user space; the kernel always sends full records."},
    {.name = "ssl_dyn_rec_enable",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(small_records),
     .default_value = "on",
     .example = "ssl_dyn_rec_enable: off",
     .help =
         "Encrypt the first 64 KiB in records of one TCP segment, and again after a pause of a "
                      "second, so that a browser can decrypt the first segment when it arrives; off: all records "
                      "have `ssl_buffer_size`."},
    {.name = "ssl_ktls",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(ktls),
     .choices = ktls,
     .default_value = "auto",
     .example = "ssl_ktls: off",
     .help = "Pass session keys to the kernel, which encrypts what sendfile sends. on: the server does not "
             "start if kernel TLS is not available. auto: where the kernel supports it, the server measures at start "
             "(at most 100 ms) whether kernel or user space takes less CPU time for large bodies, and uses that; a "
             "NIC with `tls-hw-tx-offload` always encrypts."},
    {.name = "ssl_ktls_threshold",
     .scopes = SCOPE_HTTP | SCOPE_SERVER | SCOPE_STREAM | SCOPE_STREAM_SERVER,
     .type = DIRECTIVE_SIZE,
     .offset = AT(ktls_threshold),
     .default_value = "64k",
     .example = "ssl_ktls_threshold: 32k",
     .help =
         "Bodies of at least this size enable kernel TLS on their connection; smaller ones are "
                      "encrypted in user space."},
    {0},
};

const struct conf_group core_ssl_group = {
    .name = "ssl",
    .directives = directives,
    .size = sizeof(struct core_ssl),
    .check = core_ssl_check,
};
