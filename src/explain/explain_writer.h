/*
 * Two notations for one tree: JSON, and indented lines for people. Members of a map have a name, items of a list
 * have NULL.
 */
#ifndef EXPLAIN_EXPLAIN_WRITER_H
#define EXPLAIN_EXPLAIN_WRITER_H

#include "conf/conf_tree.h"

struct explain_writer {
    struct buffer *out;
    bool json;
    unsigned depth;
    bool begun;                     /* something stands at this level already */
    const char *heading;            /* text: the name of a list that has no item yet; NULL: none */
    int error;
};

/* The whole begins, about one URL, and ends. */
void writer_open(struct explain_writer *writer, struct str url);
void writer_close(struct explain_writer *writer);
void writer_begin(struct explain_writer *writer, const char *name);
void writer_end(struct explain_writer *writer);
void writer_list(struct explain_writer *writer, const char *name);
void writer_list_end(struct explain_writer *writer);
void writer_text(struct explain_writer *writer, const char *name, struct str value);
void writer_number(struct explain_writer *writer, const char *name, uint64_t value);
/* A member whose name is not ours. */
void writer_field(struct explain_writer *writer, struct str name, struct str value);
void writer_item(struct explain_writer *writer, struct str value);
/* A value of the configuration, on one line. */
void writer_value(struct explain_writer *writer, const char *name, const struct conf_node *node);
/* "at": file:line. Nothing where it is nowhere. */
void writer_mark(struct explain_writer *writer, struct conf_mark mark);

#endif
