/*
 * Translates the errors in single words and quoted texts: indicators, tags, anchors, quotes, escapes.
 */
#include "conf/conf_fault.h"

/* True if the last character belongs to the text around the word: ':', ',', or a bracket not opened in the word. */
static bool closes_outside(struct str word)
{
    char c = word.data[word.length - 1];

    return c == ':' || c == ',' || (c == ']' && str_find(word, '[') < 0) ||
           (c == '}' && str_find(word, '{') < 0);
}

unsigned word_indicator(const struct fault *fault)
{
    char c = fault_byte(fault, fault->at);
    struct str text = fault_text(fault, fault->at);
    struct str word =
        fault_uncomment(fault_byte_before(fault, fault->at) == ' ' || fault->at.column == 1 ? text : STR(""));
    size_t end = fault->context_mark.line ? fault_flow_word(word).length : 0;

    if (c == '\t') {
        conf_error(fault->errors, fault->at, STR("use spaces"), "a tab is used for indentation");
        return fault->at.line;
    }
    if (str_ends(word, STR(":")) || str_search(word, STR(": ")) >= 0 || str_find(word, ',') >= 0)
        word = str_slice(word, 0, end);
    while (word.length && closes_outside(word))
        word.length--;
    conf_error(fault->errors, fault->at, word.length ? fault_quote_hint(fault, word) : STR("quote it"),
               "a word that begins with %c needs quotes", c ? c : '?');
    return fault->at.line;
}

unsigned word_alias(const struct fault *fault)
{
    struct str word = fault_flow_word(fault_text(fault, fault->context_mark));
    char sign = fault_byte(fault, fault->context_mark);

    if (word.length && word.data[word.length - 1] == ':')
        word.length--;
    conf_error(fault->errors, fault->context_mark, fault_quote_hint(fault, word),
               "a word that begins with %c is taken for the name of an anchor", sign ? sign : '*');
    return fault->context_mark.line;
}

unsigned word_quote_open(const struct fault *fault)
{
    char quote = fault_byte(fault, fault->context_mark);

    conf_error(fault->errors, fault->context_mark,
               conf_hint(fault->errors, "close it with %c", quote ? quote : '"'),
               "this quote is never closed");
    return fault->context_mark.line;
}

unsigned word_escape(const struct fault *fault)
{
    struct str text = fault_text(fault, fault->at);

    conf_error(fault->errors, fault->at, STR("use single quotes, in which \\ is itself, or write \\\\"),
               "\\" STR_FMT " is not an escape sequence in double quotes", STR_ARG(str_slice(text, 1, 2)));
    return fault->at.line;
}

unsigned word_block_header(const struct fault *fault)
{
    struct str text = fault_uncomment(fault_text(fault, fault->context_mark));

    conf_error(fault->errors, fault->context_mark, fault_quote_hint(fault, text),
               "a value that begins with %c needs quotes", fault_byte(fault, fault->context_mark));
    return fault->context_mark.line;
}

unsigned word_percent(const struct fault *fault)
{
    conf_error(fault->errors, fault->context_mark, STR("quote it"), "a word that begins with %% needs quotes");
    return fault->context_mark.line;
}

unsigned word_tag(const struct fault *fault)
{
    struct str word = fault_flow_word(fault_text(fault, fault->context_mark));

    conf_error(fault->errors, fault->context_mark, fault_quote_hint(fault, word),
               "a word that begins with ! is taken for a YAML tag");
    return fault->context_mark.line;
}
