/*
 * All examinations of this machine: the host, then a self-test for each cipher suite.
 */
#include "doctor/doctor.h"

/* Runs the self-test of a suite if the kernel supports it, and reports the result. */
static bool try_suite(struct diagnosis *diagnosis, const struct suite *suite)
{
    struct self_test self_test;

    if (diagnosis->support.reason[suite->version][suite->cipher] != KTLS_OK)
        return doctor_report_suite(diagnosis, suite, NULL);
    doctor_self_test(&diagnosis->support, suite, &self_test);
    return doctor_report_suite(diagnosis, suite, &self_test);
}

bool doctor_examine_machine(struct diagnosis *diagnosis)
{
    struct self_test self_test;
    bool works;

    doctor_examine_host(diagnosis);
    doctor_self_test(&diagnosis->support, doctor_suites, &self_test);
    works = doctor_report_first(diagnosis, &self_test);
    for (const struct suite *suite = doctor_suites; suite->name; suite++) {
        if (!try_suite(diagnosis, suite))
            works = false;
    }
    return works;
}
