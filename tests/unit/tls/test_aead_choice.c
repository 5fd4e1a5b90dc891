#include "tls/aead_choice.h"

#include "../runner.h"

#include <stdio.h>

static const struct decision {
    enum tls_aead setting;
    enum aead_state openssl, ipsec_mb;
    bool other_provider;
    struct aead_figures openssl_figures, ipsec_mb_figures;
    enum aead_kind expected;
} decisions[] = {
    /* twice as fast; faster by a fifth on average; with small records only */
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {450, 4000}, {225, 2000}, AEAD_IPSEC_MB},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {470, 3970}, {313, 3864}, AEAD_IPSEC_MB},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {470, 3970}, {313, 4120}, AEAD_IPSEC_MB},
    /* 10 % is not more than 10 %; equal; slower */
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {450, 3600}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {445, 3560}, AEAD_IPSEC_MB},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {500, 4000}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {900, 9000}, AEAD_OPENSSL},
    /* much faster with one size, and slower with the other */
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {100, 4300}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {560, 1000}, AEAD_OPENSSL},
    /* not measured */
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {0, 0}, {0, 0}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, false, {500, 4000}, {0, 0}, AEAD_OPENSSL},
    /* not usable */
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_NOT_BUILT, false, {500, 4000}, {100, 1000}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_UNAVAILABLE, false, {500, 4000}, {100, 1000}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_NO_CIPHER, false, {500, 4000}, {100, 1000}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_WRONG, false, {500, 4000}, {100, 1000}, AEAD_OPENSSL},
    {TLS_AEAD_AUTO, AEAD_WRONG, AEAD_USABLE, false, {0, 0}, {0, 0}, AEAD_IPSEC_MB},
    {TLS_AEAD_AUTO, AEAD_WRONG, AEAD_WRONG, false, {0, 0}, {0, 0}, AEAD_OPENSSL},
    /* a FIPS provider was configured */
    {TLS_AEAD_AUTO, AEAD_USABLE, AEAD_USABLE, true, {450, 4000}, {225, 2000}, AEAD_OPENSSL},
    /* forced */
    {TLS_AEAD_OPENSSL, AEAD_USABLE, AEAD_USABLE, false, {450, 4000}, {225, 2000}, AEAD_OPENSSL},
    {TLS_AEAD_OPENSSL, AEAD_USABLE, AEAD_UNTESTED, false, {0, 0}, {0, 0}, AEAD_OPENSSL},
    {TLS_AEAD_IPSEC_MB, AEAD_USABLE, AEAD_USABLE, false, {450, 4000}, {900, 9000}, AEAD_IPSEC_MB},
    {TLS_AEAD_IPSEC_MB, AEAD_USABLE, AEAD_USABLE, true, {0, 0}, {0, 0}, AEAD_IPSEC_MB},
    {TLS_AEAD_IPSEC_MB, AEAD_USABLE, AEAD_UNAVAILABLE, false, {0, 0}, {0, 0}, AEAD_OPENSSL},
    {TLS_AEAD_IPSEC_MB, AEAD_USABLE, AEAD_WRONG, false, {0, 0}, {0, 0}, AEAD_OPENSSL},
};

START_TEST(setting_state_and_figures_decide_the_engine)
{
    const struct decision *row = &decisions[_i];
    struct aead_choice choice = {0};

    for (int cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        choice.other_provider[cipher] = row->other_provider;
        choice.state[AEAD_OPENSSL][cipher] = (uint8_t)row->openssl;
        choice.state[AEAD_IPSEC_MB][cipher] = (uint8_t)row->ipsec_mb;
        choice.figures[AEAD_OPENSSL][cipher] = row->openssl_figures;
        choice.figures[AEAD_IPSEC_MB][cipher] = row->ipsec_mb_figures;
    }
    aead_choose(row->setting, &choice);
    for (int cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
        ck_assert_uint_eq(choice.kind[cipher], row->expected);
}
END_TEST

/* A wrong result with any one cipher disables the engine for all ciphers. */
START_TEST(one_wrong_answer_disables_the_engine)
{
    struct aead_choice choice = {0};

    memset(choice.state, AEAD_USABLE, sizeof(choice.state));
    choice.state[AEAD_IPSEC_MB][RECORD_CHACHA20_POLY1305] = AEAD_NO_CIPHER;
    aead_choose(TLS_AEAD_IPSEC_MB, &choice);
    ck_assert_uint_eq(choice.kind[RECORD_AES_128_GCM], AEAD_IPSEC_MB);
    ck_assert_uint_eq(choice.kind[RECORD_AES_256_GCM], AEAD_IPSEC_MB);
    choice.state[AEAD_IPSEC_MB][RECORD_AES_128_GCM + _i] = AEAD_WRONG;
    for (int setting = TLS_AEAD_AUTO; setting <= TLS_AEAD_IPSEC_MB; setting++) {
        aead_choose((enum tls_aead)setting, &choice);
        for (int cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++)
            ck_assert_uint_eq(choice.kind[cipher], AEAD_OPENSSL);
    }
}
END_TEST

static char lines[1024];

/* Stores the message without date, level and process. */
static void add_line(void *owner, enum log_level level, struct str line)
{
    size_t used = strlen(lines);
    ssize_t prefix = str_search(line, STR("#0: "));

    ck_assert_int_gt(prefix, 0);
    line = str_skip(line, (size_t)prefix + 4);
    snprintf(lines + used, sizeof(lines) - used, "%d " STR_FMT, level, STR_ARG(line));
}

#define CHOICE "TLS records are encrypted in user space: "

START_TEST(choice_and_wrong_engines_are_logged)
{
    struct log log = {.level = LOG_NOTICE, .sink = add_line};
    struct aead_choice choice = {0};
    char expected_lines[1024];

    memset(choice.state, AEAD_USABLE, sizeof(choice.state));
    aead_log(&choice, TLS_AEAD_AUTO, &log);
    snprintf(expected_lines, sizeof(expected_lines),
             "%d " CHOICE "AES-128-GCM by openssl, AES-256-GCM by openssl, ChaCha20-Poly1305 by openssl\n",
             LOG_NOTICE);
    ck_assert_str_eq(lines, expected_lines);
    lines[0] = '\0';
    memset(choice.state[AEAD_IPSEC_MB], AEAD_WRONG, sizeof(choice.state[AEAD_IPSEC_MB]));
    choice.state[AEAD_OPENSSL][RECORD_AES_256_GCM] = AEAD_WRONG;
    aead_log(&choice, TLS_AEAD_IPSEC_MB, &log);
    snprintf(expected_lines, sizeof(expected_lines),
             "%d openssl encrypts AES-256-GCM incorrectly on this machine\n"
             "%d ipsec-mb encrypts AES-128-GCM incorrectly on this machine; it is not used\n"
             "%d " CHOICE "AES-128-GCM by openssl, AES-256-GCM by openssl, ChaCha20-Poly1305 by openssl\n",
             LOG_ALERT, LOG_ALERT, LOG_NOTICE);
    ck_assert_str_eq(lines, expected_lines);
    lines[0] = '\0';
    memset(choice.state[AEAD_OPENSSL], AEAD_USABLE, sizeof(choice.state[AEAD_OPENSSL]));
    memset(choice.state[AEAD_IPSEC_MB], AEAD_UNAVAILABLE, sizeof(choice.state[AEAD_IPSEC_MB]));
    aead_log(&choice, TLS_AEAD_AUTO, &log);
    ck_assert_ptr_null(strstr(lines, "cannot run here"));
    aead_log(&choice, TLS_AEAD_IPSEC_MB, &log);
    ck_assert_ptr_nonnull(strstr(lines, "ipsec-mb cannot run here"));
}
END_TEST

START_TEST(engines_of_this_machine_are_tested_and_measured)
{
    struct aead *other = aead_open(AEAD_IPSEC_MB);
    struct aead_choice choice;

    aead_examine((enum tls_aead)_i, &choice);
    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        bool served = other && other->has[cipher], measured = _i == TLS_AEAD_AUTO && served;

        ck_assert_uint_eq(choice.state[AEAD_OPENSSL][cipher], AEAD_USABLE);
        if (_i == TLS_AEAD_OPENSSL)
            ck_assert_uint_eq(choice.state[AEAD_IPSEC_MB][cipher], AEAD_UNTESTED);
        else if (!aead_engine(AEAD_IPSEC_MB)->built)
            ck_assert_uint_eq(choice.state[AEAD_IPSEC_MB][cipher], AEAD_NOT_BUILT);
        else
            ck_assert_uint_eq(choice.state[AEAD_IPSEC_MB][cipher], served  ? AEAD_USABLE
                                                                   : other ? AEAD_NO_CIPHER
                                                                           : AEAD_UNAVAILABLE);
        if (_i == TLS_AEAD_IPSEC_MB)
            ck_assert_uint_eq(choice.kind[cipher], served ? AEAD_IPSEC_MB : AEAD_OPENSSL);
        for (int kind = 0; kind < AEAD_KINDS; kind++) {
            ck_assert_int_eq(choice.figures[kind][cipher].small_ns > 0, measured);
            ck_assert_int_eq(choice.figures[kind][cipher].large_ns > choice.figures[kind][cipher].small_ns,
                             measured);
        }
    }
    aead_close(other);
}
END_TEST

START_TEST(choice_is_described_within_its_buffer)
{
    struct aead_choice choice = {.kind = {[RECORD_AES_128_GCM] = AEAD_IPSEC_MB},
                                 .figures = {[AEAD_OPENSSL][RECORD_AES_128_GCM] = {469, 3968},
                                             [AEAD_IPSEC_MB][RECORD_AES_128_GCM] = {312, 3861}}};
    char space[256];

    ck_assert_str_eq(aead_describe(&choice, RECORD_AES_128_GCM, space, sizeof(space)).data,
                     "ipsec-mb: 312 ns per record of 1200 bytes, 3861 ns of 16384; openssl: 469 ns, 3968 ns");
    ck_assert_str_eq(aead_describe(&choice, RECORD_CHACHA20_POLY1305, space, sizeof(space)).data, "openssl");
    ck_assert_str_eq(aead_summary(&choice, space, sizeof(space)).data,
                     "AES-128-GCM by ipsec-mb, AES-256-GCM by openssl, ChaCha20-Poly1305 by openssl");
    ck_assert_str_eq(aead_summary(&choice, space, 30).data, "AES-128-GCM by ipsec-mb, AES-");
    ck_assert_str_eq(record_cipher_name(RECORD_NONE), "");
    ck_assert_str_eq(record_cipher_name(200), "");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, setting_state_and_figures_decide_the_engine, 0,
                        sizeof(decisions) / sizeof(decisions[0]));
    tcase_add_loop_test(tcase, one_wrong_answer_disables_the_engine, 0, 2);
    tcase_add_test(tcase, choice_and_wrong_engines_are_logged);
    tcase_add_loop_test(tcase, engines_of_this_machine_are_tested_and_measured, TLS_AEAD_AUTO, TLS_AEAD_IPSEC_MB + 1);
    tcase_add_test(tcase, choice_is_described_within_its_buffer);
}

int main(void)
{
    return run_suite("aead_choice", add_tests);
}
