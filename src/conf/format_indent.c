/*
 * The nesting of blocks at a token, and the indentation of tokens and comments that follows from it.
 */
#include "conf/format_private.h"

const struct frame *format_innermost(const struct format *format)
{
    static const struct frame none;

    return format->depth ? &format->frames[format->depth - 1] : &none;
}

unsigned format_inner_indent(const struct format *format)
{
    return format->depth ? format_innermost(format)->indent + FORMAT_LEVEL : 0;
}

static void frame_push(struct format *format, unsigned source, bool list, bool assumed)
{
    if (format->depth == FRAMES_MAX) {
        format->too_deep = true;
        return;
    }
    format->frames[format->depth] = (struct frame){source, format_inner_indent(format), list, assumed};
    format->depth++;
}

static void frame_pop(struct format *format)
{
    if (format->depth)
        format->depth--;
}

static void assumed_pop(struct format *format)
{
    if (format_innermost(format)->assumed)
        frame_pop(format);
}

long format_line_shift(const struct format *format)
{
    return (long)format->lines.indent - format->lines.source_indent;
}

unsigned format_shift_column(unsigned source, long shift, unsigned min)
{
    long column = (long)source + shift;

    return column > (long)min ? (unsigned)column : min;
}

/*
 * The indentation of a line inside [] or {}. A line to the right of the bracket is shifted by as many columns as the
 * bracket, any other line by as many as the line of the bracket. A closing bracket may be at the indentation of the
 * block.
 */
static unsigned flow_indent(const struct format *format, unsigned source, bool closes)
{
    bool below = source > format->flow_source;

    return format_shift_column(source, below ? (long)format->flow_column - format->flow_source : format->flow_line,
                        closes ? format_innermost(format)->indent : format_inner_indent(format));
}

unsigned format_comment_indent(const struct format *format, unsigned column, unsigned next_source, unsigned next_indent)
{
    unsigned best = next_source <= column ? next_source : 0;
    unsigned indent = next_indent;
    bool found = next_source <= column;

    if (format->flow)
        return flow_indent(format, column, false);
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

unsigned format_token_indent(const struct format *format, unsigned source)
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
        return format_innermost(format)->indent;
    default:
        break;
    }
    if (format->flow)
        return flow_indent(format, source, false);
    if (format->key || format->token.type == YAML_KEY_TOKEN || format->token.type == YAML_VALUE_TOKEN)
        return format_innermost(format)->indent;
    return format_inner_indent(format);
}

void format_token_enter(struct format *format)
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
        if (!format->flow && !format_innermost(format)->list)
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

void format_token_leave(struct format *format)
{
    yaml_token_type_t type = format->token.type;

    if (type == YAML_FLOW_SEQUENCE_START_TOKEN || type == YAML_FLOW_MAPPING_START_TOKEN)
        format->flow++;
    if ((type == YAML_FLOW_SEQUENCE_END_TOKEN || type == YAML_FLOW_MAPPING_END_TOKEN) && format->flow)
        format->flow--;
}
