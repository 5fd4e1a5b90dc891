/*
 * A syntax error and the text around it: what the translations of libyaml's messages
 * share. Used by the loader only.
 */
#ifndef CONF_CONF_FAULT_H
#define CONF_CONF_FAULT_H

#include "conf/conf_parse.h"

struct fault {
    struct conf_errors *errors;
    const struct conf_file *file;
    const char *problem;
    const char *context;
    struct conf_mark at;            /* of the problem */
    struct conf_mark around;        /* of the context: what was being read */
    const struct parsed_scalar *last;
};

struct conf_mark fault_mark(const struct fault *fault, size_t line, size_t column);
/* The text from a place to the end of its line. */
struct str fault_text(const struct fault *fault, struct conf_mark mark);
/* The byte at a place, or before it on its line; 0 where there is none. */
char fault_byte(const struct fault *fault, struct conf_mark mark);
char fault_byte_before(const struct fault *fault, struct conf_mark mark);
/* The column of a pointer into the line. */
unsigned fault_column(const struct fault *fault, unsigned line, const char *place);
/* The content of a line, without indentation and the "- " of list items. */
struct str fault_content(const struct fault *fault, unsigned line);
/* Where the comment of a line begins ("#" after a blank), or its length. */
size_t fault_comment(struct str line);
/* Without its comment and the blanks around. */
struct str fault_uncomment(struct str line);
/* The word at the start of a text; a flow word ends at the signs of [] and {} too. */
struct str fault_word(struct str text);
struct str fault_flow_word(struct str text);
/* The quote that the text does not hold. */
char fault_quote(struct str text);
/* "quote it: 'text'". */
struct str fault_quote_hint(const struct fault *fault, struct str text);

/* Translations about [] and {}; each reports and returns the line with which the broken block begins. */
unsigned flow_never_closed(const struct fault *fault);
unsigned flow_end_missing(const struct fault *fault);
unsigned flow_colon(const struct fault *fault);
unsigned flow_content(const struct fault *fault);

#endif
