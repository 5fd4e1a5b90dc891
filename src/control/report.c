/*
 * Rows of a response, as JSON or as a table: see report.h.
 */
#include "control/report.h"

#include "base/utf8.h"
#include "conf/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define LAST_SECOND 253402300799 /* of the year 9999 */

static void append_raw(struct report *report, struct str text)
{
    if (report->error == 0)
        report->error = buffer_append(&report->out, text);
}

static void append_quoted(struct report *report, struct str text)
{
    append_raw(report, STR("\""));
    if (report->error == 0)
        report->error = template_escape_json(&report->out, text);
    append_raw(report, STR("\""));
}

/* Replaces control characters, which include the separators, and bytes that are not UTF-8. */
static void append_cell(struct report *report, struct str text)
{
    size_t at = report->out.length;

    append_raw(report, text);
    while (report->error == 0 && at < report->out.length) {
        uint32_t code;
        size_t length = utf8_decode(str_skip(buffer_str(&report->out), at), &code);

        if (length == 0 || utf8_is_control(code))
            memset(report->out.data + at, '?', length ? length : 1);
        at += length ? length : 1;
    }
}

void report_begin(struct report *report, const char *name, const char *const *columns)
{
    report->columns = columns;
    if (!report->table) {
        append_raw(report, STR("{"));
        append_quoted(report, str_from(name));
        append_raw(report, STR(": ["));
        return;
    }
    for (unsigned i = 0; columns[i]; i++) {
        append_raw(report, i > 0 ? STR("\t") : STR(""));
        append_cell(report, str_from(columns[i]));
    }
    append_raw(report, STR("\n"));
}

void report_row(struct report *report)
{
    report->column = 0;
    if (!report->table)
        append_raw(report, report->rows > 0 ? STR(",\n  {") : STR("\n  {"));
    report->rows++;
}

/* The separator and the name before a value. */
static void begin_value(struct report *report)
{
    if (report->table) {
        append_raw(report, report->column > 0 ? STR("\t") : STR(""));
        return;
    }
    append_raw(report, report->column > 0 ? STR(", ") : STR(""));
    append_quoted(report, str_from(report->columns[report->column]));
    append_raw(report, STR(": "));
}

static void end_value(struct report *report)
{
    if (report->columns[++report->column])
        return;
    append_raw(report, report->table ? STR("\n") : STR("}"));
}

void report_text(struct report *report, struct str text)
{
    begin_value(report);
    if (!text.data)
        append_raw(report, report->table ? STR("-") : STR("null"));
    else if (report->table)
        append_cell(report, text.length > 0 ? text : STR("-"));
    else
        append_quoted(report, text);
    end_value(report);
}

void report_number(struct report *report, uint64_t number)
{
    begin_value(report);
    if (report->error == 0)
        report->error = buffer_printf(&report->out, "%" PRIu64, number);
    end_value(report);
}

void report_signed(struct report *report, int64_t number)
{
    begin_value(report);
    if (report->error == 0)
        report->error = buffer_printf(&report->out, "%" PRId64, number);
    end_value(report);
}

void report_time(struct report *report, int64_t seconds)
{
    char text[64];
    time_t at = (time_t)seconds;
    struct tm parts;

    if (seconds < 0 || seconds > LAST_SECOND || !gmtime_r(&at, &parts) ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        report_text(report, (struct str){NULL, 0});
    else
        report_text(report, str_from(text));
}

void report_end(struct report *report)
{
    report_end_partial(report, &(struct report_note){.name = NULL});
}

static void append_note(struct report *report, const struct report_note *note)
{
    if (report->error < 0)
        return;
    if (!report->table)
        report->error = buffer_printf(&report->out, ", \"%s\": %" PRIu64, note->name, note->number);
    else if (note->number > 0)
        report->error = buffer_printf(&report->out, "\n%s: %" PRIu64 "\n", note->text, note->number);
}

void report_end_partial(struct report *report, const struct report_note *notes)
{
    if (!report->table)
        append_raw(report, report->rows > 0 ? STR("\n]") : STR("]"));
    for (; notes->name; notes++)
        append_note(report, notes);
    if (!report->table)
        append_raw(report, STR("}\n"));
}
