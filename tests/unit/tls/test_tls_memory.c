/* Each allocation of OpenSSL fails in turn. Nothing crashes, hangs or leaks, and the function returns an error. */
#include "tls_pair.h"

#include "../skip.h"

#include <check.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>

static long left = -1; /* allocations until one fails; -1: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

static void *allocate(size_t size, const char *file, int line)
{
    return fails() ? NULL : malloc(size);
}

static void *reallocate(void *old, size_t size, const char *file, int line)
{
    return fails() ? NULL : realloc(old, size);
}

static void release(void *old, const char *file, int line)
{
    free(old);
}

static void quiet(void *owner, enum log_level level, struct str line)
{
}

/* Makes one complete connection first, so that OpenSSL's allocations for the whole process are not counted as leaks. */
static void warm_up(void)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;

    pair_open(&pair, &settings, 1);
    ck_assert_int_eq(pair_handshake(&pair), 0);
    pair_close(&pair);
}

START_TEST(context_allocations_fail)
{
    struct tls_settings settings = pair_settings();
    struct log log = {.sink = quiet};
    struct tls_context *context = NULL;
    char error[512];
    long n;

    for (n = 0; !context && n < 20000; n += 1 + n / 50) {
        error[0] = '\0';
        left = n;
        context = tls_context_create(&settings, 1, &log, error, sizeof(error));
        bool failed = left < 0;
        left = -1;
        ck_assert(context || error[0]);
        ck_assert_uint_eq(ERR_peek_error(), 0);
        if (context && failed) { /* OpenSSL works without this allocation */
            tls_context_destroy(context);
            context = NULL;
        }
    }
    ck_assert_ptr_nonnull(context);
    tls_context_destroy(context);
}
END_TEST

static void drop_ciphertext(void *owner, struct str bytes)
{
}

static void drop_record(void *owner, uint8_t type, struct str plaintext)
{
}

static void drop_key(void *owner, const struct record_key *key)
{
}

static const struct tls_output output = {drop_ciphertext, drop_record, drop_key, NULL};

/*
 * Returns true if the creation of the session and the server's first flight needed at most `allocations` allocations.
 */
static bool begin_session(struct tls_context *context, struct str hello, long allocations)
{
    left = allocations;
    struct tls_session *session = tls_session_create(context, &output, NULL);
    int result = -EPROTO;

    if (session) {
        tls_session_set_input(session, hello);
        result = tls_session_handshake(session);
    }
    bool enough = left >= 0;
    left = -1;
    ck_assert(result == -EPROTO || result == -EAGAIN);
    ck_assert(!enough || result == -EAGAIN);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    tls_session_destroy(session);
    return enough;
}

START_TEST(session_allocations_fail)
{
    struct tls_settings settings = pair_settings();
    struct tls_pair pair;
    char bytes[4096];
    long n = 0;

    pair_open(&pair, &settings, 1);
    (void)SSL_do_handshake(pair.client);
    ERR_clear_error();
    int length = BIO_read(SSL_get_wbio(pair.client), bytes, sizeof(bytes));
    while (!begin_session(pair.context, str_of(bytes, (size_t)length), n))
        ck_assert_int_lt(n++, 20000);
    ck_assert_int_gt(n, 50);
    pair_close(&pair);
}
END_TEST

START_TEST(cipher_cache_allocations_fail)
{
    char into[64];
    ssize_t result = -ENOMEM;

    for (long n = 0; result < 0 && n < 200; n++) {
        struct record_key key = {.version = RECORD_TLS_1_3, .cipher = RECORD_AES_128_GCM};
        struct cipher_context *context = NULL;
        struct iovec part = {into + 5, 10};
        left = n;
        struct cipher_context_cache *cache = cipher_context_cache_create(1, NULL);
        result = cache ? record_seal(cache, &key, &context, RECORD_APPLICATION_DATA, &part, 1, into) : -ENOMEM;
        left = -1;
        ck_assert(result == -ENOMEM || result == -EINVAL || result == 32);
        ck_assert_uint_eq(key.sequence, result > 0 ? 1 : 0);
        ck_assert_uint_eq(ERR_peek_error(), 0);
        cipher_context_cache_destroy(cache);
    }
    ck_assert_int_eq(result, 32);
}
END_TEST

int main(void)
{
    if (CRYPTO_set_mem_functions(allocate, reallocate, release) != 1) {
        return skip_program("OpenSSL has allocated already");
    }
    Suite *suite = suite_create("tls_memory");
    TCase *all = tcase_create("memory");
    SRunner *runner;

    tcase_set_timeout(all, 60);
    tcase_add_checked_fixture(all, warm_up, NULL);
    tcase_add_test(all, context_allocations_fail);
    tcase_add_test(all, session_allocations_fail);
    tcase_add_test(all, cipher_cache_allocations_fail);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
