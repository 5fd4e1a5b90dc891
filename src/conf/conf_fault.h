/*
 * A syntax error and the text around it, for the translation of libyaml's messages. Private to the loader.
 */
#ifndef CONF_CONF_FAULT_H
#define CONF_CONF_FAULT_H

#include "conf/conf_parse.h"

struct fault {
    struct conf_errors *errors;
    const struct conf_file *file;
    const char *problem;            /* libyaml's text of the error */
    const char *context;            /* libyaml's text of the construct: "while scanning a tag"; "": none */
    struct conf_mark at;            /* position of the problem */
    struct conf_mark context_mark;  /* position of the context: the construct being parsed */
    const struct parsed_scalar *last;
};

struct conf_mark fault_mark(const struct fault *fault, size_t line, size_t column);
/* The text from a position to the end of its line. */
struct str fault_text(const struct fault *fault, struct conf_mark mark);
/* The byte at a position, or before it on its line; 0: none. */
char fault_byte(const struct fault *fault, struct conf_mark mark);
char fault_byte_before(const struct fault *fault, struct conf_mark mark);
/* The column of a pointer into the line. */
unsigned fault_column(const struct fault *fault, unsigned line, const char *place);
/* The content of a line without indentation and "- ". */
struct str fault_content(const struct fault *fault, unsigned line);
/* Where the comment of a line begins ("#" after a blank), or its length. */
size_t fault_comment(struct str line);
/* The line without its comment and without blanks at both ends. */
struct str fault_uncomment(struct str line);
/* The word at the start of a text; a flow word also ends at flow indicators. */
struct str fault_word(struct str text);
struct str fault_flow_word(struct str text);
/* The quote character that does not occur in the text. */
char fault_quote(struct str text);
/* "quote it: 'text'". */
struct str fault_quote_hint(const struct fault *fault, struct str text);

/* Translations for [] and {}; each reports the error and returns the line in which the broken block begins. */
unsigned flow_never_closed(const struct fault *fault);
unsigned flow_end_missing(const struct fault *fault);
unsigned flow_colon(const struct fault *fault);
unsigned flow_content(const struct fault *fault);
/* conf_syntax_word.c: the same for words and quoted texts. */
unsigned word_indicator(const struct fault *fault);
unsigned word_alias(const struct fault *fault);
unsigned word_tag(const struct fault *fault);
unsigned word_percent(const struct fault *fault);
unsigned word_block_header(const struct fault *fault);
unsigned word_quote_open(const struct fault *fault);
unsigned word_escape(const struct fault *fault);

#endif
