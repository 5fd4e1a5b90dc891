/*
 * Lines of a formatted source, with their comments. Columns count characters.
 */
#include "conf/format_lines.h"

static unsigned count_characters(struct str text)
{
    unsigned count = 0;

    for (size_t i = 0; i < text.length; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

unsigned lines_column(const struct format_lines *lines, size_t at)
{
    size_t start = at;

    while (start > 0 && lines->text.data[start - 1] != '\n')
        start--;
    return count_characters(str_slice(lines->text, start, at));
}

unsigned lines_here(const struct format_lines *lines)
{
    return count_characters(str_skip(buffer_str(lines->out), lines->start));
}

void lines_put(struct format_lines *lines, struct str words)
{
    lines->failed = lines->failed || buffer_append(lines->out, words) < 0;
    lines->content = lines->content || words.length;
}

static void append_blanks(struct format_lines *lines, unsigned count)
{
    lines->failed = lines->failed || buffer_printf(lines->out, "%*s", (int)count, "") < 0;
}

void lines_end(struct format_lines *lines)
{
    if (!lines->content)
        return;
    lines_put(lines, STR("\n"));
    lines->content = false;
    lines->start = lines->out->length;
}

void lines_begin(struct format_lines *lines, unsigned indent, unsigned source_indent)
{
    lines_end(lines);
    if (lines->empty_line_pending && lines->out->length) {
        lines_put(lines, STR("\n"));
        lines->start = lines->out->length;
    }
    lines->empty_line_pending = false;
    lines->comment_source = 0;
    lines->indent = indent;
    lines->source_indent = source_indent;
    append_blanks(lines, indent);
    lines->content = true;
}

void lines_trail(struct format_lines *lines, struct str comment, unsigned source_column)
{
    unsigned min = lines_here(lines) + 1;
    long moved = (long)source_column + lines->indent - lines->source_indent;

    lines->comment_source = source_column;
    lines->comment = moved > (long)min ? (unsigned)moved : min;
    append_blanks(lines, lines->comment - min + 1);
    lines_put(lines, comment);
    lines_end(lines);
}

void lines_comment(struct format_lines *lines, struct str comment, unsigned indent, unsigned source_column)
{
    unsigned source = lines->comment_source, column = lines->comment;
    bool below = source && source == source_column && !lines->empty_line_pending;

    lines_begin(lines, below ? column : indent, source_column);
    lines_put(lines, comment);
    lines_end(lines);
    lines->comment_source = below ? source : 0;
    lines->comment = column;
}
