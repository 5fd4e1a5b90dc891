/*
 * The lines that formatting writes: where a line begins, what stands behind it, and how
 * far what is open over several lines has moved. Used by format.c only.
 */
#ifndef CONF_FORMAT_LINES_H
#define CONF_FORMAT_LINES_H

#include "conf/format.h"

#define FORMAT_LEVEL 2              /* blanks of one level of nesting */

struct format_lines {
    struct str text;                /* the source, its lines ending in '\n' */
    struct buffer *out;
    size_t start;                   /* of the line being written, in out */
    unsigned source_indent;         /* of the source's line that it began with */
    unsigned indent;                /* its own */
    unsigned comment_source;        /* columns of the comment that ended the line before: of the source, of ours; 0: none */
    unsigned comment;
    bool content;                   /* something stands on the line */
    bool empty_wanted;              /* an empty line goes before the next one */
    bool failed;                    /* out of memory: nothing more is written */
};

/* Characters between the start of its line in the source and byte `at`. */
unsigned lines_column(const struct format_lines *lines, size_t at);
/* Appends to the line being written. */
void lines_put(struct format_lines *lines, struct str words);
/* Ends the line, if it holds anything. */
void lines_end(struct format_lines *lines);
/* Ends the line and begins another, `indent` blanks in; in the source it was `source_indent`. */
void lines_begin(struct format_lines *lines, unsigned indent, unsigned source_indent);
/* A comment behind what stands on the line: at least one blank away, else where it was in relation to its line. */
void lines_trail(struct format_lines *lines, struct str comment, unsigned source_column);
/* A comment on a line of its own; one that goes on below the comment of the line before stays below it. */
void lines_comment(struct format_lines *lines, struct str comment, unsigned indent, unsigned source_column);
/* The column of our line that byte `out->length` will have. */
unsigned lines_here(const struct format_lines *lines);

#endif
