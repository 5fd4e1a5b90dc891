/*
 * Appends lines to a screen.
 */
#include "top/top_lines.h"

#include <stdarg.h>
#include <stdio.h>

void top_screen_add(struct top_screen *screen, enum top_style style, const char *format, ...)
{
    struct top_line *line = &screen->lines[screen->used];
    va_list args;

    if (screen->used >= screen->rows)
        return;
    line->style = style;
    va_start(args, format);
    vsnprintf(line->text, screen->columns + 1, format, args);
    va_end(args);
    screen->used++;
}
