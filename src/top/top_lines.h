/*
 * The lines of the live view: text without control sequences, and a style.
 */
#ifndef TOP_TOP_LINES_H
#define TOP_TOP_LINES_H

#include "base/limits.h"
#include "base/must_check.h"

enum top_style { TOP_NORMAL, TOP_TITLE, TOP_HEADING, TOP_FAULT };

struct top_screen {
    unsigned columns, rows;                 /* of the terminal, at most the limits */
    unsigned used;                          /* lines that are filled */
    struct top_line {
        enum top_style style;
        char text[LIMIT_TOP_COLUMNS + 1];   /* printable ASCII, at most `columns` characters */
    } lines[LIMIT_TOP_ROWS];
};

/* Appends a line, truncated to the width; no effect if no row is left. */
void top_screen_add(struct top_screen *screen, enum top_style style, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
