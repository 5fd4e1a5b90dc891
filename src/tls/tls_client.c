/*
 * Contexts and sessions in the client's role. No key is taken from OpenSSL here: what is sent to a server
 * goes through SSL_write.
 */
#include "tls/tls_client.h"

#include "base/limits.h"
#include "tls/tls_session_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

static const struct tls_settings no_settings = {.ktls = TLS_KTLS_OFF, .ktls_threshold = UINT64_MAX};

static bool load_trusted(SSL_CTX *openssl, struct str trusted)
{
    char path[4096];

    if (str_empty(trusted))
        return SSL_CTX_set_default_verify_paths(openssl) == 1;
    if (trusted.length >= sizeof(path))
        return false;
    memcpy(path, trusted.data, trusted.length);
    path[trusted.length] = '\0';
    return SSL_CTX_load_verify_file(openssl, path) == 1;
}

static bool fill(struct tls_context *context, const struct tls_client_settings *settings, char *out_error,
                 size_t error_size)
{
    static const unsigned char alpn[] = "\x08http/1.1";
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
    context->fallback = context->servers;
    context->servers->openssl = openssl;
    context->servers->settings = &no_settings;
    SSL_CTX_set_min_proto_version(openssl, TLS1_2_VERSION);
    SSL_CTX_set_options(openssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(openssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(openssl, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_verify(openssl, settings->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (SSL_CTX_set_alpn_protos(openssl, alpn, sizeof(alpn) - 1) != 0 ||
        (settings->verify && !load_trusted(openssl, settings->trusted))) {
        snprintf(out_error, error_size, "%s", tls_openssl_reason());
        return false;
    }
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
    if (fill(context, settings, out_error, error_size))
        return context;
    tls_context_destroy(context);
    return NULL;
}

static bool is_address(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

int tls_session_expect(struct tls_session *session, struct str name)
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
        good = SSL_set_tlsext_host_name(session->ssl, text) == 1 && SSL_set1_host(session->ssl, text) == 1;
    ERR_clear_error();
    return good ? 0 : -ENOMEM;
}
