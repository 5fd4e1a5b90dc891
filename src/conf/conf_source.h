/*
 * The source of a configuration, validated before it is parsed, and conversion between lines, columns and offsets.
 * Private to the loader.
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
    bool stop;                      /* a cap was exceeded: stop */
};

/*
 * Reads a file ("-": standard input), or uses `text` if its data is not NULL. Validates size, encoding and control
 * bytes. NULL after an error, reported at `included_at` or in the file itself.
 */
struct conf_file *source_open(struct conf_loader *loader, struct str path, struct str text,
                              struct conf_mark included_at);

/*
 * Converts successive marks of a file, usually in ascending order, without counting from the start of the line each
 * time.
 */
struct source_cursor {
    const struct conf_file *file;
    unsigned line;
    unsigned column;
    size_t offset;
};

/* The offset of a position in the file's text; past the end, the text's length. */
size_t source_offset(struct source_cursor *cursor, unsigned line, unsigned column);

/* Decodes the character at `at`; returns its length in bytes, 0: invalid UTF-8 (RFC 3629 4). */
size_t source_character(struct str text, size_t at, uint32_t *out_code);
/* True if YAML allows the character in a source without an escape. */
bool source_allowed(uint32_t code);

/* Line `number` (from 1) without its line break; empty: none. */
struct str source_line(const struct conf_file *file, unsigned number);
/* The line in which a text in nginx's language begins, if the file begins with it; else 0. */
unsigned source_nginx_line(const struct conf_file *file);

#endif
