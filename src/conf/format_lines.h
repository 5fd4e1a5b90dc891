/*
 * The output lines of formatting: start of a line, trailing comments, and the shift of multi-line constructs.
 * Private to format*.c.
 */
#ifndef CONF_FORMAT_LINES_H
#define CONF_FORMAT_LINES_H

#include "conf/format.h"

#define FORMAT_LEVEL 2              /* blanks per nesting level */

struct format_lines {
    struct str text;                /* the source, lines ended by '\n' */
    struct buffer *out;
    size_t start;                   /* of the current line, in out */
    unsigned source_indent;         /* indentation of the source line it began with */
    unsigned indent;                /* its own indentation */
    unsigned comment_source;        /* source column of the comment that ended the previous line; 0: none */
    unsigned comment;               /* its column in the output */
    bool content;                   /* the line is not empty */
    bool empty_line_pending;        /* an empty line precedes the next one */
    bool failed;                    /* out of memory: nothing more is written */
};

/* Characters between the start of the source line and byte `at`. */
unsigned lines_column(const struct format_lines *lines, size_t at);
/* Appends to the current line. */
void lines_put(struct format_lines *lines, struct str words);
/* Ends the line unless it is empty. */
void lines_end(struct format_lines *lines);
/* Ends the line and begins another with `indent` blanks; in the source it had `source_indent`. */
void lines_begin(struct format_lines *lines, unsigned indent, unsigned source_indent);
/* Appends a trailing comment at its column relative to the line, after at least one blank. */
void lines_trail(struct format_lines *lines, struct str comment, unsigned source_column);
/* Writes a comment on its own line: below the trailing comment above if it continues that one, else at `indent`. */
void lines_comment(struct format_lines *lines, struct str comment, unsigned indent, unsigned source_column);
/* The output column of the next byte. */
unsigned lines_here(const struct format_lines *lines);

#endif
