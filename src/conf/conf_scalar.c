/*
 * Reads scalars, and detects values that YAML changes without an error: comments that truncate a text, commas that
 * split a value inside {}, lists that become part of a text.
 */
#include "conf/conf_parse.h"

#include "conf/environment.h"

#include <errno.h>

void parse_out_of_memory(struct parse *parse)
{
    conf_error(parse->loader->errors, (struct conf_mark){.file = parse->file}, STR(""), "out of memory");
    parse->loader->stop = true;
}

bool parse_count(struct parse *parse, size_t more, struct conf_mark mark)
{
    struct conf_loader *loader = parse->loader;

    if (more > LIMIT_CONF_NODES || loader->nodes > LIMIT_CONF_NODES - more) {
        conf_error(loader->errors, mark, STR("every alias counts as often as it is used"),
                   "more than %d values in the configuration", LIMIT_CONF_NODES);
        loader->stop = true;
        return false;
    }
    loader->nodes += more;
    return true;
}

struct conf_node *parse_node(struct parse *parse, enum conf_kind kind, bool flow)
{
    struct conf_mark mark = mark_of(parse, parse->event.start_mark);
    struct conf_node *node;

    if (!parse_count(parse, 1, mark))
        return NULL;
    node = arena_zalloc(parse->loader->arena, 1, sizeof(*node));
    if (!node) {
        parse_out_of_memory(parse);
        return NULL;
    }
    *node = (struct conf_node){.kind = kind, .mark = mark, .flow = flow};
    return node;
}

void parse_anchor(struct parse *parse, const yaml_char_t *anchor, struct conf_node *node)
{
    struct str name;

    if (!anchor)
        return;
    name = arena_copy(parse->loader->arena, str_from((const char *)anchor));
    if (!name.data || table_set(&parse->anchors, name, node) < 0)
        parse_out_of_memory(parse);
}

/* The rest of the line after a plain scalar, if it is a comment. */
static struct str comment_after(struct parse *parse)
{
    yaml_mark_t end = parse->event.end_mark;
    size_t at = source_offset(&parse->cursor, (unsigned)end.line + 1, (unsigned)end.column + 1);
    struct str rest = str_skip(parse->file->text, at);
    size_t blanks = 0;
    size_t length;

    parse->plain_end = at;
    while (blanks < rest.length && (rest.data[blanks] == ' ' || rest.data[blanks] == '\t'))
        blanks++;
    rest = str_skip(rest, blanks);
    if (!blanks || !rest.length || rest.data[0] != '#')
        return STR("");
    length = 0;
    while (length < rest.length && rest.data[length] != '\n' && rest.data[length] != '\r')
        length++;
    return str_slice(rest, 0, length);
}

/* Reports "key: value" with indented "- item" lines below, which YAML joins to one text. */
static void report_list_in_scalar(struct parse *parse, const struct conf_node *node)
{
    unsigned end = (unsigned)parse->event.end_mark.line + 1;

    for (unsigned line = node->mark.line + 1; line <= end; line++) {
        struct str text = str_trim(source_line(parse->file, line));

        if (str_starts(text, STR("- "))) {
            struct str whole = source_line(parse->file, line);

            conf_error(
                parse->loader->errors,
                (struct conf_mark){parse->file, line, (unsigned)(text.data - whole.data) + 1},
                STR("a key has either a value on its line or a list below it; quote the value if it is text"),
                "this line was read as part of the value that begins in line %u", node->mark.line);
            return;
        }
    }
}

static void environment_read(struct parse *parse, struct conf_node *node)
{
    struct str error;
    struct str hint;
    size_t at;
    int result = environment_expand(parse->loader->arena, node->text, &node->text, &at, &error, &hint);

    if (result == -EINVAL) {
        struct conf_mark mark = node->mark;

        if (!node->quoted && parse->event.start_mark.line == parse->event.end_mark.line) {
            for (size_t i = 0; i < at; i++)
                mark.column += ((unsigned char)node->text.data[i] & 0xC0) != 0x80;
        }
        conf_error(parse->loader->errors, mark, hint, STR_FMT, STR_ARG(error));
        conf_errors_mute(parse->loader->errors, node->mark); /* the unexpanded text is not a valid value */
    } else if (result < 0) {
        parse_out_of_memory(parse);
    }
}

void tag_check(struct parse *parse, struct conf_node *node, const yaml_char_t *tag)
{
    struct str name = str_from((const char *)tag);

    if (!tag || str_equal(name, STR("!")) || str_starts(name, STR("tag:yaml.org,2002:")))
        return;
    if (node->kind == CONF_SCALAR && str_equal(name, STR("!include"))) {
        node->include = true;
        return;
    }
    conf_error(parse->loader->errors, node->mark,
               STR("quote the value if it is text; the only tag known here is !include"),
               "'!' begins a YAML tag, and " STR_FMT " is not supported", STR_ARG(name));
}

struct conf_node *scalar_read(struct parse *parse, bool flow)
{
    struct conf_node *node = parse_node(parse, CONF_SCALAR, flow);
    struct str text = {(const char *)parse->event.data.scalar.value, parse->event.data.scalar.length};
    struct conf_mark end = mark_of(parse, parse->event.end_mark);

    if (!node)
        return NULL;
    node->size = 1;
    node->quoted = parse->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->absent = !node->quoted && !text.length && !parse->event.data.scalar.tag;
    node->text = arena_copy(parse->loader->arena, text);
    if (!node->text.data) {
        parse_out_of_memory(parse);
        return NULL;
    }
    if (!node->absent)
        parse->last =
            (struct parsed_scalar){node->mark.line, node->mark.column, end.line, end.column, node->quoted};
    if (!node->quoted && !node->absent) {
        node->comment = comment_after(parse);
        report_list_in_scalar(parse, node);
    }
    if (str_find(text, '\0') >= 0)
        conf_error(parse->loader->errors, node->mark, STR(""), "a NUL byte is not allowed in a value");
    tag_check(parse, node, parse->event.data.scalar.tag);
    environment_read(parse, node);
    parse_anchor(parse, parse->event.data.scalar.anchor, node);
    return node;
}

static bool regex_key(const struct conf_node *key)
{
    return !key->quoted && key->text.length && key->text.data[0] == '~';
}

/* False for `a` in `{a, b: 1}`: a comma in a value or in a regular expression made a part of it a key. */
static bool colon_follows(const struct parse *parse)
{
    const struct str text = parse->file->text;
    size_t at = parse->plain_end;

    while (at < text.length && (text.data[at] == ' ' || text.data[at] == '\t'))
        at++;
    return at < text.length && text.data[at] == ':';
}

static void comma_report(struct parse *parse, const struct map_reader *reader, const struct conf_node *key)
{
    size_t length = parse->pending.length - reader->start;
    const struct conf_pair *before = NULL;
    ssize_t colon = str_find(key->text, ':');
    struct str hint = STR("inside {} every key needs ': ' and a value");

    if (length)
        before = (const struct conf_pair *)(const void *)(parse->pending.data + parse->pending.length) - 1;
    if (colon > 0)
        hint = conf_hint(parse->loader->errors, "a space is needed after ':': " STR_FMT ": " STR_FMT,
                         (int)colon, key->text.data, STR_ARG(str_skip(key->text, (size_t)colon + 1)));
    else if (before && before->value->kind == CONF_SCALAR)
        hint = conf_hint(parse->loader->errors,
                         "a comma inside {} ends a value; quote it: " STR_FMT ": \"" STR_FMT ", " STR_FMT
                         "\"; a list is written [a, b]",
                         STR_ARG(before->key->text), STR_ARG(before->value->text), STR_ARG(key->text));
    conf_error(parse->loader->errors, key->mark, hint, "'" STR_FMT "' has no value", STR_ARG(key->text));
}

/* Detects accidental keys inside {}. True: the pair is reported and left out. */
bool flow_key_rejected(struct parse *parse, struct map_reader *reader, const struct conf_node *key,
                       bool value_absent)
{
    bool split = value_absent && !colon_follows(parse);

    if (key->quoted)
        return false;
    if (regex_key(key)) {
        conf_error(parse->loader->errors, key->mark,
                   STR("write it on a line of its own, or quote the whole key: commas and brackets end it"),
                   "a regular expression as a key inside {}");
        reader->skip_next = split;
        return true;
    }
    if (split)
        comma_report(parse, reader, key);
    return split;
}
