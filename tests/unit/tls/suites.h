/* A session with each cipher suite. */
#ifndef TEST_SUITES_H
#define TEST_SUITES_H

#include "tls/ktls_layout.h"
#include "tls/tls_server.h"
#include "tls/tls_session_private.h"
#include "tls_pair.h"

#include "../runner.h"

#include <errno.h>

static const struct suite {
    const char *name;
    int version;
    uint8_t cipher; /* RECORD_NONE: OpenSSL offers no key, or an unsupported one */
} suites[] = {
    {"TLS_AES_128_GCM_SHA256", TLS1_3_VERSION, RECORD_AES_128_GCM},
    {"TLS_AES_256_GCM_SHA384", TLS1_3_VERSION, RECORD_AES_256_GCM},
    {"TLS_CHACHA20_POLY1305_SHA256", TLS1_3_VERSION, RECORD_CHACHA20_POLY1305},
    {"TLS_AES_128_CCM_SHA256", TLS1_3_VERSION, RECORD_NONE},
    {"ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, RECORD_AES_128_GCM},
    {"ECDHE-ECDSA-AES256-GCM-SHA384", TLS1_2_VERSION, RECORD_AES_256_GCM},
    {"ECDHE-ECDSA-CHACHA20-POLY1305", TLS1_2_VERSION, RECORD_CHACHA20_POLY1305},
    {"ECDHE-ECDSA-AES128-SHA256", TLS1_2_VERSION, RECORD_NONE},
};
enum { SUITES = sizeof(suites) / sizeof(suites[0]) };

static inline void open_suite(struct tls_pair *pair, const struct suite *suite, struct tls_settings *settings)
{
    settings->ciphers = STR("ALL");
    settings->ciphersuites = STR(
        "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256");
    pair_open(pair, settings, 1);
    SSL_CTX_set_min_proto_version(pair->client_openssl, suite->version);
    SSL_CTX_set_max_proto_version(pair->client_openssl, suite->version);
    if (suite->version == TLS1_3_VERSION)
        SSL_CTX_set_ciphersuites(pair->client_openssl, suite->name);
    else
        SSL_CTX_set_cipher_list(pair->client_openssl, suite->name);
    pair_reconnect(pair);
}

#endif
