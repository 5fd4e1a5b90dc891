/*
 * Two notations for one tree: JSON, and indented lines for people. Members of a map have a name, items of a list
 * have NULL.
 */
#ifndef EXPLAIN_EXPLAIN_TELL_H
#define EXPLAIN_EXPLAIN_TELL_H

#include "conf/conf_tree.h"

struct tell {
    struct buffer *out;
    bool json;
    unsigned depth;
    bool begun;                     /* something stands at this level already */
    const char *heading;            /* text: the name of a list that has no item yet; NULL: none */
    int error;
};

/* The whole begins, about one URL, and ends. */
void tell_open(struct tell *tell, struct str url);
void tell_close(struct tell *tell);
void tell_begin(struct tell *tell, const char *name);
void tell_end(struct tell *tell);
void tell_list(struct tell *tell, const char *name);
void tell_list_end(struct tell *tell);
void tell_text(struct tell *tell, const char *name, struct str value);
void tell_number(struct tell *tell, const char *name, uint64_t value);
/* A member whose name is not ours. */
void tell_field(struct tell *tell, struct str name, struct str value);
void tell_item(struct tell *tell, struct str value);
/* A value of the configuration, on one line. */
void tell_value(struct tell *tell, const char *name, const struct conf_node *node);
/* "at": file:line. Nothing where it is nowhere. */
void tell_mark(struct tell *tell, struct conf_mark mark);

#endif
