/*
 * One SSL_CTX per virtual server, and the choice between them when a client names
 * one: in the client-hello callback, before anything is negotiated, so that protocols, ciphers, curves,
 * tickets and ALPN are all those of the server that was asked for.
 */
#include "tls/tls_context.h"

#include "base/limits.h"

#include "tls/tls_bio.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Room for two paths and the words around them. */
enum { FAULT_TEXT = 2 * PATH_MAX + 512 };

struct tls_failure tls_failure_at(const struct tls_failure *failure, const char *directive, size_t index)
{
    struct tls_failure at = *failure;

    at.fault.directive = directive;
    at.fault.index = index;
    return at;
}

bool tls_fail(const struct tls_failure *failure, const char *format, ...)
{
    struct tls_fault fault = failure->fault;
    char text[FAULT_TEXT];
    char *hint;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hint = strchr(text, '\n');
    if (hint)
        *hint++ = '\0';
    fault.text = text;
    fault.hint = hint ? hint : "";
    failure->told(failure->owner, &fault);
    return false;
}

const char *tls_openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return reason ? reason : "out of memory";
}

/* The host name in the ClientHello (RFC 6066 3); empty where there is none or it is malformed, which OpenSSL
 * refuses later. */
static struct str hello_name(SSL *ssl)
{
    const unsigned char *bytes;
    size_t length;

    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &length) != 1 || length < 5)
        return (struct str){NULL, 0};
    size_t list = (size_t)bytes[0] << 8 | bytes[1], name = (size_t)bytes[3] << 8 | bytes[4];
    if (list != length - 2 || bytes[2] != TLSEXT_NAMETYPE_host_name || name > length - 5)
        return (struct str){NULL, 0};
    return str_of((const char *)bytes + 5, name);
}

/* OpenSSL's own list; before 3.5 it has no name. */
static bool set_default_groups(SSL *ssl)
{
    bool good = SSL_set1_groups_list(ssl, "DEFAULT") == 1 ||
                SSL_set1_groups_list(ssl, "X25519:P-256:X448:P-521:P-384") == 1;

    ERR_clear_error();
    return good;
}

/* SSL_set_SSL_CTX changes certificates and callbacks only: what SSL_new had copied is copied again here. */
static bool switch_server(SSL *ssl, const struct tls_server *from, const struct tls_server *server)
{
    if (!SSL_set_SSL_CTX(ssl, server->openssl))
        return false;
    SSL_clear_options(ssl, SSL_get_options(ssl));
    SSL_set_options(ssl, SSL_CTX_get_options(server->openssl));
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(server->openssl), NULL);
    SSL_set_verify_depth(ssl, SSL_CTX_get_verify_depth(server->openssl));
    if (server->groups ? SSL_set1_groups_list(ssl, server->groups) != 1
                       : from->groups && !set_default_groups(ssl))
        return false;
    return SSL_set_min_proto_version(ssl, SSL_CTX_get_min_proto_version(server->openssl)) == 1 &&
           SSL_set_max_proto_version(ssl, SSL_CTX_get_max_proto_version(server->openssl)) == 1 &&
           SSL_set_num_tickets(ssl, SSL_CTX_get_num_tickets(server->openssl)) == 1;
}

/* The first server with a regular expression that fits; an absolute name is the same without its last dot. */
static const struct tls_server *find_pattern(const struct tls_context *context, struct str name)
{
    if (name.length > 1 && name.data[name.length - 1] == '.')
        name.length--;
    if (str_empty(name) || name.length > LIMIT_SERVER_NAME)
        return NULL;
    for (size_t i = 0; i < context->count; i++) {
        const struct tls_settings *settings = context->servers[i].settings;

        for (size_t k = 0; k < settings->pattern_count; k++) {
            if (regex_match(settings->patterns[k], name) == 1)
                return &context->servers[i];
        }
    }
    return NULL;
}

static int hello_arrived(SSL *ssl, int *alert, void *argument)
{
    const struct tls_context *context = argument;
    const struct tls_server *server = tls_names_find(&context->names, hello_name(ssl));

    if (!server)
        server = find_pattern(context, hello_name(ssl));
    if (!server)
        server = context->fallback;
    tls_session_of(ssl)->server = server;
    if (SSL_get_SSL_CTX(ssl) == server->openssl || switch_server(ssl, context->fallback, server))
        return SSL_CLIENT_HELLO_SUCCESS;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Only so that OpenSSL confirms the name (RFC 6066 3) and keeps it: the choice has been made by now. */
static int name_confirmed(SSL *ssl, int *alert, void *argument)
{
    return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

/* RFC 7301 3.2: the server's order counts, and a client that offers only strangers is told so. */
static int protocol_chosen(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *offered, unsigned offered_length, void *argument)
{
    const struct tls_server *server = argument;
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, out_length, server->alpn, server->alpn_length, offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_alpn(struct tls_server *server, const struct tls_failure *failure)
{
    const struct str usual = STR("http/1.1"), *names = server->settings->alpn;
    size_t count = server->settings->alpn_count, length = 0;

    if (count == 0) {
        names = &usual;
        count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (str_empty(names[i]) || names[i].length > 255)
            return tls_fail(failure, "\"" STR_FMT "\" is no protocol name for ALPN", STR_ARG(names[i]));
        length += 1 + names[i].length;
    }
    unsigned char *list = malloc(length), *next = list;
    if (!list)
        return tls_fail(failure, "out of memory");
    for (size_t i = 0; i < count; i++) {
        *next++ = (unsigned char)names[i].length;
        memcpy(next, names[i].data, names[i].length);
        next += names[i].length;
    }
    server->alpn = list;
    server->alpn_length = (unsigned)length;
    SSL_CTX_set_alpn_select_cb(server->openssl, protocol_chosen, server);
    return true;
}

static bool set_protocols(struct tls_server *server, const struct tls_failure *failure)
{
    unsigned protocols = server->settings->protocols;
    int least = protocols == TLS_PROTOCOL_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    int most = protocols == TLS_PROTOCOL_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;

    if (SSL_CTX_set_min_proto_version(server->openssl, least) == 1 &&
        SSL_CTX_set_max_proto_version(server->openssl, most) == 1)
        return true;
    return tls_fail(failure, "ssl_protocols cannot be set: %s", tls_openssl_reason());
}

struct list_setting {
    const char *directive;
    int (*set)(SSL_CTX *openssl, const char *list);
    const char *hint;
};

/* Calls an OpenSSL setter that takes a list as text. */
static bool set_list(SSL_CTX *openssl, const struct list_setting *setting, struct str list,
                     const struct tls_failure *failure)
{
    struct tls_failure at = tls_failure_at(failure, setting->directive, 0);
    char *text = strndup(list.data, list.length);

    if (!text)
        return tls_fail(failure, "out of memory");
    bool good = setting->set(openssl, text) == 1;
    free(text);
    if (!good)
        return tls_fail(&at, "%s: \"" STR_FMT "\" is not understood by OpenSSL: %s\n%s", setting->directive,
                        STR_ARG(list), tls_openssl_reason(), setting->hint);
    return true;
}

static bool set_ciphers(struct tls_server *server, const struct tls_failure *failure)
{
    const struct tls_settings *settings = server->settings;
    struct str ciphers = str_empty(settings->ciphers) ? STR(TLS_CIPHERS_DEFAULT) : settings->ciphers;
    struct str suites =
        str_empty(settings->ciphersuites) ? STR(TLS_CIPHERSUITES_DEFAULT) : settings->ciphersuites;

    static const struct list_setting old = {"ssl_ciphers", SSL_CTX_set_cipher_list,
                                            "openssl ciphers -v lists what there is; those of TLS 1.3 stand in "
                                            "ssl_ciphersuites"};
    static const struct list_setting new = {"ssl_ciphersuites", SSL_CTX_set_ciphersuites,
                                            "openssl ciphers -v -s -tls1_3 lists what there is"};
    bool good = set_list(server->openssl, &old, ciphers, failure);

    return set_list(server->openssl, &new, suites, failure) && good;
}

static int set_groups_text(SSL_CTX *openssl, const char *groups)
{
    return (int)SSL_CTX_set1_groups_list(openssl, groups);
}

static bool set_curves(struct tls_server *server, const struct tls_failure *failure)
{
    static const struct list_setting setting = {"ssl_ecdh_curve", set_groups_text,
                                                "for example X25519:prime256v1; auto leaves it to OpenSSL"};
    struct str curves = server->settings->curves;

    if (str_empty(curves) || str_equal(curves, STR("auto")))
        return true;
    if (!set_list(server->openssl, &setting, curves, failure))
        return false;
    server->groups = strndup(curves.data, curves.length);
    return server->groups || tls_fail(failure, "out of memory");
}

static void set_options(struct tls_server *server)
{
    SSL_CTX_set_options(server->openssl,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS);
    if (server->settings->prefer_server_ciphers)
        SSL_CTX_set_options(server->openssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(server->openssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(server->openssl, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_tlsext_servername_callback(server->openssl, name_confirmed);
}

/* A ticket of one virtual server resumes no session of another: the context is the digest of its certificate, and of all that clients'
 * certificates are judged by. */
static bool set_session_context(struct tls_server *server, const struct tls_failure *failure)
{
    unsigned char digest[EVP_MAX_MD_SIZE], leaf[EVP_MAX_MD_SIZE];
    unsigned length = 0, leaf_length = 0;
    const X509 *certificate = SSL_CTX_get0_certificate(server->openssl);

    if (certificate && X509_digest(certificate, EVP_sha256(), leaf, &leaf_length) == 1 &&
        EVP_DigestUpdate(server->digest, leaf, leaf_length) == 1 &&
        EVP_DigestFinal_ex(server->digest, digest, &length) == 1 &&
        SSL_CTX_set_session_id_context(server->openssl, digest, length) == 1)
        return true;
    return tls_fail(failure, "the session context cannot be set: %s", tls_openssl_reason());
}

static bool load_certificates(struct tls_server *server, struct log *log, const struct tls_failure *failure)
{
    const struct tls_settings *settings = server->settings;
    bool good = true;

    if (settings->certificate_count == 0)
        return tls_fail(failure, "no ssl_certificate is given\nname a PEM file, or say self-signed");
    for (size_t i = 0; i < settings->certificate_count; i++) {
        bool self_signed = str_equal(settings->certificates[i].certificate, STR("self-signed"));

        good &= self_signed ? tls_self_signed_make(server, log, failure)
                            : tls_certificate_load(server, &settings->certificates[i], i, log, failure);
    }
    return good;
}

static bool load_server(struct tls_server *server, struct log *log, const struct tls_failure *failure)
{
    server->openssl = SSL_CTX_new(TLS_server_method());
    server->digest = EVP_MD_CTX_new();
    if (!server->openssl || !server->digest || EVP_DigestInit_ex(server->digest, EVP_sha256(), NULL) != 1)
        return tls_fail(failure, "OpenSSL: %s", tls_openssl_reason());
    set_options(server);
    /* All of them, so that everything that is wrong is told. */
    bool good = tls_tickets_set(server, failure);
    good &= set_protocols(server, failure);
    good &= set_ciphers(server, failure);
    good &= set_curves(server, failure);
    good &= set_alpn(server, failure);
    good &= tls_verify_set(server, failure);
    good &= load_certificates(server, log, failure);
    good = good && set_session_context(server, failure);
    EVP_MD_CTX_free(server->digest);
    server->digest = NULL;
    return good;
}

static bool index_names(struct tls_context *context, struct tls_server *server, struct log *log,
                        const struct tls_failure *failure)
{
    for (size_t i = 0; i < server->settings->name_count; i++) {
        struct str name = server->settings->names[i];
        int error = tls_names_add(&context->names, name, server);
        if (error == -EEXIST)
            log_write(log, LOG_WARN,
                      "the server name \"" STR_FMT "\" is given twice for one address: the first one counts",
                      STR_ARG(name));
        else if (error == -EINVAL)
            return tls_fail(
                failure, "\"" STR_FMT "\" is no server name: a \"*\" may only be the first or the last label",
                STR_ARG(name));
        else if (error < 0)
            return tls_fail(failure, "out of memory");
    }
    return true;
}

static bool load(struct tls_context *context, const struct tls_settings *servers, struct log *log,
                 struct tls_failure *failure)
{
    bool good = true;

    context->method = tls_bio_method();
    if (!context->servers || !context->method)
        return tls_fail(failure, "out of memory");
    context->tickets = &context->own;
    if (ticket_keys_rotate(&context->own) < 0)
        return tls_fail(failure, "keys of session tickets cannot be drawn: there is no randomness");
    for (size_t i = 0; i < context->count; i++) {
        struct tls_server *server = &context->servers[i];
        server->context = context;
        server->settings = &servers[i];
        failure->fault.server = i;
        good &= load_server(server, log, failure);
        good &= index_names(context, server, log, failure);
        if (!context->fallback && servers[i].is_default)
            context->fallback = server;
    }
    if (!context->fallback)
        context->fallback = &context->servers[0];
    if (good)
        SSL_CTX_set_client_hello_cb(context->fallback->openssl, hello_arrived, context);
    return good;
}

struct tls_context *tls_context_load(const struct tls_settings *servers, size_t count, struct log *log,
                                     tls_fault_told *told, void *owner)
{
    struct tls_failure failure = {told, owner, {.directive = ""}};
    struct tls_context *context = count ? calloc(1, sizeof(*context)) : NULL;

    if (!context) {
        tls_fail(&failure, count ? "out of memory" : "no server is given");
        return NULL;
    }
    tls_names_init(&context->names);
    context->count = count;
    context->servers = calloc(count, sizeof(*context->servers));
    bool good = load(context, servers, log, &failure);
    ERR_clear_error();
    if (good)
        return context;
    tls_context_destroy(context);
    return NULL;
}

struct one_sentence {
    char *text;
    size_t size;
    bool told;
};

static void keep_first(void *owner, const struct tls_fault *fault)
{
    struct one_sentence *sentence = owner;

    if (!sentence->told)
        snprintf(sentence->text, sentence->size, "%s%s%s", fault->text, *fault->hint ? "; " : "", fault->hint);
    sentence->told = true;
}

struct tls_context *tls_context_create(const struct tls_settings *servers, size_t count, struct log *log,
                                       char *out_error, size_t error_size)
{
    struct one_sentence sentence = {out_error, error_size, false};

    return tls_context_load(servers, count, log, keep_first, &sentence);
}

void tls_context_destroy(struct tls_context *context)
{
    if (!context)
        return;
    for (size_t i = 0; context->servers && i < context->count; i++) {
        SSL_CTX_free(context->servers[i].openssl);
        EVP_MD_CTX_free(context->servers[i].digest);
        free(context->servers[i].alpn);
        free(context->servers[i].groups);
        OPENSSL_clear_free(context->servers[i].ticket_keys,
                           context->servers[i].ticket_key_count * sizeof(struct ticket_key));
    }
    free(context->servers);
    tls_names_finish(&context->names);
    BIO_meth_free(context->method);
    ticket_keys_wipe(&context->own);
    free(context);
}

void tls_context_share_tickets(struct tls_context *context, const struct ticket_keys *keys)
{
    context->tickets = keys;
    ticket_keys_wipe(&context->own);
}
