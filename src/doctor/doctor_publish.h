/*
 * `sluice doctor --report`: where the report is written, and the signals that end it.
 */
#ifndef DOCTOR_DOCTOR_PUBLISH_H
#define DOCTOR_DOCTOR_PUBLISH_H

#include "doctor/doctor.h"

/* Writes the report. Exit status 0 if it was written completely, whether kernel TLS works or not. */
int doctor_publish(const struct options *options);

#endif
