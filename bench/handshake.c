/*
 * OpenSSL handshakes over memory BIOs, TLS 1.3 with an ECDSA P-256 certificate, full or resumed by a ticket: the least
 * that a server with this library spends on a handshake. Client and server are one thread; only the server's calls are
 * counted. Prints one line of JSON. Usage: build/bench/handshake full|resumed COUNT
 * Instructions: valgrind --tool=callgrind --toggle-collect=server_step build/bench/handshake full 1000
 */
#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARMUP = 20 };

struct bench {
    SSL_CTX *server, *client;
    SSL_SESSION *session; /* of the client; NULL: full handshakes */
    uint64_t cpu_ns;      /* of the server's calls */
    unsigned resumed;
};

static void fail(const char *what)
{
    fprintf(stderr, "handshake: %s failed\n", what);
    exit(1);
}

static uint64_t cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static X509 *certificate_create(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    X509_NAME *name = certificate ? X509_get_subject_name(certificate) : NULL;

    if (!name || !X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0) ||
        !X509_set_issuer_name(certificate, name) || !X509_gmtime_adj(X509_getm_notBefore(certificate), 0) ||
        !X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) || !X509_set_pubkey(certificate, key) ||
        !X509_sign(certificate, key, EVP_sha256()))
        fail("making a certificate");
    return certificate;
}

static void server_context_create(struct bench *bench)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key ? certificate_create(key) : NULL;

    bench->server = SSL_CTX_new(TLS_server_method());
    if (!certificate || !bench->server || SSL_CTX_use_certificate(bench->server, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(bench->server, key) != 1 || SSL_CTX_set_num_tickets(bench->server, 1) != 1 ||
        SSL_CTX_set_ciphersuites(bench->server, "TLS_AES_128_GCM_SHA256") != 1)
        fail("the server's context");
    /* Tickets without the server's session cache. */
    SSL_CTX_set_session_cache_mode(bench->server, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(bench->server, SSL_OP_NO_ANTI_REPLAY);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void client_context_create(struct bench *bench)
{
    bench->client = SSL_CTX_new(TLS_client_method());
    if (!bench->client || SSL_CTX_set_min_proto_version(bench->client, TLS1_3_VERSION) != 1)
        fail("the client's context");
}

/* The two directions of a connection; both ends hold a reference. */
static SSL *ssl_create(SSL_CTX *context, BIO *from, BIO *to)
{
    SSL *ssl = SSL_new(context);

    if (!ssl || BIO_up_ref(from) != 1 || BIO_up_ref(to) != 1)
        fail("memory");
    SSL_set_bio(ssl, from, to);
    return ssl;
}

/* One step of the server; it is not inlined, so that callgrind can count by its name. */
__attribute__((noinline)) static bool server_step(struct bench *bench, SSL **ssl, BIO *from, BIO *to)
{
    uint64_t start = cpu_ns();
    int result;

    if (!*ssl) {
        *ssl = ssl_create(bench->server, from, to);
        SSL_set_accept_state(*ssl);
    }
    result = SSL_do_handshake(*ssl);
    if (result != 1 && SSL_get_error(*ssl, result) != SSL_ERROR_WANT_READ)
        fail("the server's handshake");
    bench->cpu_ns += cpu_ns() - start;
    return result == 1;
}

__attribute__((noinline)) static void server_free(struct bench *bench, SSL *ssl)
{
    uint64_t start = cpu_ns();

    SSL_free(ssl);
    bench->cpu_ns += cpu_ns() - start;
}

/* The client's step. Once the handshake is complete, it reads the ticket. */
static bool client_step(SSL *ssl)
{
    char byte;
    int result = SSL_is_init_finished(ssl) ? SSL_read(ssl, &byte, 1) : SSL_do_handshake(ssl);

    if (result != 1 && SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ)
        fail("the client's handshake");
    return SSL_is_init_finished(ssl);
}

static void connect_once(struct bench *bench, bool save_session)
{
    BIO *up = BIO_new(BIO_s_mem()), *down = BIO_new(BIO_s_mem());
    SSL *server = NULL, *client;

    if (!up || !down)
        fail("memory");
    client = ssl_create(bench->client, down, up);
    SSL_set_connect_state(client);
    if (bench->session && SSL_set_session(client, bench->session) != 1)
        fail("the session");
    (void)client_step(client);
    while (!server_step(bench, &server, up, down)) {
        if (!client_step(client) && BIO_pending(up) == 0)
            fail("the handshake");
    }
    (void)client_step(client);
    bench->resumed += (unsigned)SSL_session_reused(server);
    if (save_session)
        bench->session = SSL_get1_session(client);
    SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* an error would make the session invalid */
    SSL_free(client);
    SSL_set_shutdown(server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    server_free(bench, server);
    BIO_free(up);
    BIO_free(down);
}

int main(int argc, char **argv)
{
    struct bench bench = {.resumed = 0};
    unsigned long connections = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    bool resume = argc == 3 && strcmp(argv[1], "resumed") == 0;

    if (connections == 0 || (!resume && strcmp(argv[1], "full") != 0)) {
        fprintf(stderr, "usage: handshake full|resumed COUNT\n");
        return 2;
    }
    server_context_create(&bench);
    client_context_create(&bench);
    for (unsigned i = 0; i < WARMUP; i++)
        connect_once(&bench, false);
    if (resume)
        connect_once(&bench, true);
    bench.cpu_ns = 0;
    bench.resumed = 0;
    for (unsigned long i = 0; i < connections; i++)
        connect_once(&bench, false);
    if (bench.resumed != (resume ? connections : 0))
        fail("resumption");
    printf("{\"responses_all\": %lu, \"handshakes\": %lu, \"resumed\": %u, \"cpu\": %.9f, \"user\": %.9f}\n",
           connections, connections, bench.resumed, (double)bench.cpu_ns * 1e-9, (double)bench.cpu_ns * 1e-9);
    SSL_SESSION_free(bench.session);
    SSL_CTX_free(bench.server);
    SSL_CTX_free(bench.client);
    return 0;
}
