#include "doctor/doctor.h"

#include "../acme/made.h"
#include "../runner.h"
#include "acme/acme_schedule.h"

#include <time.h>

static char file[96], record[96];
static struct str name = {"a.test", 6};
static struct acme_certificate certificate;
static const struct acme acme = {.items = &certificate, .count = 1};
static struct diagnosis diagnosis;

static const struct finding *examine(int64_t later_s)
{
    diagnosis.count = 0;
    doctor_examine_acme(&diagnosis, &acme, time(NULL) + later_s);
    ck_assert_uint_eq(diagnosis.count, 1);
    ck_assert_str_eq(diagnosis.findings[0].name, "acme");
    return &diagnosis.findings[0];
}

START_TEST(each_state_of_a_certificate_has_its_finding)
{
    struct acme_attempt attempt = {0};
    const struct finding *finding;

    folder_make();
    snprintf(file, sizeof(file), "%s/x.pem", folder);
    snprintf(record, sizeof(record), "%s/x.state", folder);
    certificate = (struct acme_certificate){name, &name, 1, NULL, str_from(file), str_from(record)};
    finding = examine(0);
    ck_assert(finding->verdict == VERDICT_NOTE && strstr(finding->text, "no certificate yet") && !finding->advice[0]);
    acme_attempt_failed(&attempt, 300000, "no such name", time(NULL), 0);
    ck_assert_int_eq(acme_attempt_write(record, &attempt), 0);
    finding = examine(0);
    ck_assert_ptr_nonnull(strstr(finding->advice, "1 failed attempts, the last one: no such name; next attempt in "));
    make_certificate(file, file, "DNS:a.test", 0, 90 * 86400);
    finding = examine(3600);
    ck_assert_int_eq(finding->verdict, VERDICT_NOTE);
    attempt = (struct acme_attempt){0};
    ck_assert_int_eq(acme_attempt_write(record, &attempt), 0);
    finding = examine(3600);
    ck_assert_int_eq(finding->verdict, VERDICT_GOOD);
    ck_assert_str_eq(finding->text, "acme: a.test: 89 days left; renewal in 59 days, at two thirds of the lifetime");
    acme_attempt_answered(&attempt, ACME_WINDOW_AHEAD, time(NULL));
    ck_assert_int_eq(acme_attempt_write(record, &attempt), 0);
    ck_assert_str_eq(examine(3600)->text, "acme: a.test: 89 days left; "
                                          "renewal in the window of the authority, which has not been reached");
    ck_assert_ptr_nonnull(strstr(examine(2 * 86400)->text, "at two thirds of the lifetime"));
    ck_assert_int_eq(examine(91 * 86400)->verdict, VERDICT_NOTE);
    make_certificate(file, file, "DNS:b.test", 0, 90 * 86400);
    finding = examine(3600);
    ck_assert(finding->verdict == VERDICT_NOTE && strstr(finding->text, "without all names"));
    folder_remove();
}
END_TEST

START_TEST(configuration_without_acme_has_no_finding)
{
    diagnosis.count = 0;
    doctor_examine_acme(&diagnosis, &(struct acme){0}, 0);
    ck_assert_uint_eq(diagnosis.count, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_state_of_a_certificate_has_its_finding,
                                  configuration_without_acme_has_no_finding, NULL};

    return run_tests("doctor_acme", tests);
}
