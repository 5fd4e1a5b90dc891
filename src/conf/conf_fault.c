/*
 * Reads the text around a syntax error, and translates the errors in flow collections, in which brackets, commas and
 * colons are indicators.
 */
#include "conf/conf_fault.h"

#include "base/saturate.h"

#define QUOTED_MAX 60 /* longer texts are not quoted in hints */

struct conf_mark fault_mark(const struct fault *fault, size_t line, size_t column)
{
    return (struct conf_mark){fault->file, (unsigned)line, (unsigned)column};
}

struct str fault_text(const struct fault *fault, struct conf_mark mark)
{
    struct source_cursor cursor = {.file = fault->file};
    struct str line = source_line(fault->file, mark.line);
    size_t at = source_offset(&cursor, mark.line, mark.column);
    size_t start = line.length ? fault->file->lines[mark.line - 1] : 0;

    return line.length && at >= start ? str_skip(line, at - start) : STR("");
}

char fault_byte(const struct fault *fault, struct conf_mark mark)
{
    struct str text = fault_text(fault, mark);

    return text.length ? text.data[0] : '\0';
}

char fault_byte_before(const struct fault *fault, struct conf_mark mark)
{
    return mark.column > 1 ? fault_byte(fault, fault_mark(fault, mark.line, mark.column - 1)) : '\0';
}

unsigned fault_column(const struct fault *fault, unsigned line, const char *place)
{
    struct str whole = source_line(fault->file, line);
    unsigned column = 1;

    for (const char *at = whole.data; at < place; at++)
        column += ((unsigned char)*at & 0xC0) != 0x80;
    return column;
}

size_t fault_comment(struct str line)
{
    for (size_t i = 1; i < line.length; i++) {
        if (line.data[i] == '#' && (line.data[i - 1] == ' ' || line.data[i - 1] == '\t'))
            return i;
    }
    return line.length;
}

struct str fault_uncomment(struct str line)
{
    return str_trim(str_slice(line, 0, fault_comment(line)));
}

struct str fault_content(const struct fault *fault, unsigned line)
{
    struct str text = str_trim(source_line(fault->file, line));

    while (str_starts(text, STR("- ")))
        text = str_trim(str_skip(text, 2));
    return text;
}

struct str fault_word(struct str text)
{
    size_t length = 0;

    while (length < text.length && text.data[length] != ' ' && text.data[length] != '\t')
        length++;
    return str_slice(text, 0, length);
}

struct str fault_flow_word(struct str text)
{
    size_t length = 0;

    while (length < text.length && !strchr(" \t,]}", text.data[length]))
        length++;
    return str_slice(text, 0, length);
}

char fault_quote(struct str text)
{
    return str_find(text, '\'') >= 0 ? '"' : '\'';
}

struct str fault_quote_hint(const struct fault *fault, struct str text)
{
    char quote = fault_quote(text);

    if (text.length > QUOTED_MAX)
        return STR("quote it");
    return conf_hint(fault->errors, "quote it: %c" STR_FMT "%c", quote, STR_ARG(text), quote);
}

/* The innermost open bracket before `mark`; quotes are ignored. */
static struct conf_mark open_bracket(const struct fault *fault, struct conf_mark mark)
{
    struct source_cursor cursor = {.file = fault->file};
    size_t at = source_offset(&cursor, mark.line, mark.column);
    unsigned closed = 0;

    while (at > 0) {
        char c = fault->file->text.data[--at];

        if (c == ']' || c == '}')
            closed++;
        if ((c == '[' || c == '{') && closed-- == 0)
            break;
    }
    while (mark.line > 1 && fault->file->lines[mark.line - 1] > at)
        mark.line--;
    mark.column = fault_column(fault, mark.line, fault->file->text.data + at);
    return mark;
}

unsigned flow_never_closed(const struct fault *fault)
{
    char open = fault_byte(fault, fault->context_mark);
    struct conf_mark mark = open == '[' || open == '{' ? fault->context_mark : open_bracket(fault, fault->at);
    char close = fault_byte(fault, mark) == '{' ? '}' : ']';
    struct str rest = fault_text(fault, mark);
    struct str comment = str_skip(rest, fault_comment(rest));

    if (str_find(comment, close) >= 0)
        conf_error(fault->errors, fault_mark(fault, mark.line, fault_column(fault, mark.line, comment.data)),
                   STR("quote the word that begins with #"), "' #' begins a comment, which hides the '%c'",
                   close);
    else
        conf_error(fault->errors, mark, conf_hint(fault->errors, "close it with '%c'", close),
                   "this '%c' is never closed", close == '}' ? '{' : '[');
    return mark.line;
}

unsigned flow_end_missing(const struct fault *fault)
{
    char c = fault_byte(fault, fault->at);
    struct str line = source_line(fault->file, fault->at.line);
    unsigned start = fault->at.column;

    if (fault->at.line > fault->context_mark.line && !(c && strchr("[{", c)))
        return flow_never_closed(fault);
    while (start > 1 && fault_byte(fault, fault_mark(fault, fault->at.line, start - 1)) &&
           !strchr(" \t,[{", fault_byte(fault, fault_mark(fault, fault->at.line, start - 1))))
        start--;
    if (c == '{' && fault_byte_before(fault, fault->at) == '$') {
        struct str word = fault_text(fault, fault_mark(fault, fault->at.line, fault->at.column - 1));
        ssize_t end = str_find(word, '}');

        word = str_slice(word, 0, end > 0 ? (size_t)end + 1 : word.length);
        while (word.data + word.length < line.data + line.length && !strchr(",]}", word.data[word.length]))
            word.length++;
        conf_error(fault->errors, fault->at, fault_quote_hint(fault, str_trim(word)),
                   "${...} inside [] or {} needs quotes");
    } else if (c == '[' || c == '{') {
        conf_error(fault->errors, fault->at,
                   STR("quote the word that holds it, or write the list on lines of its own, each with '- '"),
                   "'%c' inside [] or {} begins a value of its own", c);
    } else {
        conf_error(fault->errors, fault->at,
                   STR("separate values by commas, and quote those that hold : , [ ] { }"),
                   "'%c' or ',' is missing here", fault_byte(fault, fault->context_mark) == '{' ? '}' : ']');
    }
    return fault->at.line;
}

unsigned flow_colon(const struct fault *fault)
{
    struct conf_mark before = fault_mark(fault, fault->context_mark.line, fault->context_mark.column - 1);

    if (fault->context_mark.column > 2 && fault_byte(fault, before) == '{' &&
        fault_byte_before(fault, before) == '$') {
        struct str word = fault_text(fault, fault_mark(fault, before.line, before.column - 1));
        ssize_t end = str_find(word, '}');

        word.length = end > 0 ? (size_t)end + 1 : word.length;
        conf_error(fault->errors, before, fault_quote_hint(fault, word),
                   "${...} inside [] or {} needs quotes");
        return before.line;
    }
    conf_error(fault->errors, fault->at, STR("quote the word that holds it"),
               "':' inside [] or {} needs quotes");
    return fault->at.line;
}

unsigned flow_content(const struct fault *fault)
{
    char c = fault_byte(fault, fault->at);
    struct str line = source_line(fault->file, fault->at.line);
    size_t start = size_sub_sat(line.length, fault_text(fault, fault->at).length);

    if (c == ':' && !strcmp(fault->context, "while parsing a flow node")) {
        struct str word;

        while (start > 0 && line.data[start] != '[' && line.data[start] != '{')
            start--;
        word = fault_word(str_skip(line, start));
        conf_error(fault->errors,
                   fault_mark(fault, fault->at.line, fault_column(fault, fault->at.line, line.data + start)),
                   fault_quote_hint(fault, word), "a word that begins with %c needs quotes",
                   line.data[start]);
    } else if (c == ',' && strcmp(fault->context, "while parsing a flow node") == 0) {
        conf_error(fault->errors, fault->at, STR(""), "a value is missing before this ','");
    } else if (c) {
        conf_error(fault->errors, fault->at, STR("quote it if it is text"), "a value cannot begin with '%c'",
                   c);
    } else {
        return flow_never_closed(fault);
    }
    return fault->at.line;
}
