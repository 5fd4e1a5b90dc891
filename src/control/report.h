/*
 * Writes the rows of a response of the control socket: as JSON, or as lines of fields separated by tabs, which
 * `sluice ctl` aligns. The first error is kept, so that the writers need no checks.
 */
#ifndef CONTROL_REPORT_H
#define CONTROL_REPORT_H

#include "base/buffer.h"

struct report {
    struct buffer out;              /* owned: buffer_finish */
    bool table;                     /* lines with tabs */
    int error;                      /* 0, -ENOMEM or -ENOBUFS */
    const char *const *columns;     /* NULL-terminated; not owned */
    unsigned column;                /* of the next value */
    unsigned rows;
};

/* Begins the only list of the response: {"NAME": [ ..., or the line of column names. */
void report_begin(struct report *report, const char *name, const char *const *columns);
/* Begins a row, which then gets one value for each column, in their order. */
void report_row(struct report *report);
/*
 * data NULL: null; in a table "-", as for an empty text. In a table, bytes of control characters, which terminals
 * interpret, and bytes that are not UTF-8 become "?".
 */
void report_text(struct report *report, struct str text);
void report_number(struct report *report, uint64_t number);
void report_signed(struct report *report, int64_t number);
/* As a text, in UTC: 2026-01-31T12:00:00Z. Years beyond 9999 and before 1970 are null. */
void report_time(struct report *report, int64_t seconds);
/* Ends the list. */
void report_end(struct report *report);

/* A number about an incomplete list. */
struct report_note {
    const char *name;               /* in JSON, after the list; NULL: the last note */
    const char *text;               /* in a table: "TEXT: NUMBER" after an empty line, unless the number is 0 */
    uint64_t number;
};
/* Ends the list with notes. */
void report_end_partial(struct report *report, const struct report_note *notes);

#endif
