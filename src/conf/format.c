/*
 * Formatting: copies the tokens of a source, and writes blanks, line breaks and comments between them. The nesting
 * determines the indentation of a line; the tokens of one line stay on one line.
 */
#include "conf/format_lines.h"

#include "conf/conf_parse.h"

#include <errno.h>

#define FRAMES_MAX (2 * LIMIT_CONF_DEPTH + 2)

/* A block mapping or list: its column in the source and in the output. */
struct frame {
    unsigned source;
    unsigned indent;
    bool list;
    bool assumed; /* a list in the column of its key, for which libyaml has no start token */
};

struct format {
    struct format_lines lines;
    struct format_cursor cursor;
    yaml_token_t token;
    yaml_token_type_t last; /* the type of the token written last */
    size_t end;             /* offset after it */
    struct frame frames[FRAMES_MAX];
    size_t depth;
    struct frame
        before[FRAMES_MAX]; /* the frames at the latest token, for the comments after it */
    size_t before_depth;
    unsigned flow;                     /* open brackets */
    unsigned flow_source, flow_column; /* of the outermost bracket */
    long flow_line;                    /* shift of its line */
    bool key;                          /* a key follows */
    bool too_deep;
    bool block_last; /* the latest token was a block scalar: a line break added after it would change its text */
};

static const struct frame *innermost_frame(const struct format *format)
{
    static const struct frame none;

    return format->depth ? &format->frames[format->depth - 1] : &none;
}

/* The indentation inside the innermost block. */
static unsigned inner_indent(const struct format *format)
{
    return format->depth ? innermost_frame(format)->indent + FORMAT_LEVEL : 0;
}

static void frame_push(struct format *format, unsigned source, bool list, bool assumed)
{
    if (format->depth == FRAMES_MAX) {
        format->too_deep = true;
        return;
    }
    format->frames[format->depth] = (struct frame){source, inner_indent(format), list, assumed};
    format->depth++;
}

static void frame_pop(struct format *format)
{
    if (format->depth)
        format->depth--;
}

static void assumed_pop(struct format *format)
{
    if (innermost_frame(format)->assumed)
        frame_pop(format);
}

/* The columns by which the current line is shifted. */
static long line_by(const struct format *format)
{
    return (long)format->lines.indent - format->lines.source_indent;
}

/* The new column of a line at `source` that belongs to a construct shifted by that much. */
static unsigned moved_column(unsigned source, long by, unsigned min)
{
    long column = (long)source + by;

    return column > (long)min ? (unsigned)column : min;
}

/*
 * The indentation of a line inside [] or {}: lines to the right of the bracket are shifted as the bracket is, others as
 * its line is. A closing bracket may be at the indentation of the block.
 */
static unsigned flow_indent(const struct format *format, unsigned source, bool closes)
{
    bool below = source > format->flow_source;

    return moved_column(source, below ? (long)format->flow_column - format->flow_source : format->flow_line,
                        closes ? innermost_frame(format)->indent : inner_indent(format));
}

/*
 * The indentation of the block that a comment belongs to: of the blocks that are open before the comment and the block
 * of the next token, the deepest one that does not begin to the right of the comment.
 */
static unsigned comment_indent(const struct format *format, unsigned column, unsigned next_source,
                               unsigned next_indent)
{
    unsigned best = next_source <= column ? next_source : 0;
    unsigned indent = next_indent;
    bool found = next_source <= column;

    for (size_t i = 0; i < format->before_depth; i++) {
        const struct frame *frame = &format->before[i];

        if (frame->source <= column && (!found || frame->source > best)) {
            found = true;
            best = frame->source;
            indent = frame->indent;
        }
    }
    return indent;
}

static struct str trimmed_end(struct str line)
{
    while (line.length && (line.data[line.length - 1] == ' ' || line.data[line.length - 1] == '\t'))
        line.length--;
    return line;
}

/* Writes comments and empty lines between two tokens. True: the second one, at `to`, begins a line. */
static bool gap_write(struct format *format, size_t to, unsigned next_source, unsigned next_indent)
{
    struct format_lines *lines = &format->lines;
    struct str gap = str_slice(lines->text, format->end, to);
    bool line = !format->block_last && (format->end == 0 || lines->text.data[format->end - 1] == '\n');

    while (gap.data) {
        struct str piece = trimmed_end(str_cut(&gap, '\n'));
        ssize_t sign = str_find(piece, '#');
        struct str comment = sign < 0 ? STR("") : str_skip(piece, (size_t)sign);
        unsigned column = sign < 0 ? 0 : lines_column(lines, (size_t)(comment.data - lines->text.data));

        if (comment.length && line)
            lines_comment(lines, comment,
                          format->flow ? flow_indent(format, column, false)
                                       : comment_indent(format, column, next_source, next_indent),
                          column);
        else if (comment.length)
            lines_trail(lines, comment, column);
        else if (line && gap.data)
            lines->empty_line_pending = true;
        line = line || gap.data;
    }
    return line;
}

/* True if no blank belongs between these two tokens of one line. */
static bool tokens_adjoin(yaml_token_type_t last, yaml_token_type_t next)
{
    if (last == YAML_FLOW_SEQUENCE_START_TOKEN || last == YAML_FLOW_MAPPING_START_TOKEN)
        return true;
    if (next == YAML_VALUE_TOKEN)
        return last == YAML_SCALAR_TOKEN || last == YAML_FLOW_SEQUENCE_END_TOKEN ||
               last == YAML_FLOW_MAPPING_END_TOKEN;
    return next == YAML_FLOW_ENTRY_TOKEN || next == YAML_FLOW_SEQUENCE_END_TOKEN ||
           next == YAML_FLOW_MAPPING_END_TOKEN;
}

/* The indentation of a token that begins a line. */
static unsigned token_indent(const struct format *format, unsigned source)
{
    switch (format->token.type) {
    case YAML_VERSION_DIRECTIVE_TOKEN:
    case YAML_TAG_DIRECTIVE_TOKEN:
    case YAML_DOCUMENT_START_TOKEN:
    case YAML_DOCUMENT_END_TOKEN:
        return 0;
    case YAML_FLOW_SEQUENCE_END_TOKEN:
    case YAML_FLOW_MAPPING_END_TOKEN:
        return flow_indent(format, source, true);
    case YAML_BLOCK_ENTRY_TOKEN:
        return innermost_frame(format)->indent;
    default:
        break;
    }
    if (format->flow)
        return flow_indent(format, source, false);
    if (format->key || format->token.type == YAML_KEY_TOKEN || format->token.type == YAML_VALUE_TOKEN)
        return innermost_frame(format)->indent;
    return inner_indent(format);
}

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
            bool below = old_column > source;
            unsigned stands =
                moved_column(old_column, below ? (long)column - source : line_by(format), inner_indent(format));

            lines->failed |= buffer_printf(lines->out, "%*s", (int)stands, "") < 0;
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

/* The indentation of a block scalar in the source; if all lines are empty, the maximum. */
static size_t block_source(const struct format *format, struct str body, unsigned digit)
{
    if (digit)
        return (format->depth ? innermost_frame(format)->source : 0) + digit;
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

/* Drops empty lines at the end, unless "+" keeps them. */
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
    struct str header = trimmed_end(str_cut(&rest, '\n'));
    struct str indicators = str_slice(header, 0, header.length < 3 ? header.length : 3);
    bool keep = str_find(indicators, '+') >= 0;
    unsigned digit = 0;
    size_t source, indent;
    struct str left;

    for (size_t i = 1; i < indicators.length && indicators.data[i] != ' '; i++)
        digit = indicators.data[i] >= '1' && indicators.data[i] <= '9' ? (unsigned)(indicators.data[i] - '0') : digit;
    source = block_source(format, rest, digit);
    indent = digit ? (format->depth ? innermost_frame(format)->indent : 0) + digit
                   : innermost_frame(format)->indent + FORMAT_LEVEL;
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

static void words_write(struct format *format, size_t start, size_t end, unsigned source)
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
        format->flow_line = line_by(format);
    }
}

static void token_write(struct format *format)
{
    size_t start = format_offset(&format->cursor, format->token.start_mark.index);
    size_t end = format_offset(&format->cursor, format->token.end_mark.index);
    unsigned source = (unsigned)format->token.start_mark.column;
    unsigned indent = token_indent(format, source);

    if (gap_write(format, start, source, indent))
        lines_begin(&format->lines, indent, source);
    else if (!tokens_adjoin(format->last, format->token.type))
        lines_put(&format->lines, STR(" "));
    words_write(format, start, end, source);
    format->last = format->token.type;
    format->key = false;
    memcpy(format->before, format->frames, sizeof(format->before));
    format->before_depth = format->depth;
}

/* Updates the nesting before the token is written. */
static void token_enter(struct format *format)
{
    unsigned column = (unsigned)format->token.start_mark.column;

    switch (format->token.type) {
    case YAML_BLOCK_SEQUENCE_START_TOKEN:
    case YAML_BLOCK_MAPPING_START_TOKEN:
        frame_push(format, column, format->token.type == YAML_BLOCK_SEQUENCE_START_TOKEN, false);
        break;
    case YAML_BLOCK_END_TOKEN:
        assumed_pop(format);
        frame_pop(format);
        break;
    case YAML_BLOCK_ENTRY_TOKEN:
        if (!format->flow && !innermost_frame(format)->list)
            frame_push(format, column, true, true);
        break;
    case YAML_KEY_TOKEN:
    case YAML_VALUE_TOKEN:
        if (!format->flow)
            assumed_pop(format);
        format->key = !format->flow && format->token.type == YAML_KEY_TOKEN;
        break;
    default:
        break;
    }
}

/* Updates the flow state after the token is written: its column in the output is known then. */
static void token_update_flow(struct format *format)
{
    yaml_token_type_t type = format->token.type;

    if (type == YAML_FLOW_SEQUENCE_START_TOKEN || type == YAML_FLOW_MAPPING_START_TOKEN)
        format->flow++;
    if ((type == YAML_FLOW_SEQUENCE_END_TOKEN || type == YAML_FLOW_MAPPING_END_TOKEN) && format->flow)
        format->flow--;
}

static void source_end(struct format *format)
{
    size_t length = format->lines.text.length;
    bool broken = length && format->lines.text.data[length - 1] == '\n';

    gap_write(format, length, 0, 0);
    if (broken || !format->block_last)
        lines_end(&format->lines);
}

/* False: libyaml reported an error. */
static bool tokens_write(struct format *format)
{
    yaml_parser_t yaml;
    bool good, more = true;

    if (!yaml_parser_initialize(&yaml)) {
        format->lines.failed = true;
        return true;
    }
    yaml_parser_set_encoding(&yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&yaml, (const unsigned char *)format->lines.text.data,
                                 format->lines.text.length);
    do {
        good = yaml_parser_scan(&yaml, &format->token);
        if (!good)
            break;
        more = format->token.type != YAML_STREAM_END_TOKEN;
        token_enter(format);
        if (format->token.end_mark.index > format->token.start_mark.index)
            token_write(format);
        token_update_flow(format);
        yaml_token_delete(&format->token);
    } while (more && !format->too_deep && !format->lines.failed);
    if (good)
        source_end(format);
    yaml_parser_delete(&yaml);
    return good;
}

/* Converts line breaks to LF. */
static struct str unix_lines(struct arena *arena, struct str text)
{
    char *copy = arena_alloc(arena, text.length + 1);
    size_t length = 0;

    for (size_t i = 0; copy && i < text.length; i++) {
        bool ended = text.data[i] == '\r';

        copy[length++] = ended ? '\n' : text.data[i];
        if (ended && i + 1 < text.length && text.data[i + 1] == '\n')
            i++;
    }
    return str_of(copy, length);
}

/* Reports libyaml's error through the loader. */
static int report_no_yaml(struct conf_loader *loader, const struct conf_file *file)
{
    parse_source(loader, file);
    if (!loader->errors->failed)
        conf_error(loader->errors, (struct conf_mark){file, 1, 1}, STR(""), "this is not valid YAML");
    return -EINVAL;
}

static int format_text(struct format *format, struct conf_loader *loader, const struct conf_file *file)
{
    struct conf_mark start = {file, 1, 1};

    if (!tokens_write(format))
        return report_no_yaml(loader, file);
    if (format->lines.failed)
        return -ENOMEM;
    if (format->too_deep) {
        conf_error(loader->errors, start, STR(""), "nested more than %d levels deep", LIMIT_CONF_DEPTH);
        return -EINVAL;
    }
    if (format_same(format->lines.text, buffer_str(format->lines.out)))
        return 0;
    if (!format_same(format->lines.text, format->lines.text))
        return report_no_yaml(loader, file);
    conf_error(loader->errors, start, STR("it is not changed"),
               "formatting would change the meaning of this file, or lose a comment");
    return -EINVAL;
}

int conf_format(struct arena *arena, struct str name, struct str text, struct conf_errors *errors,
                struct buffer *out)
{
    struct conf_loader loader = {.arena = arena, .errors = errors};
    struct buffer made = {0};
    struct format *format = arena_zalloc(arena, 1, sizeof(*format));
    struct conf_file *file = source_open(&loader, name, text, (struct conf_mark){0});
    int error;

    if (!format || !file)
        return format ? -EINVAL : -ENOMEM;
    format->lines.text = unix_lines(arena, file->text);
    format->lines.out = &made;
    format->cursor.text = format->lines.text;
    error = format->lines.text.data ? format_text(format, &loader, file) : -ENOMEM;
    if (error == 0)
        error = buffer_append(out, buffer_str(&made));
    buffer_finish(&made);
    return error;
}
