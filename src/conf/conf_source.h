/*
 * The source of a configuration: its bytes, checked before any parser sees them, and
 * the way from a line and column to an offset. Used by the loader only.
 */
#ifndef CONF_CONF_SOURCE_H
#define CONF_CONF_SOURCE_H

#include "conf/conf_tree.h"

/* One load: the main file and everything included. */
struct conf_loader {
    struct arena *arena;
    struct conf_errors *errors;
    unsigned files;
    size_t nodes;                   /* expanded, over all files */
    bool stop;                      /* a cap was hit: no use in going on */
};

/*
 * Reads a file ("-": standard input), or takes `text` where its data is not NULL. Size, encoding and control
 * bytes are checked. NULL after an error (reported at `included_at`, or in the file itself).
 */
struct conf_file *source_open(struct conf_loader *loader, struct str path, struct str text,
                              struct conf_mark included_at);

/* Walks a file's marks, which mostly come in order, without counting from the line's start each time. */
struct source_cursor {
    const struct conf_file *file;
    unsigned line;
    unsigned column;
    size_t offset;
};

/* The offset of a place in the file's text; past the end it is the text's length. */
size_t source_offset(struct source_cursor *cursor, unsigned line, unsigned column);

/* Decodes the character at `at`; returns its bytes, 0 where it is no UTF-8 (RFC 3629 4). */
size_t source_character(struct str text, size_t at, uint32_t *out_code);
/* True where YAML lets it stand in a source as it is. */
bool source_allowed(uint32_t code);

/* Line `number` (from one) of the file, without its line break; empty where there is none. */
struct str source_line(const struct conf_file *file, unsigned number);
/* The line with which a text in nginx's own language begins; 0 where the file does not begin with one. */
unsigned source_nginx_line(const struct conf_file *file);

#endif
