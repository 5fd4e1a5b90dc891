/*
 * The text of a source file: characters, lines, and conversion of positions to offsets. Reports no errors, so that
 * conf_error.c can print excerpts.
 */
#ifndef CONF_SOURCE_TEXT_H
#define CONF_SOURCE_TEXT_H

#include "conf/conf_tree.h"

/*
 * Converts marks of a file to offsets. For ascending marks of one line it continues from the previous mark; otherwise
 * it starts at the start of the line.
 */
struct source_cursor {
    const struct conf_file *file;
    unsigned line;
    unsigned column;
    size_t offset;
};

/* The offset of a position in the file's text; past the end, the text's length. */
size_t source_offset(struct source_cursor *cursor, unsigned line, unsigned column);

/* True if YAML allows the character in a source without an escape. */
bool source_allowed(uint32_t code);

/* Line `number` (from 1) without its line break; empty if there is no such line. */
struct str source_line(const struct conf_file *file, unsigned number);
/* The first line with content, if it is in nginx's language; else 0. */
unsigned source_nginx_line(const struct conf_file *file);

#endif
