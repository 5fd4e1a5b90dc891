/*
 * What a module (and the core) declares of its configuration: one row a key. From these
 * tables come the checks, the JSON Schema, the reference and `sluice help`.
 */
#ifndef CONF_DIRECTIVE_H
#define CONF_DIRECTIVE_H

#include "conf/conf_tree.h"
#include "conf/template.h"

enum conf_scope {
    SCOPE_MAIN = 1 << 0,
    SCOPE_EVENTS = 1 << 1,
    SCOPE_HTTP = 1 << 2,
    SCOPE_SERVER = 1 << 3,
    SCOPE_LOCATION = 1 << 4,
    SCOPE_UPSTREAM = 1 << 5,
    SCOPE_STREAM = 1 << 6,
    SCOPE_STREAM_SERVER = 1 << 7,
    SCOPE_SITE = SCOPE_HTTP | SCOPE_SERVER | SCOPE_LOCATION,
};

enum directive_type {
    DIRECTIVE_TEXT,                 /* struct str */
    DIRECTIVE_PATH,                 /* struct str, absolute: relative ones start at the folder of the file, or at -p */
    DIRECTIVE_NUMBER,               /* uint64_t, within [low, high] */
    DIRECTIVE_SIZE,                 /* uint64_t bytes: 10, 4k, 10m, 1g (10MiB too) */
    DIRECTIVE_DURATION,             /* uint64_t milliseconds: 500ms, 30s, 1h30m; a unit is required, but for 0 */
    DIRECTIVE_SWITCH,               /* bool */
    DIRECTIVE_CHOICE,               /* int: index in `choices`, a NULL-terminated list; true and yes match "on", false and no "off" */
    DIRECTIVE_FLAGS,                /* unsigned: bit i for choices[i]; words */
    DIRECTIVE_TEMPLATE,             /* const struct template * */
    DIRECTIVE_WORDS,                /* struct conf_words: a list, or one scalar split into words (quotes group) */
    DIRECTIVE_TEMPLATES,            /* struct conf_templates: as WORDS, each a template */
    DIRECTIVE_REPEAT,               /* repeatable: struct conf_rows of `row_size`, each filled by `row` from one node, in order */
    DIRECTIVE_BLOCK,                /* a map read with the child table; the children's offsets count from `offset` */
    DIRECTIVE_CUSTOM,               /* `row` reads the node into the field itself, which is `row_size` bytes */
};

enum directive_merge {
    MERGE_INHERIT,                  /* an inner scope's value replaces the outer one's as a whole */
    MERGE_APPEND,                   /* the outer scope's items come first, then the inner one's */
    MERGE_NONE,                     /* never inherited */
};

struct conf_words {
    struct str *items;
    size_t count;
};

struct conf_templates {
    const struct template **items;
    size_t count;
};

struct conf_rows {
    void *items;                    /* `count` structs of the directive's row_size */
    size_t count;
};

struct conf_reader;

/*
 * Reads one node into `out`, zeroed before; only a CUSTOM field with MERGE_APPEND holds the outer scope's value
 * (shared: extend a copy). Reports through the reader and returns -EINVAL, or -ENOMEM; 0 good.
 */
typedef int directive_row(struct conf_reader *reader, const struct conf_node *node, void *out);

struct directive {
    const char *name;
    unsigned scopes;
    enum directive_type type;
    enum directive_merge merge;
    size_t offset;
    const char *fallback;           /* as it would be written; NULL: none (the field stays zero) */
    const char *help;               /* one line */
    const char *syntax;             /* CUSTOM and REPEAT: what is written, in the way of nginx's documentation */
    const char *example;            /* as it would be written in YAML, for the reference; NULL: name and fallback */
    const char *const *choices;
    uint64_t low, high;             /* numbers, sizes, durations (ms); high 0: no bound */
    bool written;                   /* PATH: a folder that workers write; noted in reader->folders where the file names it */
    size_t row_size;
    directive_row *row;
    const struct directive *children; /* BLOCK */
    bool line;                      /* its value becomes a part of a message's head: line breaks and other control bytes are refused */
    const char *schema;             /* CUSTOM and REPEAT: the JSON Schema of one item, NULL: string */
};

/* A table ends with a row whose name is NULL. */

/* Declared by the server for the core and for each module; conf_schema.h reads by it. */
struct conf_group {
    const char *name;               /* the module's */
    const struct directive *directives;
    size_t size;                    /* of its conf struct */
    int (*check)(void *conf, struct conf_reader *reader, const struct conf_node *at); /* after merging, per scope instance; NULL: none */
};

struct upstreams;                   /* upstream/upstream.h */
struct user_variables;               /* site/user_variables.h */
struct caches;                      /* cache/cache_conf.h */
struct limits;                      /* limit/limit_conf.h */

struct conf_reader {
    struct arena *arena;            /* of the configuration */
    struct conf_errors *errors;
    const struct variable_table *variables;
    struct str prefix;              /* -p, or empty */
    bool test_only;                 /* -t: open nothing that needs rights */
    enum conf_scope scope;          /* where we stand at the moment */
    bool laid_over;                 /* the scope lies over its outer one, whose own values hold here, too (`when`) */
    struct upstreams *upstreams;    /* groups of servers, for rows that name one; not looked into here */
    struct user_variables *user_variables;      /* variables and regular expressions that the file brings; not looked into here */
    struct caches *caches;          /* caches, for rows that name one; not looked into here */
    struct limits *limits;          /* zones of limits, likewise */
    struct conf_words *folders;     /* that workers write, each once; NULL: they are not noted */
    const struct directive *directive; /* what is being read, for messages; NULL: none */
};

/* The place of byte `at` of `word`, a part of the node's text; the node's own where the text is not in the file as it is. */
struct conf_mark conf_mark_within(const struct conf_node *node, struct str word, size_t at);

/*
 * For custom rows. Each reports for itself (a value that is missing, a list where none is taken, a text whose end
 * became a comment) and returns 0, -EINVAL or -ENOMEM; outputs live in the reader's arena.
 */
MUST_CHECK int conf_read_text(struct conf_reader *reader, const struct conf_node *node, struct str *out_text);
MUST_CHECK int conf_read_path(struct conf_reader *reader, const struct conf_node *node, struct str *out_path);
/* high 0: no upper bound. */
MUST_CHECK int conf_read_number(struct conf_reader *reader, const struct conf_node *node, uint64_t low, uint64_t high,
                                uint64_t *out);
MUST_CHECK int conf_read_size(struct conf_reader *reader, const struct conf_node *node, uint64_t *out_bytes);
/* The same of a text that a variable made. 0, -EINVAL or -ERANGE; reports nothing. */
MUST_CHECK int conf_size_parse(struct str text, uint64_t *out_bytes);
MUST_CHECK int conf_read_duration(struct conf_reader *reader, const struct conf_node *node, uint64_t *out_ms);
MUST_CHECK int conf_read_switch(struct conf_reader *reader, const struct conf_node *node, bool *out);
MUST_CHECK int conf_read_template(struct conf_reader *reader, const struct conf_node *node, const struct template **out_template);
/* A template from a word of a scalar: errors point at the node. */
MUST_CHECK int conf_read_template_word(struct conf_reader *reader, const struct conf_node *node, struct str word,
                                       const struct template **out_template);
/* A list of scalars, each one word; or one scalar split at blanks, in which quotes group and \", \', \\, \t, \n, \r are escapes. */
MUST_CHECK int conf_read_words(struct conf_reader *reader, const struct conf_node *node, struct conf_words *out_words);
MUST_CHECK int conf_read_choice(struct conf_reader *reader, const struct conf_node *node, const char *const *choices,
                                int *out_index);
/* A map by a table of its keys, into the struct `out` (fallbacks first). Unknown keys and missing values are reported. */
MUST_CHECK int conf_read_block(struct conf_reader *reader, const struct conf_node *node, const struct directive *children,
                               void *out);

#endif
