/*
 * The text of `doctor --report`, in Markdown.
 */
#ifndef DOCTOR_DOCTOR_MARKDOWN_H
#define DOCTOR_DOCTOR_MARKDOWN_H

#include "doctor/doctor.h"
#include "doctor/doctor_benchmark.h"

#include <stdio.h>

/* doctor_sections.c */

/*
 * Writes the whole report: versions and machine from `host`, all findings, and the benchmark unless it is NULL. Errors
 * are those of the stream.
 */
void doctor_markdown(FILE *out, const struct host *host, const struct diagnosis *diagnosis, bool works,
                     const struct benchmark *benchmark);

/* doctor_markdown.c */

/* Writes the head of a table of two columns, and a row; the value is escaped. An empty value writes nothing. */
void markdown_table(FILE *out, const char *heading);
void markdown_row(FILE *out, const char *label, const char *format, ...) PRINTF_LIKE(3, 4);
/*
 * Writes a text with "|" and "<" escaped; control characters become spaces. Other characters stay, so that private
 * words can be found in the report.
 */
void markdown_text(FILE *out, const char *text);
/* Writes the current day, UTC. */
void markdown_date(FILE *out);

/* doctor_machine.c: write tables of the software, the processor and the limits of the machine. */
void doctor_machine_versions(FILE *out, const struct host *host);
void doctor_machine_processor(FILE *out, const struct host *host);
void doctor_machine_limits(FILE *out, const struct host *host);
/* The model of the processor, "unknown" if /proc does not have it, and the release of the kernel. */
void doctor_machine_model(const struct host *host, char *into, size_t size);
void doctor_machine_kernel(const struct host *host, char *into, size_t size);

/* doctor_markdown_benchmark.c: writes the section, with a row for the table of bench/README.md. */
void doctor_markdown_benchmark(FILE *out, const struct host *host, const struct benchmark *benchmark);

#endif
