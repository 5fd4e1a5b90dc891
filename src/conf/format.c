/*
 * Formatting: copies the tokens of a source, and writes blanks, line breaks and comments between them. The nesting
 * determines the indentation of a line; the tokens of one line stay on one line.
 */
#include "conf/format_private.h"

#include "conf/conf_parse.h"

#include <errno.h>

/* Writes comments and empty lines between two tokens. True: the second one, at `to`, begins a line. */
static bool gap_write(struct format *format, size_t to, unsigned next_source, unsigned next_indent)
{
    struct format_lines *lines = &format->lines;
    struct str gap = str_slice(lines->text, format->end, to);
    bool line = !format->block_last && (format->end == 0 || lines->text.data[format->end - 1] == '\n');

    while (gap.data) {
        struct str piece = str_trim(str_cut(&gap, '\n'));
        ssize_t sign = str_find(piece, '#');
        struct str comment = sign < 0 ? STR("") : str_skip(piece, (size_t)sign);
        unsigned column = sign < 0 ? 0 : lines_column(lines, (size_t)(comment.data - lines->text.data));

        if (comment.length && line)
            lines_comment(lines, comment, format_comment_indent(format, column, next_source, next_indent), column);
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

static void token_write(struct format *format)
{
    size_t start = format_offset(&format->cursor, format->token.start_mark.index);
    size_t end = format_offset(&format->cursor, format->token.end_mark.index);
    unsigned source = (unsigned)format->token.start_mark.column;
    unsigned indent = format_token_indent(format, source);

    if (gap_write(format, start, source, indent))
        lines_begin(&format->lines, indent, source);
    else if (!tokens_adjoin(format->last, format->token.type))
        lines_put(&format->lines, STR(" "));
    format_words_write(format, start, end, source);
    format->last = format->token.type;
    format->key = false;
    memcpy(format->before, format->frames, sizeof(format->before));
    format->before_depth = format->depth;
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
        format_token_enter(format);
        if (format->token.end_mark.index > format->token.start_mark.index)
            token_write(format);
        format_token_leave(format);
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
