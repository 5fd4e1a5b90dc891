/*
 * Aligns the columns of a table.
 */
#include "command/ctl.h"

enum { COLUMNS_MAX = 32 };

/* Characters of a UTF-8 text: bytes that continue a character do not count. */
static size_t width_of(struct str text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.length; i++)
        width += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return width;
}

static bool is_number(struct str text)
{
    size_t digits = 0;

    for (size_t i = 0; i < text.length; i++)
        digits += text.data[i] >= '0' && text.data[i] <= '9';
    return digits > 0 && digits + (text.data[0] == '-') == text.length;
}

/* The width of each column, and whether all of its values after the title are numbers. An empty line ends the table. */
static void measure_columns(struct str lines, size_t widths[COLUMNS_MAX], bool numbers[COLUMNS_MAX])
{
    bool title = true;

    for (size_t i = 0; i < COLUMNS_MAX; i++) {
        widths[i] = 0;
        numbers[i] = true;
    }
    while (!str_empty(lines) && lines.data[0] != '\n') {
        struct str line = str_cut(&lines, '\n');

        for (size_t i = 0; line.data && i < COLUMNS_MAX; i++) {
            struct str cell = str_cut(&line, '\t');

            if (width_of(cell) > widths[i])
                widths[i] = width_of(cell);
            numbers[i] &= title || is_number(cell);
        }
        title = false;
    }
}

/* `last`: the end of the line needs no padding. */
static int print_cell(struct buffer *out, struct str cell, size_t width, bool right, bool last)
{
    int padding = (int)(width - width_of(cell));
    int error = right ? buffer_printf(out, "%*s", padding, "") : 0;

    if (error == 0)
        error = buffer_append(out, cell);
    if (error == 0 && !last)
        error = buffer_printf(out, "%*s", (right ? 0 : padding) + 2, "");
    return error;
}

int ctl_table_print(struct str lines, struct buffer *out)
{
    size_t widths[COLUMNS_MAX];
    bool numbers[COLUMNS_MAX];
    int error = 0;

    measure_columns(lines, widths, numbers);
    while (!str_empty(lines) && lines.data[0] != '\n' && error == 0) {
        struct str line = str_cut(&lines, '\n');

        for (size_t i = 0; line.data && i < COLUMNS_MAX && error == 0; i++) {
            struct str cell = str_cut(&line, '\t');

            error = print_cell(out, cell, widths[i], numbers[i], !line.data);
        }
        if (error == 0)
            error = buffer_append(out, STR("\n"));
    }
    return error == 0 ? buffer_append(out, lines) : error;
}
