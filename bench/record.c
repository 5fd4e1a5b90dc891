/*
 * Prints the nanoseconds that encrypting one record takes, for each AEAD engine that this machine supports: record_seal
 * in place ("in place"), from a separate buffer ("separate"), and with a key that must be set first ("new key"); and
 * SSL_write. No socket is used. Usage: build/bench/record [ROUNDS]
 */
#include "tls/record.h"
#include "base/clock.h"
#include "base/limits.h"
#include "tls/aead_choice.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 5 };

static char plaintext[LIMIT_RECORD_PLAINTEXT], into[LIMIT_RECORD_PLAINTEXT + RECORD_OVERHEAD];
static const size_t sizes[] = {128, 1200, 4096, 16384};
static const struct suite {
    const char *name, *list;
    int version;
    uint8_t cipher;
} suites[] = {
    {"1.3 AES-128-GCM", "TLS_AES_128_GCM_SHA256", TLS1_3_VERSION, RECORD_AES_128_GCM},
    {"1.3 AES-256-GCM", "TLS_AES_256_GCM_SHA384", TLS1_3_VERSION, RECORD_AES_256_GCM},
    {"1.3 ChaCha20-Poly1305", "TLS_CHACHA20_POLY1305_SHA256", TLS1_3_VERSION, RECORD_CHACHA20_POLY1305},
    {"1.2 AES-128-GCM", "ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, RECORD_AES_128_GCM},
};

struct fixture {
    struct cipher_context_cache *cache;
    struct cipher_context *context;
    struct record_key key;
    SSL *ssl;
};

static void fail(const char *what)
{
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void seal(struct fixture *fixture, size_t size, bool in_place)
{
    struct iovec part = {in_place ? into + record_head(&fixture->key) : plaintext, size};

    if (record_seal(fixture->cache, &fixture->key, &fixture->context, RECORD_APPLICATION_DATA, &part, 1,
                    into) < 0)
        fail("record_seal");
}

static void seal_in_place(struct fixture *fixture, size_t size)
{
    seal(fixture, size, true);
}

static void seal_from_buffer(struct fixture *fixture, size_t size)
{
    seal(fixture, size, false);
}

/* Sets a new key for each record, as happens if there are more active connections than cipher contexts. */
static void seal_with_new_key(struct fixture *fixture, size_t size)
{
    fixture->key.key[0] ^= 1;
    seal(fixture, size, true);
}

static void write_ssl(struct fixture *fixture, size_t size)
{
    if (SSL_write(fixture->ssl, plaintext, (int)size) != (int)size)
        fail("SSL_write");
}

static double nanoseconds(void (*operation)(struct fixture *, size_t), struct fixture *fixture, size_t size,
                          unsigned rounds)
{
    double best = 1e18;

    for (int repeat = 0; repeat < REPEATS; repeat++) {
        struct clock start, end;
        fixture->key.sequence = 0;
        clock_read(&start);
        for (unsigned i = 0; i < rounds; i++)
            operation(fixture, size);
        clock_read(&end);
        double each = (double)(end.monotonic_us - start.monotonic_us) * 1000 / rounds;
        best = each < best ? each : best;
    }
    return best;
}

static SSL_CTX *make_context(const SSL_METHOD *method, const struct suite *suite)
{
    SSL_CTX *context = SSL_CTX_new(method);

    SSL_CTX_set_min_proto_version(context, suite->version);
    SSL_CTX_set_max_proto_version(context, suite->version);
    if (suite->version == TLS1_3_VERSION)
        SSL_CTX_set_ciphersuites(context, suite->list);
    else
        SSL_CTX_set_cipher_list(context, suite->list);
    return context;
}

static void add_certificate(SSL_CTX *server)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();

    X509_set_pubkey(certificate, key);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    if (!X509_sign(certificate, key, EVP_sha256()) ||
        !SSL_CTX_use_cert_and_key(server, certificate, key, NULL, 1))
        fail("a certificate");
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* Creates a server SSL after its handshake, with a BIO that discards its output. */
static SSL *make_ssl(const struct suite *suite)
{
    SSL_CTX *server_side = make_context(TLS_server_method(), suite),
            *client_side = make_context(TLS_client_method(), suite);
    BIO *there = BIO_new(BIO_s_mem()), *back = BIO_new(BIO_s_mem());

    add_certificate(server_side);
    SSL *server = SSL_new(server_side), *client = SSL_new(client_side);
    BIO_up_ref(there);
    BIO_up_ref(back);
    SSL_set_bio(client, back, there);
    SSL_set_bio(server, there, back);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    for (int i = 0; i < 4; i++) {
        SSL_do_handshake(client);
        SSL_do_handshake(server);
    }
    if (!SSL_is_init_finished(server))
        fail("the handshake");
    SSL_set0_wbio(server, BIO_new(BIO_s_null()));
    SSL_free(client);
    SSL_CTX_free(client_side);
    SSL_CTX_free(server_side);
    return server;
}

static void print_suite(const struct suite *suite, enum aead_kind kind, unsigned rounds)
{
    struct aead_choice choice = {.kind = {[RECORD_NONE] = AEAD_OPENSSL}};
    struct fixture fixture = {.ssl = make_ssl(suite)};

    choice.kind[suite->cipher] = (uint8_t)kind;
    fixture.cache = cipher_context_cache_create(1, &choice);
    fixture.key.version = suite->version == TLS1_3_VERSION ? RECORD_TLS_1_3 : RECORD_TLS_1_2;
    fixture.key.cipher = suite->cipher;
    for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
        printf("%-22s %-8s %7zu %9.0f %10.0f %9.0f %10.0f\n", suite->name, aead_engine(kind)->name, sizes[j],
               nanoseconds(seal_in_place, &fixture, sizes[j], rounds),
               nanoseconds(seal_from_buffer, &fixture, sizes[j], rounds),
               nanoseconds(seal_with_new_key, &fixture, sizes[j], rounds),
               nanoseconds(write_ssl, &fixture, sizes[j], rounds));
    cipher_context_cache_destroy(fixture.cache);
    SSL_free(fixture.ssl);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20000;

    printf("%-22s %-8s %7s %9s %10s %9s %10s\n", "suite", "engine", "bytes", "in place", "separate", "new key",
           "SSL_write");
    for (size_t i = 0; rounds && i < sizeof(suites) / sizeof(suites[0]); i++) {
        for (int kind = 0; kind < AEAD_KINDS; kind++) {
            struct aead *aead = aead_open((enum aead_kind)kind);

            if (aead && aead->has[suites[i].cipher])
                print_suite(&suites[i], (enum aead_kind)kind, rounds);
            aead_close(aead);
        }
    }
    return 0;
}
