/*
 * Appends text to the status page.
 */
#include "status.h"

#include "base/utf8.h"
#include "server/page/html.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void status_print(struct status_page_text *page, const char *format, ...)
{
    char text[512];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (page->error == 0)
        page->error = length < 0 || (size_t)length >= sizeof(text)
                          ? -ENOBUFS
                          : buffer_append(page->out, str_of(text, (size_t)length));
}

void status_print_text(struct status_page_text *page, struct str text)
{
    if (page->error == 0)
        page->error = buffer_append(page->out, text);
}

void status_print_head(struct status_page_text *page, const char *name, const char *type, const char *help)
{
    status_print(page, "# HELP sluice_%s %s\n# TYPE sluice_%s %s\n", name, help, name, type);
}

void status_print_html(struct status_page_text *page, const char *text)
{
    if (page->error == 0)
        page->error = html_append(page->out, str_from(text));
}

void status_print_json(struct status_page_text *page, const char *text)
{
    if (page->error == 0)
        page->error = template_escape_json(page->out, str_from(text));
}

void status_print_label(struct status_page_text *page, const char *text)
{
    struct str left = str_from(text);

    while (!str_empty(left)) {
        size_t length = utf8_length(left);
        char first = left.data[0];

        if (length == 0)
            status_print(page, "\xef\xbf\xbd");
        else if (first == '\n')
            status_print(page, "\\n");
        else
            status_print(page, first == '"' || first == '\\' ? "\\%.*s" : "%.*s", (int)length, left.data);
        left = str_skip(left, length ? length : 1);
    }
}

void status_print_number(struct status_page_text *page, uint64_t value)
{
    unsigned long long groups[7];
    size_t count = 0;

    do {
        groups[count++] = value % 1000;
        value /= 1000;
    } while (value);
    status_print(page, "%llu", groups[--count]);
    while (count)
        status_print(page, "&#8239;%03llu", groups[--count]);
}
