/*
 * The real kernel encrypts, and an OpenSSL client reads. On a kernel without TLS the program reports this and skips
 * (77); the suite "vm" runs it on kernels with TLS.
 */
#include "base/limits.h"
#include "tls/ktls.h"
#include "tls_pair.h"

#include "../skip.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

static struct ktls_support support;

static const struct suite {
    const char *name;
    int version;
    uint8_t cipher;
} suites[] = {
    {"TLS_AES_128_GCM_SHA256", TLS1_3_VERSION, RECORD_AES_128_GCM},
    {"TLS_AES_256_GCM_SHA384", TLS1_3_VERSION, RECORD_AES_256_GCM},
    {"TLS_CHACHA20_POLY1305_SHA256", TLS1_3_VERSION, RECORD_CHACHA20_POLY1305},
    {"ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, RECORD_AES_128_GCM},
    {"ECDHE-ECDSA-AES256-GCM-SHA384", TLS1_2_VERSION, RECORD_AES_256_GCM},
    {"ECDHE-ECDSA-CHACHA20-POLY1305", TLS1_2_VERSION, RECORD_CHACHA20_POLY1305},
};

static void connect_pair(struct tls_pair *pair)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    pair->kernel_peer = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(pair->kernel_peer, (struct sockaddr *)&address, length), 0);
    pair->kernel_local = accept(listener, NULL, NULL);
    ck_assert_int_gt(pair->kernel_local, 0);
    close(listener);
}

static bool open_promoted(struct tls_pair *pair, const struct suite *suite, struct tls_settings *settings)
{
    if (support.reason[suite->version == TLS1_3_VERSION][suite->cipher] != KTLS_OK)
        return false;
    pair_open(pair, settings, 1);
    SSL_CTX_set_min_proto_version(pair->client_openssl, suite->version);
    SSL_CTX_set_max_proto_version(pair->client_openssl, suite->version);
    if (suite->version == TLS1_3_VERSION)
        SSL_CTX_set_ciphersuites(pair->client_openssl, suite->name);
    else
        SSL_CTX_set_cipher_list(pair->client_openssl, suite->name);
    pair_reconnect(pair);
    ck_assert_int_eq(pair_handshake(pair), 0);
    ck_assert_uint_eq(pair->key.cipher, suite->cipher);
    pair_exchange(pair, 5000);
    connect_pair(pair);
    ck_assert_int_eq(ktls_enable(&ktls_calls_kernel, pair->kernel_local, &pair->key), KTLS_OK);
    return true;
}

/* Sends one record from memory and one from a file. */
static void send_through_kernel(struct tls_pair *pair, size_t size)
{
    char *bytes = malloc(size), *back = malloc(size);
    int file = memfd_create("body", 0);
    off_t at = 0;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 17 + i / 253);
    ck_assert_int_eq(send(pair->kernel_local, bytes, size, 0), (ssize_t)size);
    pair_from_kernel(pair, size + record_overhead(&pair->key));
    ck_assert_int_eq(pair_client_read(pair, back, size), (ssize_t)size);
    ck_assert_mem_eq(bytes, back, size);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    memset(back, 0, size);
    ck_assert_int_eq(sendfile(pair->kernel_local, file, &at, size), (ssize_t)size);
    pair_from_kernel(pair, size + record_overhead(&pair->key));
    ck_assert_int_eq(pair_client_read(pair, back, size), (ssize_t)size);
    ck_assert_mem_eq(bytes, back, size);
    close(file);
    free(bytes);
    free(back);
}

START_TEST(rule_20_client_reads_promoted_records)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char byte;

    if (!open_promoted(&pair, &suites[_i], &settings))
        return;
    send_through_kernel(&pair, 1);
    send_through_kernel(&pair, LIMIT_RECORD_PLAINTEXT);
    tls_session_shutdown(pair.session);
    ck_assert_int_eq(pair_client_read(&pair, &byte, 1), -SSL_ERROR_ZERO_RETURN);
    pair_close(&pair);
}
END_TEST

/* The client requests a new key: the server passes one to the kernel, or does not answer. */
START_TEST(key_update_after_promotion)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char into[16];

    if (!open_promoted(&pair, &suites[_i], &settings))
        return;
    pair.forbid_update = !support.rekey;
    ck_assert_int_eq(SSL_key_update(pair.client, SSL_KEY_UPDATE_REQUESTED), 1);
    ck_assert_int_eq(SSL_do_handshake(pair.client), 1);
    (void)pair_server_read(&pair, into, sizeof(into));
    ck_assert_uint_eq(pair.asked_update, 1);
    ck_assert_uint_eq(pair.keys, support.rekey ? 2 : 1);
    send_through_kernel(&pair, 3000);
    tls_session_shutdown(pair.session);
    ck_assert_int_eq(pair_client_read(&pair, into, 1), -SSL_ERROR_ZERO_RETURN);
    pair_close(&pair);
}
END_TEST

int main(void)
{
    SRunner *runner;
    TCase *all;
    Suite *suite;
    char line[256];

    ktls_probe(&ktls_calls_kernel, &support);
    struct str text = ktls_describe(&support, line, sizeof(line));
    printf(STR_FMT "\n", STR_ARG(text));
    if (support.reason[1][RECORD_AES_128_GCM] != KTLS_OK)
        return skip_program("this kernel does not encrypt TLS");
    suite = suite_create("ktls_kernel");
    all = tcase_create("kernel");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, rule_20_client_reads_promoted_records, 0, 6);
    tcase_add_loop_test(all, key_update_after_promotion, 0, 3);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
