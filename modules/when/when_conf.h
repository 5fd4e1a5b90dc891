/*
 * The directives of the module `when`, as read. Private to the module.
 */
#ifndef MODULES_WHEN_WHEN_CONF_H
#define MODULES_WHEN_WHEN_CONF_H

#include "server/module.h"
#include "site/user_variables.h"

/* One variable and its value. */
struct setting {
    struct user_variable *variable; /* NULL: $args, the query of the request */
    const struct template *value;
};

struct set_row {
    struct setting *items;
    size_t count;
};

struct when_conf {
    struct conf_rows sets;          /* struct set_row, outer scopes first */
    size_t outer_sets;              /* rows of the server and of outer scopes, which run with the server's rules */
    bool seen;                      /* a `when` exists in this or an outer scope; the server keeps its contents */
    bool limited;                   /* a `limit_except`, likewise */
};

extern const struct directive when_directives[];
/* Sets outer_sets. Returns 0. */
int when_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at);

#endif
