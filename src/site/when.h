/*
 * `when`: directives that override a location's for requests that meet a condition. Conditions are evaluated in the
 * order of the file, outer scopes first; only the first that holds applies. `limit_except` is a condition on the
 * method and precedes all others of a location. Conditions of a server that set, rewrite or return run among the
 * server-level rules, and their result applies to the location, too.
 */
#ifndef SITE_WHEN_H
#define SITE_WHEN_H

#include "conf/directive.h"

struct location;
struct capture;

enum condition_kind { CONDITION_TRUE, CONDITION_EQUALS, CONDITION_MATCHES, CONDITION_AMONG, CONDITION_FILE,
                     CONDITION_DIRECTORY, CONDITION_EXISTS };

/* One of the conditions joined by "and". */
struct condition {
    enum condition_kind kind;
    bool negated;
    const struct template *value;   /* the value to test, or the path of a file */
    const struct template *operand; /* CONDITION_EQUALS */
    const struct capture *pattern;  /* CONDITION_MATCHES */
    struct conf_words among;        /* CONDITION_AMONG */
};

/* One entry of `when` or `limit_except`. */
struct when_block {
    const struct condition *conditions; /* all of them must hold */
    size_t count;
    struct location *location;          /* the location with the directives of this condition applied */
    const struct conf_pair *pair;       /* its place in the tree */
    bool rules;                         /* of a server, with set, rewrite or return: runs before a location is found */
    bool only_rules;                    /* and has no other directives */
    bool methods;                       /* of limit_except */
};

#endif
