/*
 * Verifies that formatting has not changed the meaning of a source. Shares no code with the formatting except the
 * conversion of offsets.
 */
#include "conf/format.h"

#include <yaml.h>

size_t format_offset(struct format_cursor *cursor, size_t index)
{
    while (cursor->characters < index && cursor->at < cursor->text.length) {
        do
            cursor->at++;
        while (cursor->at < cursor->text.length &&
               ((unsigned char)cursor->text.data[cursor->at] & 0xC0) == 0x80);
        cursor->characters++;
    }
    return cursor->at;
}

static bool open_parser(yaml_parser_t *yaml, struct str text)
{
    if (!yaml_parser_initialize(yaml))
        return false;
    yaml_parser_set_encoding(yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(yaml, (const unsigned char *)(text.data ? text.data : ""), text.length);
    return true;
}

static bool same_name(const yaml_char_t *a, const yaml_char_t *b)
{
    return a && b ? strcmp((const char *)a, (const char *)b) == 0 : a == b;
}

static bool same_event(const yaml_event_t *a, const yaml_event_t *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == YAML_ALIAS_EVENT)
        return same_name(a->data.alias.anchor, b->data.alias.anchor);
    if (a->type == YAML_SCALAR_EVENT)
        return a->data.scalar.length == b->data.scalar.length &&
               memcmp(a->data.scalar.value, b->data.scalar.value, a->data.scalar.length) == 0 &&
               a->data.scalar.style == b->data.scalar.style &&
               a->data.scalar.plain_implicit == b->data.scalar.plain_implicit &&
               same_name(a->data.scalar.anchor, b->data.scalar.anchor) &&
               same_name(a->data.scalar.tag, b->data.scalar.tag);
    if (a->type == YAML_SEQUENCE_START_EVENT)
        return a->data.sequence_start.style == b->data.sequence_start.style &&
               same_name(a->data.sequence_start.anchor, b->data.sequence_start.anchor) &&
               same_name(a->data.sequence_start.tag, b->data.sequence_start.tag);
    if (a->type == YAML_MAPPING_START_EVENT)
        return a->data.mapping_start.style == b->data.mapping_start.style &&
               same_name(a->data.mapping_start.anchor, b->data.mapping_start.anchor) &&
               same_name(a->data.mapping_start.tag, b->data.mapping_start.tag);
    return true;
}

static bool same_events(struct str before, struct str after)
{
    yaml_parser_t one, other;
    bool same = true, ended = false;

    if (!open_parser(&one, before))
        return false;
    if (!open_parser(&other, after)) {
        yaml_parser_delete(&one);
        return false;
    }
    while (same && !ended) {
        yaml_event_t a = {0}, b = {0};

        same = yaml_parser_parse(&one, &a) && yaml_parser_parse(&other, &b) && same_event(&a, &b);
        ended = a.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&a);
        yaml_event_delete(&b);
    }
    yaml_parser_delete(&one);
    yaml_parser_delete(&other);
    return same;
}

/* Collects the comments in `gap`, one per line. */
static int gap_comments(struct str gap, struct buffer *out)
{
    while (gap.data) {
        struct str line = str_cut(&gap, '\n');
        ssize_t sign = str_find(line, '#');
        struct str comment = sign < 0 ? STR("") : str_trim(str_skip(line, (size_t)sign));

        if (comment.length && (buffer_append(out, comment) < 0 || buffer_append(out, STR("\n")) < 0))
            return -1;
    }
    return 0;
}

/* The first line of a block scalar, which may have a comment ("| # why"): for libyaml it is a part of the token. */
static struct str header_of(const yaml_token_t *token, struct str text)
{
    if (token->type != YAML_SCALAR_TOKEN || (token->data.scalar.style != YAML_LITERAL_SCALAR_STYLE &&
                                             token->data.scalar.style != YAML_FOLDED_SCALAR_STYLE))
        return STR("");
    return str_cut(&text, '\n');
}

static bool comments_collect(struct str text, struct buffer *out)
{
    struct format_cursor cursor = {.text = text};
    yaml_parser_t yaml;
    size_t end = 0;
    bool good = open_parser(&yaml, text), more = good;

    while (more) {
        yaml_token_t token;

        good = yaml_parser_scan(&yaml, &token);
        if (!good)
            break;
        if (token.end_mark.index > token.start_mark.index || token.type == YAML_STREAM_END_TOKEN) {
            size_t start = token.type == YAML_STREAM_END_TOKEN
                               ? text.length
                               : format_offset(&cursor, token.start_mark.index);
            good = gap_comments(str_slice(text, end, start), out) == 0;
            end = format_offset(&cursor, token.end_mark.index);
            good = good && gap_comments(header_of(&token, str_slice(text, start, end)), out) == 0;
        }
        more = good && token.type != YAML_STREAM_END_TOKEN;
        yaml_token_delete(&token);
    }
    yaml_parser_delete(&yaml);
    return good;
}

bool format_same(struct str before, struct str after)
{
    struct buffer old = {0}, new = {0};
    bool same = same_events(before, after) && comments_collect(before, &old) &&
                comments_collect(after, &new) && str_equal(buffer_str(&old), buffer_str(&new));

    buffer_finish(&old);
    buffer_finish(&new);
    return same;
}
