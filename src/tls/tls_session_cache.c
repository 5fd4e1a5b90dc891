/*
 * Server-side session cache (ssl_session_cache): TLS 1.2 sessions by id, for clients without tickets, and TLS 1.3
 * sessions when tickets are off, whose tickets are then only an id. The rules for resuming a session are those for
 * tickets.
 */
#include "tls/tls_session_private.h"

#include "base/limits.h"

#include <openssl/err.h>

enum { SESSION_CACHE_MODE = SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL | SSL_SESS_CACHE_NO_AUTO_CLEAR };

/* The cache of the server that SNI has selected. */
static struct session_cache *cache_of(const struct tls_server *server)
{
    return server->settings->session_cache ? server->settings->session_cache->cache : NULL;
}

static bool session_is_cached(SSL *ssl, const struct tls_session *session)
{
    bool in_stateless_ticket = SSL_version(ssl) == TLS1_3_VERSION && session->server->settings->session_tickets;

    return cache_of(session->server) && !in_stateless_ticket &&
           tls_session_client_state(session) == TLS_CLIENT_ACCEPTED;
}

/* Returns 0: OpenSSL keeps its own reference. */
static int session_made(SSL *ssl, SSL_SESSION *made)
{
    const struct tls_session *session = tls_session_of(ssl);
    unsigned char bytes[LIMIT_TLS_SESSION], *end = bytes;
    unsigned id_length = 0;
    const unsigned char *id = SSL_SESSION_get_id(made, &id_length);
    int length;

    if (!session_is_cached(ssl, session) || !tls_session_set_appdata(ssl, made))
        return 0;
    length = i2d_SSL_SESSION(made, NULL);
    if (length <= 0 || length > LIMIT_TLS_SESSION || i2d_SSL_SESSION(made, &end) != length)
        return 0;
    session_cache_insert(cache_of(session->server), str_of((const char *)id, id_length),
                         str_of((const char *)bytes, (size_t)length), tls_session_now_ms(session),
                         (uint64_t)SSL_SESSION_get_timeout(made) * 1000);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return 0;
}

static SSL_SESSION *read_session(const struct tls_server *server, const char *bytes, size_t length)
{
    const unsigned char *next = (const unsigned char *)bytes;
    SSL_SESSION *session = d2i_SSL_SESSION(NULL, &next, (long)length);
    struct ticket_appdata appdata;

    if (!session) {
        ERR_clear_error();
        return NULL;
    }
    if (tls_verify_resumes(server, session, tls_ticket_appdata(session, &appdata) ? &appdata : NULL))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static SSL_SESSION *session_requested(SSL *ssl, const unsigned char *id, int id_length, int *out_keeps)
{
    const struct tls_session *session = tls_session_of(ssl);
    struct session_cache *cache = cache_of(session->server);
    char bytes[LIMIT_TLS_SESSION];
    SSL_SESSION *found = NULL;
    size_t length;

    *out_keeps = 0;
    if (!cache)
        return NULL;
    length = session_cache_get(cache, str_of((const char *)id, (size_t)id_length), tls_session_now_ms(session), bytes);
    if (length > 0)
        found = read_session(session->server, bytes, length);
    OPENSSL_cleanse(bytes, length);
    return found;
}

/* After an alert or on expiry. OpenSSL passes the context in which the connection began. */
static void session_removed(SSL_CTX *openssl, SSL_SESSION *removed)
{
    const struct tls_context *context = SSL_CTX_get_app_data(openssl);
    unsigned length = 0;
    const unsigned char *id = SSL_SESSION_get_id(removed, &length);

    for (size_t i = 0; length > 0 && i < context->count; i++) {
        if (cache_of(&context->servers[i]))
            session_cache_remove(cache_of(&context->servers[i]), str_of((const char *)id, length));
    }
}

void tls_session_cache_enable(struct tls_server *server)
{
    SSL_CTX *openssl = server->openssl;

    SSL_CTX_set_session_cache_mode(openssl, server->settings->session_cache ? SESSION_CACHE_MODE : SSL_SESS_CACHE_OFF);
    SSL_CTX_sess_set_new_cb(openssl, session_made);
    SSL_CTX_sess_set_get_cb(openssl, session_requested);
    SSL_CTX_sess_set_remove_cb(openssl, session_removed);
}

void tls_session_cache_set_context(struct tls_context *context, struct tls_server *first)
{
    SSL_CTX_set_app_data(first->openssl, context);
    for (size_t i = 0; i < context->count; i++) {
        if (context->servers[i].settings->session_cache)
            SSL_CTX_set_session_cache_mode(first->openssl, SESSION_CACHE_MODE);
    }
}
