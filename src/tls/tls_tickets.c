/*
 * Session tickets of one virtual server: on or off, lifetime, keys. A ticket contains the session itself. If tickets
 * are off and the session cache is on, a TLS 1.3 ticket is an id in the cache (tls_session_cache.c).
 */
#include "tls/tls_session_private.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>

/* The server's key number `age`; 0 encrypts. Keys of files take precedence. False: no more keys. */
static bool get_key(const struct tls_server *server, unsigned age, struct ticket_key *out_key)
{
    if (server->ticket_key_count == 0)
        return ticket_keys_get(server->context->tickets, age, out_key);
    if (age >= server->ticket_key_count)
        return false;
    *out_key = server->ticket_keys[age];
    return true;
}

static bool find_ticket_key(const struct tls_server *server, const unsigned char *name, unsigned *out_age,
                            struct ticket_key *out_key)
{
    for (unsigned age = 0; get_key(server, age, out_key); age++) {
        if (memcmp(out_key->name, name, sizeof(out_key->name)) == 0) {
            *out_age = age;
            return true;
        }
    }
    return false;
}

static bool set_mac(EVP_MAC_CTX *mac, struct ticket_key *key)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->hmac, key->size),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

static const EVP_CIPHER *cipher_of(const struct ticket_key *key)
{
    return key->size == 16 ? EVP_aes_128_cbc() : EVP_aes_256_cbc();
}

static bool seal_ticket(struct ticket_key *key, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                        EVP_MAC_CTX *mac)
{
    memcpy(name, key->name, sizeof(key->name));
    return RAND_bytes(iv, EVP_CIPHER_get_iv_length(cipher_of(key))) == 1 &&
           EVP_EncryptInit_ex(cipher, cipher_of(key), NULL, key->aes, iv) == 1 && set_mac(mac, key);
}

static bool open_ticket(struct ticket_key *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    return EVP_DecryptInit_ex(cipher, cipher_of(key), NULL, key->aes, iv) == 1 && set_mac(mac, key);
}

/*
 * Called after SNI has selected the server. 0: no key, hence no ticket or a full handshake; 2: decrypted, and a new
 * ticket is issued.
 */
static int key_chosen(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int sealing)
{
    const struct tls_server *server = tls_session_of(ssl)->server;
    struct ticket_key key;
    unsigned age = 0;
    int result = 0;

    if (sealing ? get_key(server, 0, &key) : find_ticket_key(server, name, &age, &key)) {
        bool good = sealing ? seal_ticket(&key, name, iv, cipher, mac) : open_ticket(&key, iv, cipher, mac);
        /* Each TLS 1.3 handshake issues a new ticket: none should be used twice (RFC 8446 C.4). */
        bool renew = !sealing && (age > 0 || SSL_version(ssl) == TLS1_3_VERSION);

        result = !good ? -1 : renew ? 2 : 1;
    }
    OPENSSL_cleanse(&key, sizeof(key));
    return result;
}

static int ticket_made(SSL *ssl, void *unused)
{
    return tls_session_set_appdata(ssl, SSL_get_session(ssl));
}

static SSL_TICKET_RETURN ticket_opened(SSL *ssl, SSL_SESSION *resumed, const unsigned char *name,
                                       size_t name_length, SSL_TICKET_STATUS status, void *unused)
{
    const struct tls_server *server = tls_session_of(ssl)->server;
    bool opened = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
    struct ticket_appdata appdata;

    if (!opened || !tls_verify_resumes(server, resumed, tls_ticket_appdata(resumed, &appdata) ? &appdata : NULL))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

static bool load_keys(struct tls_server *server, const struct tls_reporter *reporter)
{
    const struct tls_settings *settings = server->settings;
    bool good = true;

    if (settings->ticket_key_count == 0)
        return true;
    server->ticket_keys = OPENSSL_zalloc(settings->ticket_key_count * sizeof(*server->ticket_keys));
    if (!server->ticket_keys)
        return tls_fail(reporter, "out of memory");
    server->ticket_key_count = settings->ticket_key_count;
    for (size_t i = 0; i < settings->ticket_key_count; i++) {
        struct tls_reporter at = tls_reporter_at(reporter, "ssl_session_ticket_key", i);
        struct tls_file file = {0};

        if (!tls_file_open(&file, server, settings->ticket_keys[i], &at))
            good = false;
        else if (ticket_key_parse(str_of(file.text, file.length), &server->ticket_keys[i]) < 0)
            good = tls_fail(&at,
                            "the ticket key \"%s\" has %zu bytes, and neither 80 nor 48\nmake one with: "
                            "openssl rand 80 > %s",
                            file.name, file.length, file.name);
        tls_file_finish(&file);
    }
    return good;
}

/*
 * Issues one ticket per handshake instead of OpenSSL's two: resumption issues the next one, and creating a ticket costs
 * as much as all of sluice's own handshake code.
 */
bool tls_tickets_set(struct tls_server *server, const struct tls_reporter *reporter)
{
    SSL_CTX *openssl = server->openssl;

    tls_session_cache_enable(server);
    if (!server->settings->session_tickets)
        SSL_CTX_set_options(openssl, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(openssl, server->settings->session_tickets || server->settings->session_cache ? 1 : 0);
    if (SSL_CTX_set_tlsext_ticket_key_evp_cb(openssl, key_chosen) != 1 ||
        SSL_CTX_set_session_ticket_cb(openssl, ticket_made, ticket_opened, NULL) != 1)
        return tls_fail(reporter, "session tickets cannot be set up: %s", tls_openssl_reason());
    return load_keys(server, reporter);
}
