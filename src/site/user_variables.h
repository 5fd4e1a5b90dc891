/*
 * Variables that the configuration itself brings: named groups of regular expressions, `set`, `map`, `geo`. Their names
 * are gathered from all of http, or of stream, before anything of it is read, so that a template may stand before
 * what gives its variable a value. The values are of an exchange, or of a connection of stream: the subject of templates there.
 */
#ifndef SITE_USER_VARIABLES_H
#define SITE_USER_VARIABLES_H

#include "conf/directive.h"

struct capture;                     /* site/capture.h */

/* What one subject has of them. */
struct user_variable_values {
    struct arena *arena;            /* lasts as long as the subject */
    struct str *values;             /* of all variables; NULL: none was asked for or set */
    struct str *groups;             /* [REGEX_GROUPS]: $1 to $9 of what matched last; NULL: nothing was captured */
};

/* What they are of. */
struct user_variable_subject {
    struct user_variable_values *(*values)(const void *subject);
    void (*log)(const void *subject, const char *line); /* a mistake, in the error log */
};

struct user_variable {
    const struct user_variables *among;
    struct str name;                /* without "$" */
    size_t index;                   /* of its value */
    /* What it is where nobody has set it, asked for at most once for a subject unless `uncached`; NULL: nothing. */
    struct str (*eval)(const void *subject, const void *source);
    const void *source;
    bool uncached;
};

struct user_variables {
    const struct user_variable_subject *subject;
    struct user_variable *items;
    size_t count;
    struct variable_table table;    /* for templates: in front of the server's own */
    struct capture *captures;       /* every regular expression, for the end of the configuration */
};

/* Gathers the names below `tree` (NULL: none); those that `known` has, exactly, are left out. The memory is the arena's. 0 or -ENOMEM. */
MUST_CHECK int user_variables_collect(struct arena *arena, const struct conf_node *tree, const struct variable_table *known,
                                      const struct user_variable_subject *subject, struct user_variables *out);

/* The variable of a word "$name"; NULL where it is none of the configuration's own. */
struct user_variable *user_variable_find(const struct user_variables *own, struct str name);
/* For rows: the variable that a word "$name" of the node gives a value to. 0, or -EINVAL, and said. */
MUST_CHECK int user_variable_read(struct conf_reader *reader, const struct conf_node *node, struct str word,
                                  struct user_variable **out);

/* For rows: what the variable is where nobody sets it, asked for at most once for a subject unless `uncached`. 0, or -EINVAL, and said: it has such a maker. */
MUST_CHECK int user_variable_set_source(struct conf_reader *reader, const struct conf_node *node, struct user_variable *variable,
                                        struct str (*eval)(const void *subject, const void *source), const void *source,
                                        bool uncached);

/* From now on the variable has this value, which lasts as long as the subject. 0 or -ENOMEM. */
MUST_CHECK int user_variable_set(const void *subject, const struct user_variable *variable, struct str value);

#endif
