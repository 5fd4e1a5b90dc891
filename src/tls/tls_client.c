/*
 * Client contexts and sessions. OpenSSL keeps the write key and encrypts in SSL_write.
 */
#include "tls/tls_client.h"

#include "base/limits.h"
#include "tls/tls_client_files.h"
#include "tls/tls_session_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

static const struct tls_settings no_settings = {.ktls = TLS_KTLS_OFF, .ktls_threshold = UINT64_MAX};

static bool load_trusted(SSL_CTX *openssl, const struct tls_client_settings *settings)
{
    char path[4096];

    if (str_empty(settings->trusted) ? SSL_CTX_set_default_verify_paths(openssl) != 1
                                     : !tls_client_copy_string(settings->trusted, path, sizeof(path)) ||
                                           SSL_CTX_load_verify_file(openssl, path) != 1)
        return false;
    return str_empty(settings->crl) || tls_client_load_crls(openssl, settings->crl);
}

static bool load_certificate(SSL_CTX *openssl, const struct tls_client_settings *settings)
{
    char path[4096];

    if (str_empty(settings->certificate))
        return true;
    SSL_CTX_set_default_passwd_cb(openssl, tls_no_password);
    return tls_client_copy_string(settings->certificate, path, sizeof(path)) &&
           SSL_CTX_use_certificate_chain_file(openssl, path) == 1 &&
           tls_client_load_key(openssl, str_empty(settings->key) ? settings->certificate : settings->key,
                          settings->passwords);
}

/* TLS 1.3 suites are recognised by their prefix; a list without any entry keeps its default. */
static bool set_ciphers(SSL_CTX *openssl, struct str ciphers)
{
    char suites[1024] = "";
    char others[1024] = "";

    while (ciphers.data) {
        struct str one = str_cut(&ciphers, ':');
        char *list = str_starts(one, STR("TLS_")) ? suites : others;
        size_t length = strlen(list);

        if (length + one.length + 2 > sizeof(suites))
            return false;
        snprintf(list + length, sizeof(suites) - length, "%s" STR_FMT, length ? ":" : "", STR_ARG(one));
    }
    return (!suites[0] || SSL_CTX_set_ciphersuites(openssl, suites) == 1) &&
           (!others[0] || SSL_CTX_set_cipher_list(openssl, others) == 1);
}

static bool set_protocols(SSL_CTX *openssl, unsigned protocols)
{
    return SSL_CTX_set_min_proto_version(openssl, protocols == 2 ? TLS1_3_VERSION : TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(openssl, protocols == 1 ? TLS1_2_VERSION : 0) == 1;
}

static bool commands_equal(const struct tls_client_settings *a, const struct tls_client_settings *b)
{
    bool equal = a->command_count == b->command_count;

    for (size_t i = 0; i < a->command_count && equal; i++)
        equal = str_equal(a->commands[i].name, b->commands[i].name) &&
                str_equal(a->commands[i].value, b->commands[i].value);
    return equal;
}

bool tls_client_settings_equal(const struct tls_client_settings *a, const struct tls_client_settings *b)
{
    return a->verify == b->verify && a->no_server_name == b->no_server_name && a->no_reuse == b->no_reuse &&
           a->no_alpn == b->no_alpn && a->http2 == b->http2 &&
           a->protocols == b->protocols && a->verify_depth == b->verify_depth &&
           str_equal(a->trusted, b->trusted) && str_equal(a->certificate, b->certificate) &&
           str_equal(a->key, b->key) && str_equal(a->ciphers, b->ciphers) && str_equal(a->crl, b->crl) &&
           str_equal(a->passwords, b->passwords) && commands_equal(a, b);
}

/* An unreadable file is the first error in OpenSSL's queue, not the last. */
static const char *openssl_file_reason(void)
{
    unsigned long first = ERR_peek_error();

    if (!ERR_SYSTEM_ERROR(first))
        return tls_openssl_reason();
    ERR_clear_error();
    return strerror(ERR_GET_REASON(first));
}

static bool fill_context(struct tls_context *context, const struct tls_client_settings *settings, char *out_error,
                         size_t error_size)
{
    static const unsigned char http1[] = "\x08http/1.1", http2[] = "\x02h2";
    const unsigned char *alpn = settings->http2 ? http2 : http1;
    SSL_CTX *openssl = SSL_CTX_new(TLS_client_method());

    context->method = tls_bio_method();
    context->servers = calloc(1, sizeof(*context->servers));
    if (!openssl || !context->method || !context->servers) {
        SSL_CTX_free(openssl);
        snprintf(out_error, error_size, "out of memory");
        return false;
    }
    context->client = true;
    context->count = 1;
    context->default_server = context->servers;
    context->servers->context = context;
    context->servers->openssl = openssl;
    context->servers->settings = &no_settings;
    context->no_server_name = settings->no_server_name;
    context->no_resumption = settings->no_reuse;
    SSL_CTX_set_mode(openssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(openssl, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_verify(openssl, settings->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (settings->verify_depth)
        SSL_CTX_set_verify_depth(openssl, (int)settings->verify_depth);
    if ((!settings->no_alpn && SSL_CTX_set_alpn_protos(openssl, alpn, 1u + alpn[0]) != 0) ||
        !set_protocols(openssl, settings->protocols) || !load_certificate(openssl, settings) ||
        (!str_empty(settings->ciphers) && !set_ciphers(openssl, settings->ciphers)) ||
        (settings->verify && !load_trusted(openssl, settings)) ||
        (settings->command_count &&
         !tls_client_apply_commands(openssl, settings->commands, settings->command_count))) {
        snprintf(out_error, error_size, "%s", openssl_file_reason());
        return false;
    }
    SSL_CTX_clear_options(openssl, SSL_OP_ENABLE_KTLS | SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION);
    SSL_CTX_set_options(openssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    return true;
}

struct tls_context *tls_client_context_create(const struct tls_client_settings *settings, char *out_error,
                                              size_t error_size)
{
    struct tls_context *context = calloc(1, sizeof(*context));

    if (!context) {
        snprintf(out_error, error_size, "out of memory");
        return NULL;
    }
    if (fill_context(context, settings, out_error, error_size))
        return context;
    tls_context_destroy(context);
    return NULL;
}

static bool is_address(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

int tls_session_set_server_name(struct tls_session *session, const struct tls_context *context, struct str name)
{
    char text[LIMIT_SERVER_NAME + 1];
    bool good;

    if (str_starts(name, STR("[")) && str_ends(name, STR("]")))
        name = str_slice(name, 1, name.length - 1);
    if (str_empty(name) || name.length > LIMIT_SERVER_NAME)
        return -EINVAL;
    memcpy(text, name.data, name.length);
    text[name.length] = '\0';
    if (is_address(text))
        good = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session->ssl), text) == 1;
    else
        good = (context->no_server_name || SSL_set_tlsext_host_name(session->ssl, text) == 1) &&
               SSL_set1_host(session->ssl, text) == 1;
    ERR_clear_error();
    return good ? 0 : -ENOMEM;
}

void tls_session_resume(struct tls_session *session, struct tls_context *context, struct str name,
                        const struct tls_resumption *from)
{
    if (from->session && from->context == context && str_equal(str_from(from->name), name))
        (void)SSL_set_session(session->ssl, from->session);
    ERR_clear_error();
}

void tls_session_store(struct tls_session *session, struct tls_context *context, struct str name,
                       struct tls_resumption *into)
{
    SSL_SESSION *given = context->no_resumption || !session->finished ? NULL : SSL_get_session(session->ssl);

    /* A copy: OpenSSL invalidates the session of a connection that ends without close_notify. */
    if (given)
        given = SSL_SESSION_is_resumable(given) ? SSL_SESSION_dup(given) : NULL;
    if (!given)
        return;
    tls_resumption_finish(into);
    into->session = given;
    into->context = context;
    if (!tls_client_copy_string(name, into->name, sizeof(into->name)))
        tls_resumption_finish(into);
}

void tls_resumption_finish(struct tls_resumption *resumption)
{
    SSL_SESSION_free(resumption->session);
    resumption->session = NULL;
}
