/*
 * Parses the text of a scalar by the type in the table, not by YAML's rules for types.
 */
#include "conf/conf_value.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

static struct str example_hint(struct conf_reader *reader)
{
    const struct directive *directive = reader->directive;

    if (directive && directive->type == DIRECTIVE_SWITCH)
        return conf_hint(reader->errors, "write %s: on, or off", directive->name);
    if (directive && directive->example)
        return conf_hint(reader->errors, "for example %s", directive->example);
    if (directive && directive->default_value && *directive->default_value)
        return conf_hint(reader->errors, "for example %s: %s", directive->name, directive->default_value);
    return STR("");
}

static size_t directive_word(struct str text)
{
    size_t length = 0;

    while (length < text.length &&
           ((text.data[length] >= 'a' && text.data[length] <= 'z') || text.data[length] == '_'))
        length++;
    return length;
}

struct str value_space_hint(struct conf_reader *reader, const struct conf_node *node)
{
    struct str name = str_slice(node->text, 0, node->kind == CONF_SCALAR ? directive_word(node->text) : 0);
    struct str rest = str_skip(node->text, name.length + 1);
    char next = rest.length ? node->text.data[name.length] : '\0';

    if (node->quoted || !name.length || (next != ':' && next != ' '))
        return example_hint(reader);
    return conf_hint(reader->errors, "%s: write " STR_FMT ": " STR_FMT,
                     next == ':' ? "a space is needed after ':'" : "':' is missing", STR_ARG(name),
                     STR_ARG(rest));
}

int value_reject_kind(struct conf_reader *reader, const struct conf_node *node, const char *wanted)
{
    static const char *const kinds[] = {"a plain value", "a list", "a mapping"};
    const char *name = reader->directive ? reader->directive->name : "this key";

    if (node->absent)
        conf_error(reader->errors, node->mark, example_hint(reader), "'" STR_FMT "' has no value",
                   STR_ARG(node->key.length ? node->key : str_from(name)));
    else
        conf_error(reader->errors, node->mark, value_space_hint(reader, node),
                   "'%s' takes %s, not %s", name, wanted, kinds[node->kind]);
    return -EINVAL;
}

/* The position of the comment after a scalar: `comment` points into the source. */
static struct conf_mark comment_mark(const struct conf_node *node)
{
    const struct conf_file *file = node->mark.file;
    size_t offset = (size_t)(node->comment.data - file->text.data);
    struct conf_mark mark = {file, node->mark.line, 1};

    while (mark.line < file->line_count && file->lines[mark.line] <= offset)
        mark.line++;
    for (size_t at = file->lines[mark.line - 1]; at < offset; at++)
        mark.column += ((unsigned char)file->text.data[at] & 0xC0) != 0x80;
    return mark;
}

/* True for "200 #ok", in which YAML drops "#ok". A comment after a value needs a blank after '#'. */
static bool comment_truncates(const struct conf_node *node)
{
    struct str comment = node->comment;

    return comment.length >= 2 && comment.data[1] != ' ' && comment.data[1] != '\t' && comment.data[1] != '#' &&
           comment.data[1] != '!';
}

static int comment_check(struct conf_reader *reader, const struct conf_node *node)
{
    struct str comment = node->comment;

    if (!comment_truncates(node))
        return 0;
    conf_error(reader->errors, comment_mark(node),
               conf_hint(reader->errors,
                         "quote the whole value: \"" STR_FMT " " STR_FMT
                         "\"; or write '# ' if it is a comment",
                         STR_ARG(node->text), STR_ARG(comment)),
               "' #' begins a comment: '" STR_FMT "' is not read", STR_ARG(comment));
    return -EINVAL;
}

static bool ends_with_semicolon(const struct conf_node *node)
{
    return !node->quoted && node->mark.file && str_ends(node->text, STR(";"));
}

int value_scalar(struct conf_reader *reader, const struct conf_node *node, const char *wanted)
{
    if (node->kind != CONF_SCALAR || node->absent)
        return value_reject_kind(reader, node, wanted);
    if (!ends_with_semicolon(node))
        return 0;
    conf_error(reader->errors, node->mark, STR("delete it; or quote the value if it belongs to it"),
               "the semicolon at the end would be part of '" STR_FMT "'", STR_ARG(node->text));
    return -EINVAL;
}

int value_text(struct conf_reader *reader, const struct conf_node *node, const char *wanted)
{
    int error = value_scalar(reader, node, wanted);

    return error < 0 ? error : comment_check(reader, node);
}

/* As value_text; the message does not quote the value. */
static int value_secret(struct conf_reader *reader, const struct conf_node *node)
{
    conf_mark_hide(node->mark);
    if (node->kind != CONF_SCALAR || node->absent)
        return value_reject_kind(reader, node, "a text");
    if (!ends_with_semicolon(node) && !comment_truncates(node))
        return 0;
    conf_error(reader->errors, node->mark, STR("quote the whole value"),
               "the value of '%s' ends with a semicolon or is followed by '#'", reader->directive->name);
    return -EINVAL;
}

int value_check_line(struct conf_reader *reader, const struct conf_node *node, struct str text)
{
    if (!reader->directive || !reader->directive->line)
        return 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c == '\t' || (c >= 0x20 && c != 0x7f))
            continue;
        conf_error(reader->errors, node->mark, STR("write it on one line; a long text is folded by >- or by quotes"),
                   "'%s' becomes a part of a message head, where %s is not allowed", reader->directive->name,
                   c == '\n' || c == '\r' ? "a line break" : "a control byte");
        return -EINVAL;
    }
    return 0;
}

int conf_read_text(struct conf_reader *reader, const struct conf_node *node, struct str *out_text)
{
    bool secret = reader->directive && reader->directive->secret;
    int error = secret ? value_secret(reader, node) : value_text(reader, node, "a text");

    if (error == 0)
        error = value_check_line(reader, node, node->text);
    if (error < 0)
        return error;
    *out_text = node->text;
    return 0;
}

int conf_read_cidr(struct conf_reader *reader, const struct conf_node *node, struct cidr *out_cidr)
{
    struct str text;
    int error = conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    if (cidr_parse(text, out_cidr) == 0)
        return 0;
    conf_error(reader->errors, node->mark, STR("10.0.0.0/8, \"2001:db8::/32\", 127.0.0.1 or \"unix:\""),
               "\"" STR_FMT "\" is not an address or a range of addresses", STR_ARG(text));
    return -EINVAL;
}

/* The directory for relative paths: -p, or that of the file. */
static struct str directory_for(struct conf_reader *reader, const struct conf_node *node)
{
    char here[PATH_MAX];
    bool prefixed = reader->prefix.length > 0;

    if (prefixed && reader->prefix.data[0] == '/')
        return reader->prefix;
    if (!prefixed && node->mark.file)
        return node->mark.file->directory;
    if (!getcwd(here, sizeof(here)))
        return STR("");
    return prefixed ? arena_printf(reader->arena, "%s/" STR_FMT, here, STR_ARG(reader->prefix))
                    : arena_copy(reader->arena, str_from(here));
}

int conf_read_path(struct conf_reader *reader, const struct conf_node *node, struct str *out_path)
{
    int error = value_text(reader, node, "a path");
    struct str directory;

    if (error < 0)
        return error;
    if (!node->text.length) {
        conf_error(reader->errors, node->mark, example_hint(reader), "an empty path");
        return -EINVAL;
    }
    if (node->text.data[0] == '/') {
        *out_path = node->text;
        return 0;
    }
    directory = directory_for(reader, node);
    while (directory.length > 1 && directory.data[directory.length - 1] == '/')
        directory.length--;
    if (str_equal(directory, STR("/")))
        directory = STR("");
    *out_path = arena_printf(reader->arena, STR_FMT "/" STR_FMT, STR_ARG(directory), STR_ARG(node->text));
    return out_path->data ? 0 : -ENOMEM;
}

int conf_read_number(struct conf_reader *reader, const struct conf_node *node, uint64_t low, uint64_t high,
                     uint64_t *out)
{
    int error = value_scalar(reader, node, "a number");
    uint64_t value = 0;

    if (error < 0)
        return error;
    error = str_to_u64(node->text, &value);
    if (error == -EINVAL) {
        conf_error(reader->errors, node->mark, example_hint(reader), "'" STR_FMT "' is not a whole number",
                   STR_ARG(node->text));
        return -EINVAL;
    }
    if (error < 0 || value < low || (high && value > high)) {
        struct str bounds = high ? conf_hint(reader->errors, "from %llu to %llu", (unsigned long long)low,
                                             (unsigned long long)high)
                                 : conf_hint(reader->errors, "at least %llu", (unsigned long long)low);

        conf_error(reader->errors, node->mark, bounds, STR_FMT " is too %s", STR_ARG(node->text),
                   error == 0 && value < low ? "small" : "large");
        return -EINVAL;
    }
    *out = value;
    return 0;
}

int conf_switch_parse(struct str text, bool *out)
{
    static const char *const words[] = {"off", "on", "false", "true", "no", "yes"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_equal_nocase(text, str_from(words[i]))) {
            *out = i % 2;
            return 0;
        }
    }
    return -EINVAL;
}

int conf_read_switch(struct conf_reader *reader, const struct conf_node *node, bool *out)
{
    int error = value_scalar(reader, node, "on or off");

    if (error < 0)
        return error;
    if (conf_switch_parse(node->text, out) < 0) {
        conf_error(reader->errors, node->mark, STR("write on or off"), "'" STR_FMT "' is neither on nor off",
                   STR_ARG(node->text));
        return -EINVAL;
    }
    return 0;
}
