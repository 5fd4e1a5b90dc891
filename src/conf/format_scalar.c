/*
 * The words of a token: quoted and plain scalars of several lines, and block scalars, which move with their first line.
 */
#include "conf/format_private.h"

/* Writes the lines of a quoted or plain scalar after its first: their indentation has no meaning. */
static void folded_write(struct format *format, struct str text, unsigned source, unsigned column)
{
    struct format_lines *lines = &format->lines;
    struct str rest = text;

    lines_put(lines, str_cut(&rest, '\n'));
    while (rest.data) {
        struct str line = str_cut(&rest, '\n');
        struct str words = line;

        while (words.length && (words.data[0] == ' ' || words.data[0] == '\t'))
            words = str_skip(words, 1);
        lines_put(lines, STR("\n"));
        lines->start = lines->out->length;
        if (words.length) {
            unsigned old_column = (unsigned)(words.data - line.data);
            long shift = old_column > source ? (long)column - source : format_line_shift(format);
            unsigned indent = format_shift_column(old_column, shift, format_inner_indent(format));

            lines->failed |= buffer_printf(lines->out, "%*s", (int)indent, "") < 0;
            lines_put(lines, words);
        }
    }
}

static size_t blanks_of(struct str line)
{
    size_t count = 0;

    while (count < line.length && line.data[count] == ' ')
        count++;
    return count;
}

/* The indentation of a block scalar in the source; SIZE_MAX if all lines are empty. */
static size_t block_source(const struct format *format, struct str body, unsigned digit)
{
    if (digit)
        return (format->depth ? format_innermost(format)->source : 0) + digit;
    while (body.data) {
        struct str line = str_cut(&body, '\n');

        if (blanks_of(line) < line.length)
            return blanks_of(line);
    }
    return SIZE_MAX;
}

static struct str without_break(struct str body)
{
    if (body.length && body.data[body.length - 1] == '\n')
        body.length--;
    return body;
}

/* Removes empty lines at the end. */
static struct str without_empty_lines(struct str body, size_t indent)
{
    while (body.length) {
        struct str line;

        body = without_break(body);
        line = str_skip(body, (size_t)(str_rfind(body, '\n') + 1));
        if (line.length > indent || blanks_of(line) < line.length)
            return body;
        body.length -= line.length;
    }
    return body;
}

/* Writes "|" or ">" and its lines, shifted as a whole. Returns the number of bytes of `text` consumed. */
static size_t block_write(struct format *format, struct str text)
{
    struct format_lines *lines = &format->lines;
    struct str rest = text;
    struct str header = str_trim(str_cut(&rest, '\n'));
    struct str indicators = str_slice(header, 0, header.length < 3 ? header.length : 3);
    bool keep = str_find(indicators, '+') >= 0;
    unsigned digit = 0;
    size_t source, indent;
    struct str left;

    for (size_t i = 1; i < indicators.length && indicators.data[i] != ' '; i++)
        digit = indicators.data[i] >= '1' && indicators.data[i] <= '9' ? (unsigned)(indicators.data[i] - '0') : digit;
    source = block_source(format, rest, digit);
    indent = digit ? (format->depth ? format_innermost(format)->indent : 0) + digit
                   : format_innermost(format)->indent + FORMAT_LEVEL;
    keep = keep && rest.length > 0;
    rest = keep ? without_break(rest) : without_empty_lines(rest, source);
    lines_put(lines, header);
    if (!keep && !rest.length)
        return header.length;
    for (left = rest; left.data;) {
        struct str line = str_cut(&left, '\n');

        lines_put(lines, STR("\n"));
        if (line.length > source)
            lines->failed |= buffer_printf(lines->out, "%*s", (int)indent, "") < 0;
        lines_put(lines, str_skip(line, source));
    }
    return (size_t)(rest.data + rest.length - text.data);
}

static bool is_block_scalar(const yaml_token_t *token)
{
    return token->type == YAML_SCALAR_TOKEN && (token->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
                                                token->data.scalar.style == YAML_FOLDED_SCALAR_STYLE);
}

void format_words_write(struct format *format, size_t start, size_t end, unsigned source)
{
    struct str text = str_slice(format->lines.text, start, end);
    bool tracked = !format->flow || str_find(text, '\n') >= 0; /* other tokens do not need the column */
    unsigned column = tracked ? lines_here(&format->lines) : 0;

    format->end = end;
    format->block_last = is_block_scalar(&format->token);
    if (format->block_last)
        format->end = start + block_write(format, text);
    else
        folded_write(format, text, source, column);
    if (!format->flow) {
        format->flow_source = source;
        format->flow_column = column;
        format->flow_line = format_line_shift(format);
    }
}
