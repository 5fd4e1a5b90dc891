/*
 * Replaces each of libyaml's messages by one that names the change to make, by examining the text around the
 * position.
 */
#include "conf/conf_fault.h"

#include "base/saturate.h"

/* The correction of "word rest", which lacks a colon; for nginx's "location / {" it is a mapping. */
static struct str colon_hint(const struct fault *fault, struct str word, struct str rest)
{
    struct str name = str_ends(rest, STR("{")) ? str_trim(str_slice(rest, 0, rest.length - 1)) : rest;

    if (name.length == rest.length)
        return conf_hint(fault->errors, "write " STR_FMT ": " STR_FMT, STR_ARG(word), STR_ARG(rest));
    if (str_empty(name))
        return conf_hint(fault->errors, "write '" STR_FMT ":', and its keys below it, indented, without braces",
                         STR_ARG(word));
    return conf_hint(fault->errors, "write '" STR_FMT ":', and below it, indented, '" STR_FMT ":'", STR_ARG(word),
                     STR_ARG(name));
}

/* Reports a line without the colon of "key: value". */
static unsigned colon_missing(const struct fault *fault, unsigned line)
{
    struct str text = fault_content(fault, line);
    struct str code = fault_uncomment(text);
    struct str comment = str_skip(text, fault_comment(text));
    struct str word = fault_word(code);
    struct str rest = str_trim(str_skip(code, word.length));
    ssize_t colon = str_find(word, ':');
    unsigned column = fault_column(fault, line, word.data);

    if (str_find(comment, ':') >= 0) {
        ssize_t end = str_rfind(text, ':');

        conf_error(fault->errors, fault_mark(fault, line, fault_column(fault, line, comment.data)),
                   fault_quote_hint(fault, str_slice(text, 0, (size_t)end)),
                   "' #' begins a comment, which ends this key");
    } else if (colon > 0 && (size_t)colon + 1 < word.length) {
        conf_error(fault->errors, fault_mark(fault, line, fault_column(fault, line, word.data + colon)),
                   conf_hint(fault->errors, "write " STR_FMT ": " STR_FMT, (int)colon, code.data,
                             STR_ARG(str_skip(code, (size_t)colon + 1))),
                   "a space is needed after ':'");
    } else if (rest.length) {
        conf_error(fault->errors, fault_mark(fault, line, column + word.length),
                   colon_hint(fault, word, rest), "missing ':' after '" STR_FMT "'", STR_ARG(word));
    } else {
        conf_error(fault->errors, fault_mark(fault, line, column), STR("a key needs ': ' and a value"),
                   "missing ':' after '" STR_FMT "'", STR_ARG(word));
    }
    return line;
}

static bool begins_line(const struct fault *fault, unsigned line, unsigned column)
{
    struct str content = fault_content(fault, line);

    return fault_column(fault, line, content.data) == column;
}

static unsigned too_deep(const struct fault *fault)
{
    struct str above = fault_content(fault, fault->last->line);
    struct str key = above;
    struct str content = fault_content(fault, fault->at.line);
    ssize_t colon = str_search(above, STR(": "));

    key.length = colon > 0 ? (size_t)colon : key.length;
    conf_error(
        fault->errors, fault_mark(fault, fault->at.line, fault_column(fault, fault->at.line, content.data)),
        conf_hint(fault->errors, "begin it in column %u, as '" STR_FMT "' in line %u",
                  fault_column(fault, fault->last->line, above.data), STR_ARG(key), fault->last->line),
        "this line is indented as if it belonged to '" STR_FMT "', which has a value already", STR_ARG(key));
    return fault->at.line;
}

/* Reports `location: /a {key: value}`. False: the value is another one. */
static bool mapping_without_colon(const struct fault *fault, struct str key, struct str value)
{
    ssize_t brace = str_search(value, STR(" {"));
    struct str name = str_slice(value, 0, brace > 0 ? (size_t)brace : 0);

    if (str_empty(name) || !str_ends(value, STR("}")))
        return false;
    conf_error(fault->errors, fault->at,
               conf_hint(fault->errors, "write " STR_FMT "{" STR_FMT ":" STR_FMT "}", STR_ARG(key), STR_ARG(name),
                         STR_ARG(str_skip(value, name.length))),
               "missing ':' after '" STR_FMT "'", STR_ARG(name));
    return true;
}

/* Reports "mapping values are not allowed in this context": YAML reads a ':' inside a value as the end of a key. */
static unsigned second_colon(const struct fault *fault)
{
    const struct parsed_scalar *last = fault->last;
    struct str value;
    struct str key;

    if (!last->line || last->end_line != fault->at.line || last->end_column != fault->at.column ||
        last->quoted) {
        conf_error(fault->errors, fault->at, STR("quote the value if the ':' belongs to it"),
                   "a second ':' on this line");
        return fault->at.line;
    }
    if (last->line < fault->at.line)
        return begins_line(fault, last->line, last->column) ? colon_missing(fault, last->line)
                                                            : too_deep(fault);
    value = fault_text(fault, fault_mark(fault, last->line, last->column));
    key = fault_content(fault, last->line);
    key.length = size_sub_sat(key.length, str_trim(value).length);
    value = fault_uncomment(value);
    if (mapping_without_colon(fault, key, value))
        return fault->at.line;
    conf_error(fault->errors, fault->at,
               conf_hint(fault->errors, "quote the value: " STR_FMT "%c" STR_FMT "%c", STR_ARG(key),
                         fault_quote(value), STR_ARG(value), fault_quote(value)),
               "a value that contains ': ' needs quotes");
    return fault->at.line;
}

static unsigned simple_key(const struct fault *fault)
{
    return colon_missing(fault, fault->context_mark.line);
}

static unsigned document_start(const struct fault *fault)
{
    for (unsigned line = fault->at.line; line > fault->last->line; line--) {
        if (str_equal(str_trim(source_line(fault->file, line)), STR("..."))) {
            conf_error(fault->errors, fault_mark(fault, line, 1), STR("delete it"),
                       "'...' ends the YAML document, but text follows");
            return line;
        }
    }
    if (fault->last->line)
        return colon_missing(fault, fault->last->line);
    conf_error(fault->errors, fault->at, STR("begin it in the column of another line"),
               "the indentation of this line matches no line above it");
    return fault->at.line;
}

/* The content column of the nearest line above, if it is to the right of `column`: the intended sibling. */
static unsigned sibling_column(const struct fault *fault, unsigned line, unsigned column)
{
    while (--line >= 1) {
        struct str content = fault_content(fault, line);

        if (content.length && content.data[0] != '#') {
            unsigned found = fault_column(fault, line, content.data);

            return found > column ? found : 0;
        }
    }
    return 0;
}

/* Reports text after a complete value: `"b" c`, `[80] ssl`. */
static unsigned after_value(const struct fault *fault)
{
    const struct parsed_scalar *last = fault->last;
    struct str content = fault_content(fault, fault->at.line);
    ssize_t colon = str_search(content, STR(": "));
    struct str value = fault_uncomment(colon > 0 ? str_trim(str_skip(content, (size_t)colon + 1)) : content);
    char c = fault_byte(fault, fault->at);

    if (last->quoted && last->end_line == fault->at.line && last->line < last->end_line) {
        conf_error(fault->errors, fault_mark(fault, last->line, last->column),
                   STR("close it where the text ends"), "this quote is closed only in line %u",
                   last->end_line);
        return last->line;
    }
    if (c == ']' || c == '}')
        conf_error(fault->errors, fault->at, STR("delete it, or open it before"), "this '%c' has no counterpart", c);
    else
        conf_error(fault->errors, fault->at, fault_quote_hint(fault, value),
                   "text after the end of a value; the whole value needs quotes");
    return fault->at.line;
}

/* True if the latest scalar is a key whose ':' is inside a comment. */
static bool colon_is_in_comment(const struct fault *fault)
{
    const struct parsed_scalar *last = fault->last;
    struct str text = fault_content(fault, last->line);
    struct str comment = str_skip(text, fault_comment(text));

    return last->line && !last->quoted && last->end_line < fault->at.line &&
           begins_line(fault, last->line, last->column) && str_find(comment, ':') >= 0;
}

static unsigned key_expected(const struct fault *fault)
{
    struct str content = str_trim(source_line(fault->file, fault->at.line));
    char c = fault_byte(fault, fault->at);
    unsigned sibling;

    if (fault_column(fault, fault->at.line, content.data) != fault->at.column)
        return after_value(fault);
    if (colon_is_in_comment(fault))
        return colon_missing(fault, fault->last->line);
    if (c == ']' || c == '}') {
        conf_error(fault->errors, fault->at, STR("delete it, or open it before"), "this '%c' has no counterpart", c);
        return fault->at.line;
    }
    if (str_starts(content, STR("- ")) || str_equal(content, STR("-"))) {
        conf_error(fault->errors, fault->at,
                   conf_hint(fault->errors, "the keys around it begin in column %u in line %u",
                             fault->context_mark.column, fault->context_mark.line),
                   "a list item is not allowed among the keys of a mapping");
        return fault->at.line;
    }
    if (c == ':') {
        conf_error(fault->errors, fault->at, STR(""), "a key is missing before ':'");
        return fault->at.line;
    }
    sibling = sibling_column(fault, fault->at.line, fault->at.column);
    if (sibling && sibling != fault->context_mark.column)
        conf_error(fault->errors, fault->at,
                   conf_hint(fault->errors,
                             "begin it in column %u, as the line above, or in "
                             "column %u, as line %u",
                             sibling, fault->context_mark.column, fault->context_mark.line),
                   "wrong indentation: column %u belongs to no mapping", fault->at.column);
    else
        conf_error(fault->errors, fault->at,
                   conf_hint(fault->errors, "begin it in column %u, as line %u", fault->context_mark.column,
                             fault->context_mark.line),
                   "wrong indentation: column %u belongs to no mapping", fault->at.column);
    return fault->at.line;
}

static unsigned item_expected(const struct fault *fault)
{
    conf_error(fault->errors, fault->at,
               conf_hint(fault->errors,
                         "the list begins in line %u; indent this line under "
                         "an item, or move it left of column %u",
                         fault->context_mark.line, fault->context_mark.column),
               "this line is not an item of the list around it: '- ' is missing");
    return fault->at.line;
}

static unsigned list_inline(const struct fault *fault)
{
    struct str item = fault_uncomment(str_trim(str_skip(fault_text(fault, fault->at), 1)));

    conf_error(fault->errors, fault->at,
               conf_hint(fault->errors, "put '- " STR_FMT "' on the next line, or write [" STR_FMT "]",
                         STR_ARG(item), STR_ARG(item)),
               "a list cannot begin on the line of its key");
    return fault->at.line;
}

static const struct {
    const char *context; /* its beginning; NULL: any */
    const char *problem;
    unsigned (*report)(const struct fault *fault);
} translations[] = {
    {"while scanning a directive", "", word_percent},
    {"while scanning a %", "", word_percent},
    {"while scanning a tag", "", word_tag},
    {"while parsing a tag", "", word_tag},
    {"while parsing a node", "found undefined tag handle", word_tag},
    {"while scanning a block scalar", "did not find expected comment", word_block_header},
    {"while scanning a block scalar", "found an indentation indicator", word_block_header},
    {"while scanning a simple key", "could not find expected ':'", simple_key},
    {"while scanning an alias", "", word_alias},
    {"while scanning an anchor", "", word_alias},
    {"while scanning a quoted scalar", "found unexpected", word_quote_open},
    {NULL, "mapping values are not allowed", second_colon},
    {NULL, "found character that cannot start any token", word_indicator},
    {NULL, "found a tab character", word_indicator},
    {NULL, "did not find expected <document start>", document_start},
    {NULL, "did not find expected key", key_expected},
    {NULL, "did not find expected '-' indicator", item_expected},
    {NULL, "did not find expected ',' or", flow_end_missing},
    {NULL, "found unexpected ':'", flow_colon},
    {NULL, "did not find expected node content", flow_content},
    {NULL, "found unknown escape character", word_escape},
    {NULL, "block sequence entries are not allowed", list_inline},
};

static struct conf_mark mark_within(const struct conf_file *file, yaml_mark_t mark)
{
    struct conf_mark own = {file, (unsigned)mark.line + 1, (unsigned)mark.column + 1};

    if (own.line > file->line_count) {
        own.line = (unsigned)file->line_count;
        own.column = 1;
    }
    return own;
}

unsigned syntax_report(struct conf_errors *errors, const struct conf_file *file, const yaml_parser_t *yaml,
                       const struct parsed_scalar *last)
{
    struct fault fault = {
        .errors = errors,
        .file = file,
        .problem = yaml->problem ? yaml->problem : "unknown error",
        .context = yaml->context ? yaml->context : "",
        .at = mark_within(file, yaml->problem_mark),
        .context_mark = mark_within(file, yaml->context ? yaml->context_mark : yaml->problem_mark),
        .last = last,
    };

    for (size_t i = 0; i < sizeof(translations) / sizeof(translations[0]); i++) {
        if (translations[i].context &&
            !str_starts(str_from(fault.context), str_from(translations[i].context)))
            continue;
        if (str_starts(str_from(fault.problem), str_from(translations[i].problem)))
            return translations[i].report(&fault);
    }
    conf_error(errors, fault.at, STR(""), "YAML: %s %s", fault.problem, fault.context);
    return fault.at.line;
}
