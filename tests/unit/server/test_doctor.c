#include "server/commands.h"
#include "server/doctor.h"
#include "wire/wire.h"

#include "runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const suites[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                     "TLS_CHACHA20_POLY1305_SHA256"};

static void refuse_all(struct ktls_support *support, enum ktls_reason reason)
{
    for (int version = 0; version < 2; version++)
        for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            support->reason[version][cipher] = reason;
}

/* Whatever this kernel can: the bytes arrive, and the way they went is what the probe has said. */
START_TEST(a_file_arrives_by_every_suite)
{
    struct ktls_support support = {0};

    ktls_probe(&ktls_calls_kernel, &support);
    for (unsigned i = 0; i < 3; i++) {
        enum ktls_reason reason = support.reason[1][RECORD_AES_128_GCM + i];
        struct trial trial;

        doctor_try(&support, suites[i], &trial);
        ck_assert_msg(trial.handshake, "%s", trial.fault);
        ck_assert_msg(trial.delivered, "%s", trial.fault);
        ck_assert_str_eq(trial.cipher, suites[i]);
        ck_assert(trial.key_offered);
        ck_assert_uint_eq(trial.path, reason == KTLS_OK ? PATH_KTLS_SENDFILE : PATH_USER);
        ck_assert_uint_eq(trial.reason, reason);
    }
}
END_TEST

START_TEST(a_refusal_is_named_and_loses_nothing)
{
    struct ktls_support support = {0};
    struct trial trial;

    refuse_all(&support, KTLS_NO_PERMISSION);
    doctor_try(&support, suites[0], &trial);
    ck_assert_msg(trial.delivered, "%s", trial.fault);
    ck_assert_uint_eq(trial.path, PATH_USER);
    ck_assert_uint_eq(trial.reason, KTLS_NO_PERMISSION);
    ck_assert_uint_eq(trial.bytes, 1024 * 1024);
}
END_TEST

START_TEST(a_handshake_that_fails_is_told)
{
    struct ktls_support support = {0};
    struct trial trial;

    doctor_try(&support, "NO_SUCH_SUITE", &trial);
    ck_assert(!trial.handshake);
    ck_assert(!trial.delivered);
    ck_assert_uint_gt(strlen(trial.fault), 0);
}
END_TEST

static int run_doctor(bool json, char *out, size_t size)
{
    struct options options = {.json = json};
    FILE *file = tmpfile();
    int kept = dup(STDOUT_FILENO);
    size_t length;
    int status;

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    status = command_doctor(&options);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    length = fread(out, 1, size - 1, file);
    out[length] = '\0';
    fclose(file);
    return status;
}

START_TEST(says_what_works_and_what_to_do)
{
    static const char *const wanted[] = {"OpenSSL offers its write key",
                                         "TLS 1.3 AES-128-GCM",
                                         "TLS 1.3 ChaCha20-Poly1305",
                                         "TLS 1.2 AES-256-GCM",
                                         "loop: ",
                                         "open files: ",
                                         "Linux ",
                                         "kTLS: "};
    struct ktls_support support = {0};
    char text[16384];
    int status = run_doctor(false, text, sizeof(text));

    ktls_probe(&ktls_calls_kernel, &support);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        ck_assert_msg(strstr(text, wanted[i]), "%s is not in\n%s", wanted[i], text);
    ck_assert_int_eq(status, support.reason[1][RECORD_AES_128_GCM] == KTLS_OK ? 0 : 1);
    ck_assert_ptr_nonnull(strstr(text, status ? "does not work here" : "works here"));
    if (status)
        ck_assert_ptr_nonnull(strstr(text, "-> "));
}
END_TEST

START_TEST(speaks_json)
{
    char text[16384];
    int status = run_doctor(true, text, sizeof(text));

    ck_assert(text[0] == '{');
    ck_assert_ptr_nonnull(strstr(text, status ? "\"ktls\": false" : "\"ktls\": true"));
    ck_assert_ptr_nonnull(strstr(text, "\"name\": \"transfer\""));
    ck_assert_ptr_nonnull(strstr(text, "]}\n"));
}
END_TEST

START_TEST(findings_never_overrun)
{
    static struct diagnosis diagnosis;
    char longer[2000];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    for (int i = 0; i < 2 * DOCTOR_FINDINGS; i++) {
        doctor_find(&diagnosis, "x", VERDICT_NOTE, "%s", longer);
        doctor_advise(&diagnosis, "%s", longer);
    }
    ck_assert_uint_eq(diagnosis.count, DOCTOR_FINDINGS);
    ck_assert_uint_eq(strlen(diagnosis.findings[DOCTOR_FINDINGS - 1].text), 255);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return run_tests(
        "doctor", (const TTest *const[]){a_file_arrives_by_every_suite, a_refusal_is_named_and_loses_nothing,
                                         a_handshake_that_fails_is_told, says_what_works_and_what_to_do,
                                         speaks_json, findings_never_overrun, NULL});
}
