/*
 * Writes a tree of maps and lists as JSON or as indented text. `name` is the name of a member of a map, or NULL for an
 * item of a list.
 */
#ifndef EXPLAIN_EXPLAIN_WRITER_H
#define EXPLAIN_EXPLAIN_WRITER_H

#include "conf/conf_tree.h"

struct explain_writer {
    struct buffer *out;
    bool json;
    unsigned depth;
    bool begun;                     /* the current map or list has a member already */
    const char *heading;            /* text: the name of the current list until its first item is written; else NULL */
    int error;
};

/* Writes the beginning of the tree, with the URL, and its end. */
void writer_open(struct explain_writer *writer, struct str url);
void writer_close(struct explain_writer *writer);
/* Begins and ends a map. */
void writer_begin(struct explain_writer *writer, const char *name);
void writer_end(struct explain_writer *writer);
/* Begins and ends a list. */
void writer_list(struct explain_writer *writer, const char *name);
void writer_list_end(struct explain_writer *writer);
/* Writes a text or a number. */
void writer_text(struct explain_writer *writer, const char *name, struct str value);
void writer_number(struct explain_writer *writer, const char *name, uint64_t value);
/* A member with a name from the response, which is escaped. */
void writer_field(struct explain_writer *writer, struct str name, struct str value);
/* Writes an item of a list. */
void writer_item(struct explain_writer *writer, struct str value);
/* A value of the configuration, on one line. */
void writer_value(struct explain_writer *writer, const char *name, const struct conf_node *node);
/* Writes file, line and column; in text "(file:line)" after the line. Nothing if the mark has no file. */
void writer_mark(struct explain_writer *writer, struct conf_mark mark);

#endif
