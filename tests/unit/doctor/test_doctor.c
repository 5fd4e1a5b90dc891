#include "doctor/doctor.h"
#include "wire/wire.h"

#include "../runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void refuse_all(struct ktls_support *support, enum ktls_reason reason)
{
    for (int version = 0; version < 2; version++)
        for (int cipher = 0; cipher <= RECORD_CHACHA20_POLY1305; cipher++)
            support->reason[version][cipher] = reason;
}

/* On any kernel: all bytes arrive, and the path of the response agrees with the probe. */
START_TEST(a_file_arrives_by_every_suite)
{
    struct ktls_support support = {0};

    ktls_probe(&ktls_calls_kernel, &support);
    for (const struct suite *suite = doctor_suites; suite->name; suite++) {
        enum ktls_reason reason = support.reason[suite->version][suite->cipher];
        struct self_test self_test;

        doctor_self_test(&support, suite, &self_test);
        ck_assert_msg(self_test.handshake, "%s", self_test.fault);
        ck_assert_msg(self_test.delivered, "%s", self_test.fault);
        ck_assert_str_eq(self_test.cipher, suite->openssl);
        ck_assert_str_eq(self_test.protocol, suite->version ? "TLSv1.3" : "TLSv1.2");
        ck_assert(self_test.key_offered);
        ck_assert_uint_eq(self_test.path, reason == KTLS_OK ? PATH_KTLS_SENDFILE : PATH_USER);
        ck_assert_uint_eq(self_test.reason, reason);
    }
}
END_TEST

START_TEST(refusal_is_reported_and_loses_no_bytes)
{
    struct ktls_support support = {0};
    struct self_test self_test;

    refuse_all(&support, KTLS_NO_PERMISSION);
    doctor_self_test(&support, doctor_suites, &self_test);
    ck_assert_msg(self_test.delivered, "%s", self_test.fault);
    ck_assert_uint_eq(self_test.path, PATH_USER);
    ck_assert_uint_eq(self_test.reason, KTLS_NO_PERMISSION);
    ck_assert_uint_eq(self_test.bytes, 1024 * 1024);
}
END_TEST

START_TEST(failed_handshake_is_reported)
{
    static const struct suite none[] = {{"none", 1, RECORD_AES_128_GCM, "NO_SUCH_SUITE"},
                                        {"none", 0, RECORD_AES_128_GCM, "NO_SUCH_CIPHER"}};
    struct ktls_support support = {0};
    struct self_test self_test;

    doctor_self_test(&support, &none[1], &self_test);
    ck_assert(!self_test.handshake);
    doctor_self_test(&support, &none[0], &self_test);
    ck_assert(!self_test.handshake);
    ck_assert(!self_test.delivered);
    ck_assert_uint_gt(strlen(self_test.fault), 0);
}
END_TEST

static int run_doctor(bool json, char *out, size_t size)
{
    struct options options = {.json = json};
    FILE *file = tmpfile();
    int saved_fd = dup(STDOUT_FILENO);
    size_t length;
    int status;

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    status = command_doctor(&options);
    fflush(stdout);
    dup2(saved_fd, STDOUT_FILENO);
    close(saved_fd);
    rewind(file);
    length = fread(out, 1, size - 1, file);
    out[length] = '\0';
    fclose(file);
    return status;
}

START_TEST(text_report_has_every_section)
{
    static const char *const expected[] = {"OpenSSL offers its write key",
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
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_msg(strstr(text, expected[i]), "%s is not in\n%s", expected[i], text);
    ck_assert_int_eq(status, support.reason[1][RECORD_AES_128_GCM] == KTLS_OK ? 0 : 1);
    ck_assert_ptr_nonnull(strstr(text, status ? "does not work here" : "works here"));
    if (status)
        ck_assert_ptr_nonnull(strstr(text, "-> "));
}
END_TEST

START_TEST(json_report_agrees_with_the_exit_status)
{
    char text[16384];
    int status = run_doctor(true, text, sizeof(text));

    ck_assert(text[0] == '{');
    ck_assert_ptr_nonnull(strstr(text, status ? "\"ktls\": false" : "\"ktls\": true"));
    ck_assert_ptr_nonnull(strstr(text, "\"name\": \"transfer\""));
    ck_assert_ptr_nonnull(strstr(text, "]}\n"));
}
END_TEST

static const struct finding *last(const struct diagnosis *diagnosis)
{
    return &diagnosis->findings[diagnosis->count - 1];
}

/* Simulated results of a self-test, most of which do not occur on this machine, and their reports. */
START_TEST(each_result_of_a_self_test_is_reported)
{
    static struct diagnosis diagnosis;
    const struct suite *suite = &doctor_suites[3];
    struct self_test self_test = {.fault = "it rained"};

    ck_assert(!doctor_report_first(&diagnosis, &self_test));
    ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_FAULT);
    ck_assert_ptr_nonnull(strstr(last(&diagnosis)->text, "TLS handshake of the self-test failed: it rained"));
    ck_assert(doctor_report_suite(&diagnosis, suite, &self_test));
    ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_NOTE);
    ck_assert_ptr_nonnull(
        strstr(last(&diagnosis)->text, "AES-128-GCM: the kernel accepts the key, but the handshake of OpenSSL"));

    self_test.handshake = true;
    ck_assert(!doctor_report_first(&diagnosis, &self_test));
    ck_assert_ptr_nonnull(strstr(last(&diagnosis)->text, "did not arrive completely: it rained"));
    ck_assert(!doctor_report_suite(&diagnosis, suite, &self_test));
    ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_FAULT);
    ck_assert_ptr_nonnull(strstr(last(&diagnosis)->advice, "ssl_ktls: off"));

    self_test.delivered = true;
    self_test.path = PATH_USER;
    self_test.reason = KTLS_TX_REFUSED;
    ck_assert(!doctor_report_first(&diagnosis, &self_test));
    ck_assert_ptr_nonnull(strstr(last(&diagnosis)->text, "tls_path user, tls_path_reason tx-refused"));
    ck_assert_int_eq(diagnosis.findings[diagnosis.count - 2].verdict, VERDICT_FAULT); /* OpenSSL offered no key */
    ck_assert(doctor_report_suite(&diagnosis, suite, &self_test));
    ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_NOTE);

    self_test.key_offered = true;
    self_test.path = PATH_KTLS_SENDFILE;
    ck_assert(doctor_report_first(&diagnosis, &self_test));
    ck_assert_int_eq(diagnosis.findings[diagnosis.count - 2].verdict, VERDICT_GOOD);
    ck_assert(doctor_report_suite(&diagnosis, suite, &self_test));
    ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_GOOD);
}
END_TEST

/*
 * The first suite is the one that servers negotiate. The advice is printed once for all suites that fail for the same
 * reason.
 */
START_TEST(each_refusal_is_reported)
{
    static const struct {
        enum ktls_reason reason;
        const char *advice;
    } rejections[] = {{KTLS_NO_MODULE, ""},
                    {KTLS_NOT_BUILT, "linux-libc-dev"},
                    {KTLS_NO_PERMISSION, "sandbox"},
                    {KTLS_CIPHER, "ChaCha20-Poly1305 5.11"},
                    {KTLS_ULP_REFUSED, "loopback is down"}};
    static struct diagnosis diagnosis;

    for (size_t i = 0; i < sizeof(rejections) / sizeof(rejections[0]); i++) {
        refuse_all(&diagnosis.support, rejections[i].reason);
        ck_assert(doctor_report_suite(&diagnosis, &doctor_suites[0], NULL));
        ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_FAULT);
        ck_assert_ptr_nonnull(strstr(last(&diagnosis)->text, ktls_reason_name(rejections[i].reason)));
        ck_assert_msg(rejections[i].advice[0] ? strstr(last(&diagnosis)->advice, rejections[i].advice) != NULL
                                            : last(&diagnosis)->advice[0] == '\0',
                      "%s", last(&diagnosis)->advice);
        ck_assert(doctor_report_suite(&diagnosis, &doctor_suites[1], NULL));
        ck_assert_int_eq(last(&diagnosis)->verdict, VERDICT_NOTE);
        ck_assert_str_eq(last(&diagnosis)->advice, "");
    }
}
END_TEST

START_TEST(findings_are_limited)
{
    static struct diagnosis diagnosis;
    char longer[2000];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    for (int i = 0; i < 2 * DOCTOR_FINDINGS; i++) {
        doctor_add(&diagnosis, "x", VERDICT_NOTE, "%s", longer);
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
        "doctor", (const TTest *const[]){a_file_arrives_by_every_suite, refusal_is_reported_and_loses_no_bytes,
                                         failed_handshake_is_reported, text_report_has_every_section,
                                         json_report_agrees_with_the_exit_status,
                                         each_result_of_a_self_test_is_reported, each_refusal_is_reported,
                                         findings_are_limited, NULL});
}
