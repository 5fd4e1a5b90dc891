/*
 * Variables that the configuration itself brings: named groups of regular expressions, `set`, `map`, `geo`. Their names
 * are gathered from the whole tree before anything of it is read, so that a template may stand before
 * what gives its variable a value. The values are the visit's.
 */
#ifndef SERVER_OWN_VARIABLES_H
#define SERVER_OWN_VARIABLES_H

#include "conf/directive.h"
#include "http/exchange.h"

struct pattern;                     /* server/pattern.h */

struct own_variable {
    struct str name;                /* without "$" */
    size_t index;                   /* of its value in the visit */
    /* What it is where nobody has set it, asked for at most once for an exchange unless `fleeting`; NULL: nothing. */
    struct str (*eval)(struct exchange *x, const void *source);
    const void *source;
    bool fleeting;
};

struct own_variables {
    struct own_variable *items;
    size_t count;
    struct variable_table table;    /* for templates: in front of the server's own */
    struct pattern *patterns;       /* every regular expression, for the end of the configuration */
};

/* Gathers the names below `tree`; those that `known` has, exactly, are left out. The memory is the arena's. 0 or -ENOMEM. */
MUST_CHECK int own_variables_gather(struct arena *arena, const struct conf_node *tree, const struct variable_table *known,
                                    struct own_variables *out);

/* The variable of a word "$name"; NULL where it is none of the configuration's own. */
struct own_variable *own_variable_find(const struct own_variables *own, struct str name);
/* For rows: the variable that a word "$name" of the node gives a value to. 0, or -EINVAL, and said. */
MUST_CHECK int own_variable_read(struct conf_reader *reader, const struct conf_node *node, struct str word,
                                 struct own_variable **out);

/* For rows: what the variable is where nobody sets it, asked for at most once for an exchange unless `fleeting`. 0, or -EINVAL, and said: it has such a maker. */
MUST_CHECK int own_variable_make(struct conf_reader *reader, const struct conf_node *node, struct own_variable *variable,
                                 struct str (*eval)(struct exchange *x, const void *source), const void *source, bool fleeting);

/* From now on the variable has this value, which lasts as long as x. 0 or -ENOMEM. */
MUST_CHECK int own_variable_set(struct exchange *x, const struct own_variable *variable, struct str value);

#endif
