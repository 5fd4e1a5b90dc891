/*
 * The list of findings.
 */
#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

void doctor_add(struct diagnosis *diagnosis, const char *name, enum verdict verdict, const char *format, ...)
{
    struct finding *finding;
    va_list args;

    if (diagnosis->count < DOCTOR_FINDINGS)
        diagnosis->count++;
    finding = &diagnosis->findings[diagnosis->count - 1];
    finding->name = name;
    finding->verdict = verdict;
    finding->advice[0] = '\0';
    va_start(args, format);
    vsnprintf(finding->text, sizeof(finding->text), format, args);
    va_end(args);
}

void doctor_advise(struct diagnosis *diagnosis, const char *format, ...)
{
    struct finding *finding = &diagnosis->findings[diagnosis->count - 1];
    va_list args;

    va_start(args, format);
    vsnprintf(finding->advice, sizeof(finding->advice), format, args);
    va_end(args);
}
