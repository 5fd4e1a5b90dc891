/*
 * The measurement with a scripted kernel, which accepts the keys and encrypts nothing. The figures of a kernel with TLS
 * are those of `sluice doctor`: tests/vm/test_doctor.py.
 */
#include "tls/ktls_measure.h"

#include "tls/aead_choice.h"

#include "../runner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static struct {
    int error; /* of every call */
    unsigned calls;
    unsigned keys;
} kernel;

static int accept_option(int fd, int level, int name, const void *value, socklen_t length)
{
    kernel.calls++;
    kernel.keys += level != IPPROTO_TCP;
    errno = kernel.error;
    return kernel.error ? -1 : 0;
}

static const struct ktls_calls calls = {.setsockopt = accept_option};

static struct ktls_support support_of(enum ktls_reason newer, enum ktls_reason older)
{
    struct ktls_support support = {0};

    for (unsigned cipher = 0; cipher < RECORD_CIPHERS; cipher++) {
        support.reason[0][cipher] = older;
        support.reason[1][cipher] = newer;
    }
    return support;
}

static void expect_none(const struct ktls_figures *figures)
{
    for (unsigned size = 0; size < KTLS_SIZES; size++) {
        ck_assert_uint_eq(figures->kernel_ns[size], 0);
        ck_assert_uint_eq(figures->user_ns[size], 0);
    }
}

static void expect_first_size(const struct ktls_figures *figures)
{
    ck_assert_uint_gt(figures->kernel_ns[0], 0);
    ck_assert_uint_gt(figures->user_ns[0], 0);
}

/* The smallest size is always measured, also on a slow machine. */
START_TEST(each_supported_cipher_is_measured)
{
    struct ktls_support support = support_of(_i ? KTLS_CIPHER : KTLS_OK, KTLS_OK);
    struct ktls_figures figures[RECORD_CIPHERS];

    support.reason[0][RECORD_AES_256_GCM] = support.reason[1][RECORD_AES_256_GCM] = KTLS_CIPHER;
    ktls_measure(&calls, &support, NULL, figures);
    expect_none(&figures[RECORD_NONE]);
    expect_first_size(&figures[RECORD_AES_128_GCM]);
    expect_none(&figures[RECORD_AES_256_GCM]);
    expect_first_size(&figures[RECORD_CHACHA20_POLY1305]);
    ck_assert_uint_gt(kernel.keys, 1);
}
END_TEST

/*
 * Sealing takes CPU time, and a kernel that encrypts nothing does not: the kernel wins. Repeated, because other load
 * may leave time for one run only.
 */
START_TEST(kernel_that_does_no_work_is_chosen)
{
    struct ktls_support support = support_of(KTLS_OK, KTLS_OK);
    struct ktls_choice choice = {.threshold = {[RECORD_CHACHA20_POLY1305] = KTLS_NEVER}};

    support.reason[0][RECORD_AES_128_GCM] = support.reason[1][RECORD_AES_128_GCM] = KTLS_CIPHER;
    support.reason[0][RECORD_AES_256_GCM] = support.reason[1][RECORD_AES_256_GCM] = KTLS_CIPHER;
    for (int i = 0; i < 20 && choice.threshold[RECORD_CHACHA20_POLY1305] == KTLS_NEVER; i++)
        ktls_examine(&calls, &support, NULL, &choice);
    ck_assert_uint_ne(choice.threshold[RECORD_CHACHA20_POLY1305], KTLS_NEVER);
    ck_assert_uint_eq(choice.threshold[RECORD_AES_128_GCM], 0);
}
END_TEST

START_TEST(nothing_is_measured_without_support)
{
    struct ktls_support support = support_of(KTLS_NO_MODULE, KTLS_NO_MODULE);
    struct ktls_figures figures[RECORD_CIPHERS];

    memset(figures, 1, sizeof(figures));
    ktls_measure(&calls, &support, NULL, figures);
    for (unsigned cipher = 0; cipher < RECORD_CIPHERS; cipher++)
        expect_none(&figures[cipher]);
    ck_assert_uint_eq(kernel.calls, 0);
}
END_TEST

START_TEST(refused_key_gives_no_figure)
{
    struct ktls_support support = support_of(KTLS_OK, KTLS_OK);
    struct ktls_choice choice;

    kernel.error = ENOMEM;
    ktls_examine(&calls, &support, NULL, &choice);
    for (unsigned cipher = 0; cipher < RECORD_CIPHERS; cipher++) {
        expect_none(&choice.figures[cipher]);
        ck_assert_uint_eq(choice.threshold[cipher], 0);
    }
    ck_assert_uint_eq(kernel.calls, RECORD_CIPHERS - 1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_supported_cipher_is_measured, 0, 2);
    tcase_add_test(tcase, kernel_that_does_no_work_is_chosen);
    tcase_add_test(tcase, nothing_is_measured_without_support);
    tcase_add_test(tcase, refused_key_gives_no_figure);
}

int main(void)
{
    return run_suite("ktls_measure", add_tests);
}
