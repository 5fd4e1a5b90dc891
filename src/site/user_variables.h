/*
 * Variables defined by the configuration: named groups of regular expressions, `set`, `map`, `geo`. Their names are
 * collected from all of http, or of stream, before directives are read, so that a template may precede the
 * definition. The values belong to the subject of the templates: an exchange, or a connection of stream.
 */
#ifndef SITE_USER_VARIABLES_H
#define SITE_USER_VARIABLES_H

#include "conf/directive.h"

struct capture;                     /* site/capture.h */

/* The values of one subject. */
struct user_variable_values {
    struct arena *arena;            /* has the lifetime of the subject */
    struct str *values;             /* of all variables; NULL: none was read or set */
    struct str *groups;             /* [REGEX_GROUPS]: $1 to $9 of the last match; NULL: nothing was captured */
};

/* Access to the subject. */
struct user_variable_subject {
    struct user_variable_values *(*values)(const void *subject);
    void (*log)(const void *subject, const char *line); /* writes a line to the error log */
};

struct user_variable {
    const struct user_variables *among;
    struct str name;                /* without "$" */
    size_t index;                   /* of its value */
    /* Evaluates the variable if it is not set, at most once per subject unless `uncached`; NULL: empty. */
    struct str (*eval)(const void *subject, const void *source);
    const void *source;
    bool uncached;
};

struct user_variables {
    const struct user_variable_subject *subject;
    struct user_variable *items;
    size_t count;
    struct variable_table table;    /* for templates: precedes the server's own table */
    struct capture *captures;       /* every regular expression, for captures_finish */
};

/*
 * Collects the names below `tree` (NULL: none), except those that are exactly in `known`. Memory comes from the
 * arena. Returns 0 or -ENOMEM.
 */
MUST_CHECK int user_variables_collect(struct arena *arena, const struct conf_node *tree,
                                      const struct variable_table *known, const struct user_variable_subject *subject,
                                      struct user_variables *out);

/* Returns the variable of a word "$name"; NULL: not defined by the configuration. */
struct user_variable *user_variable_find(const struct user_variables *own, struct str name);
/* For rows: returns the variable to set, named by a word "$name" of the node. 0, or -EINVAL after reporting it. */
MUST_CHECK int user_variable_read(struct conf_reader *reader, const struct conf_node *node, struct str word,
                                  struct user_variable **out);

/*
 * For rows: sets the source of the variable's value when it is not set, evaluated at most once per subject unless
 * `uncached`. Returns 0, or -EINVAL after reporting it: the variable has a source already.
 */
MUST_CHECK int user_variable_set_source(struct conf_reader *reader, const struct conf_node *node,
                                        struct user_variable *variable,
                                        struct str (*eval)(const void *subject, const void *source), const void *source,
                                        bool uncached);

/* Sets the variable to a value that has the lifetime of the subject. Returns 0 or -ENOMEM. */
MUST_CHECK int user_variable_set(const void *subject, const struct user_variable *variable, struct str value);

#endif
