/*
 * The certificates of `ssl_certificate: acme` of a configuration: days left, the last failure, and the next attempt.
 */
#include "doctor/doctor.h"

#include "acme/acme_schedule.h"

#include <errno.h>
#include <stdio.h>

static long long to_days(int64_t seconds)
{
    return (long long)(seconds > 0 ? seconds / 86400 : 0);
}

static void report_failure(struct diagnosis *diagnosis, const struct acme_attempt *attempt, int64_t now_s)
{
    int64_t wait_s = attempt->next_s > now_s ? attempt->next_s - now_s : 0;

    doctor_advise(diagnosis, "%llu failed attempts, the last one: %s; next attempt in %lld s",
                  (unsigned long long)attempt->failures, attempt->error, (long long)wait_s);
}

/* `attempt` NULL: none is recorded. */
static void print_renewal(char *into, size_t size, const struct acme_validity *validity,
                          const struct acme_attempt *attempt, int64_t now_s)
{
    if (attempt && acme_window_decides(attempt, now_s))
        snprintf(into, size, "in the window of the authority, which has not been reached");
    else
        snprintf(into, size, "in %lld days, at two thirds of the lifetime",
                 to_days(acme_renewal_s(validity, 0) - now_s));
}

static void examine_certificate(struct diagnosis *diagnosis, const struct acme_certificate *certificate, int64_t now_s)
{
    struct acme_attempt attempt;
    struct acme_validity validity;
    int error = acme_file_read(certificate->file.data, certificate, &validity);
    int attempted = acme_attempt_read(certificate->attempt_file.data, &attempt);
    bool fails = attempted == 0 && attempt.failures > 0;
    char renewal[80] = "";

    if (error == 0)
        print_renewal(renewal, sizeof(renewal), &validity, attempted == 0 ? &attempt : NULL, now_s);
    if (error == -EACCES)
        doctor_add(diagnosis, "acme", VERDICT_NOTE, "acme: " STR_FMT ": this user may not read the state folder",
                   STR_ARG(certificate->name));
    else if (error < 0)
        doctor_add(diagnosis, "acme", VERDICT_NOTE, "acme: " STR_FMT ": %s (%s)", STR_ARG(certificate->name),
                   acme_file_is_unknown(error) ? "the certificate cannot be read" : "no certificate yet",
                   strerror(-error));
    else
        doctor_add(diagnosis, "acme",
                   validity.not_after_s > now_s && validity.covers_names && !fails ? VERDICT_GOOD : VERDICT_NOTE,
                   "acme: " STR_FMT ": %lld days left%s; renewal %s", STR_ARG(certificate->name),
                   to_days(validity.not_after_s - now_s), validity.covers_names ? "" : ", without all names",
                   renewal);
    if (fails)
        report_failure(diagnosis, &attempt, now_s);
}

void doctor_examine_acme(struct diagnosis *diagnosis, const struct acme *acme, int64_t now_s)
{
    for (size_t i = 0; i < acme->count; i++)
        examine_certificate(diagnosis, &acme->items[i], now_s);
}
