/*
 * `when`: directives that are laid over a location for requests of which a condition holds. Conditions are asked in the
 * order of the file, those of outer scopes first; the first that holds is the only one that counts. `limit_except` is a
 * condition on the method, and stands before all others of a location. Those of a server that set, rewrite or
 * return are asked among the server's own rules, and what was found there holds for the location, too.
 */
#ifndef SITE_WHEN_H
#define SITE_WHEN_H

#include "conf/directive.h"

struct location;
struct capture;

enum condition_kind { CONDITION_TRUE, CONDITION_EQUALS, CONDITION_MATCHES, CONDITION_AMONG, CONDITION_FILE, CONDITION_FOLDER, CONDITION_EXISTS };

/* One of those that are joined by "and". */
struct condition {
    enum condition_kind kind;
    bool negated;
    const struct template *value;   /* what is looked at, or the path of a file */
    const struct template *wanted;  /* CONDITION_EQUALS */
    const struct capture *pattern;  /* CONDITION_MATCHES */
    struct conf_words among;        /* CONDITION_AMONG */
};

struct when {
    const struct condition *conditions; /* all of them must hold */
    size_t count;
    struct location *location; /* the location with the directives of this condition laid over it */
    const struct conf_pair *pair;   /* where it stands */
    bool rules;                     /* of a server, and it sets, rewrites or returns: asked before a location is looked for */
    bool only_rules;                /* and does nothing else */
    bool methods;                   /* of limit_except */
};

#endif
