/*
 * One SSL_CTX per virtual server. SNI selects the server in the client-hello callback, before negotiation, so that
 * protocols, ciphers, curves, tickets and ALPN are those of the selected server.
 */
#include "tls/tls_context.h"

#include "base/limits.h"

#include "tls/tls_bio.h"
#include "tls/tls_session_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>

/* The host name in the ClientHello (RFC 6066 3); empty if missing or malformed, which OpenSSL rejects later. */
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

/* OpenSSL's default list; before 3.5 it has no name. */
static bool set_default_groups(SSL *ssl)
{
    bool good = SSL_set1_groups_list(ssl, "DEFAULT") == 1 ||
                SSL_set1_groups_list(ssl, "X25519:P-256:X448:P-521:P-384") == 1;

    ERR_clear_error();
    return good;
}

/* SSL_set_SSL_CTX switches certificates and callbacks only: settings that SSL_new copied are copied again here. */
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
           SSL_set_max_early_data(ssl, SSL_CTX_get_max_early_data(server->openssl)) == 1 &&
           SSL_set_num_tickets(ssl, SSL_CTX_get_num_tickets(server->openssl)) == 1;
}

/* The first server with a matching regular expression; a trailing dot of the name is ignored. */
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

/* RFC 8737 3: the certificate of a pending challenge. RFC 7301 3.2: without one, "acme-tls/1" is not supported. */
static int answer_challenge(SSL *ssl, const struct tls_context *context, int *alert)
{
    struct tls_session *session = tls_session_of(ssl);
    struct tls_challenge challenge;

    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    session->server = &context->challenge_server;
    if (!context->find_challenge(context->challenge_owner, hello_name(ssl), &challenge))
        return SSL_CLIENT_HELLO_ERROR;
    *alert = SSL_AD_INTERNAL_ERROR;
    return switch_server(ssl, context->default_server, session->server) && tls_challenge_present(ssl, &challenge)
               ? SSL_CLIENT_HELLO_SUCCESS
               : SSL_CLIENT_HELLO_ERROR;
}

static int hello_arrived(SSL *ssl, int *alert, void *argument)
{
    const struct tls_context *context = argument;
    const struct tls_server *server;

    if (context->find_challenge && tls_challenge_offered(ssl))
        return answer_challenge(ssl, context, alert);
    server = tls_names_find(&context->names, hello_name(ssl));

    if (!server)
        server = find_pattern(context, hello_name(ssl));
    if (!server)
        server = context->default_server;
    tls_session_of(ssl)->server = server;
    if (server->settings->reject) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_CLIENT_HELLO_ERROR;
    }
    if (SSL_get_SSL_CTX(ssl) == server->openssl || switch_server(ssl, context->default_server, server))
        return SSL_CLIENT_HELLO_SUCCESS;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Sets the client-hello callback in the default server, with whose SSL_CTX every connection begins. */
static void set_client_hello_callback(struct tls_context *context)
{
    SSL_CTX_set_client_hello_cb(context->default_server->openssl, hello_arrived, context);
    tls_session_cache_set_context(context, context->default_server);
}

static bool index_server_names(struct tls_context *context, struct tls_server *server, struct log *log,
                               const struct tls_reporter *reporter)
{
    for (size_t i = 0; i < server->settings->name_count; i++) {
        struct str name = server->settings->names[i];
        int error = tls_names_add(&context->names, name, server);
        if (error == -EEXIST)
            log_write(log, LOG_WARN,
                      "conflicting server name \"" STR_FMT "\" on one address, ignored",
                      STR_ARG(name));
        else if (error == -EINVAL)
            return tls_fail(
                reporter, "\"" STR_FMT "\" is not a server name: a \"*\" may only be the first or the last label",
                STR_ARG(name));
        else if (error < 0)
            return tls_fail(reporter, "out of memory");
    }
    return true;
}

static bool load_servers(struct tls_context *context, const struct tls_settings *servers, struct log *log,
                         struct tls_reporter *reporter)
{
    bool good = true;

    context->method = tls_bio_method();
    if (!context->servers || !context->method)
        return tls_fail(reporter, "out of memory");
    context->tickets = &context->own_tickets;
    if (ticket_keys_rotate(&context->own_tickets) < 0)
        return tls_fail(reporter, "keys of session tickets cannot be generated: no random numbers are available");
    for (size_t i = 0; i < context->count; i++) {
        struct tls_server *server = &context->servers[i];
        server->context = context;
        server->settings = &servers[i];
        context->accepts_early_data |= servers[i].early_data;
        reporter->fault.server = i;
        good &= tls_server_load(server, log, reporter);
        good &= index_server_names(context, server, log, reporter);
        if (!context->default_server && servers[i].is_default)
            context->default_server = server;
    }
    if (!context->default_server)
        context->default_server = &context->servers[0];
    if (good)
        set_client_hello_callback(context);
    return good;
}

struct tls_context *tls_context_load(const struct tls_settings *servers, size_t count, struct log *log,
                                     tls_fault_report *report, void *owner)
{
    struct tls_reporter reporter = {report, owner, {.directive = ""}};
    struct tls_context *context = count ? calloc(1, sizeof(*context)) : NULL;

    if (!context) {
        tls_fail(&reporter, count ? "out of memory" : "no server is given");
        return NULL;
    }
    tls_names_init(&context->names);
    context->count = count;
    context->servers = calloc(count, sizeof(*context->servers));
    bool good = load_servers(context, servers, log, &reporter);
    ERR_clear_error();
    if (good)
        return context;
    tls_context_destroy(context);
    return NULL;
}

struct first_fault {
    char *text;
    size_t size;
    bool reported;
};

static void store_first_fault(void *owner, const struct tls_fault *fault)
{
    struct first_fault *first = owner;

    if (!first->reported)
        snprintf(first->text, first->size, "%s%s%s", fault->text, *fault->hint ? "; " : "", fault->hint);
    first->reported = true;
}

struct tls_context *tls_context_create(const struct tls_settings *servers, size_t count, struct log *log,
                                       char *out_error, size_t error_size)
{
    struct first_fault first = {out_error, error_size, false};

    return tls_context_load(servers, count, log, store_first_fault, &first);
}

void tls_context_destroy(struct tls_context *context)
{
    if (!context)
        return;
    for (size_t i = 0; context->servers && i < context->count; i++)
        tls_server_finish(&context->servers[i]);
    free(context->servers);
    tls_server_finish(&context->challenge_server);
    tls_names_finish(&context->names);
    BIO_meth_free(context->method);
    ticket_keys_wipe(&context->own_tickets);
    free(context);
}

bool tls_context_answer_challenges(struct tls_context *context, tls_challenge_find *find, void *owner)
{
    if (!tls_challenge_load(context)) {
        ERR_clear_error();
        return false;
    }
    context->find_challenge = find;
    context->challenge_owner = owner;
    return true;
}

void tls_context_share(struct tls_context *context, const struct ticket_keys *keys, struct replay_window *replay_window)
{
    context->tickets = keys;
    context->replay_window = replay_window;
    ticket_keys_wipe(&context->own_tickets);
}

bool tls_context_reload(struct tls_context *context, size_t number, const struct tls_files *files, struct log *log,
                       tls_fault_report *report, void *owner)
{
    const struct tls_reporter reporter = {report, owner, {.server = number, .directive = ""}};
    struct tls_server *server = &context->servers[number];
    struct tls_server old = *server, new = {.context = context,
                                            .settings = old.settings,
                                            .files = files,
                                            .previous = old.openssl};
    bool good = tls_server_load(&new, log, &reporter);

    new.files = NULL;
    new.previous = NULL;
    if (good)
        *server = new;
    tls_server_finish(good ? &old : &new); /* connections hold references to their SSL_CTX */
    set_client_hello_callback(context);
    ERR_clear_error();
    return good;
}
