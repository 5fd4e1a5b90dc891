/*
 * The elements of the report: cells and tables of Markdown.
 */
#include "doctor/doctor_markdown.h"

#include "base/clock.h"

#include <stdarg.h>
#include <time.h>

enum { ROW_MAX = 1024 };

void markdown_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '<')
            fputs("&lt;", out);
        else if (byte == '|')
            fputs("\\|", out);
        else
            putc(byte < ' ' || byte == 0x7f ? ' ' : byte, out);
    }
}

void markdown_table(FILE *out, const char *heading)
{
    fprintf(out, "\n## %s\n\n| | |\n|---|---|\n", heading);
}

void markdown_row(FILE *out, const char *label, const char *format, ...)
{
    char value[ROW_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    if (!value[0])
        return;
    fprintf(out, "| %s | ", label);
    markdown_text(out, value);
    fputs(" |\n", out);
}

void markdown_date(FILE *out)
{
    struct clock clock;
    struct tm date;
    time_t now;

    clock_read(&clock);
    now = (time_t)clock_wall_s(&clock);
    gmtime_r(&now, &date);
    fprintf(out, "%04d-%02d-%02d", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}
