/*
 * Declaration of directives by modules and the core: one row per directive. The tables generate the checks, the JSON
 * Schema, the reference and `sluice help`.
 */
#ifndef CONF_DIRECTIVE_H
#define CONF_DIRECTIVE_H

#include "base/cidr.h"
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
    /* struct str, absolute: relative paths start at the directory of the file, or at -p. */
    DIRECTIVE_PATH,
    DIRECTIVE_NUMBER,               /* uint64_t, within [low, high] */
    DIRECTIVE_SIZE,                 /* uint64_t bytes: 10, 4k, 10m, 1g (10MiB too) */
    DIRECTIVE_DURATION,             /* uint64_t milliseconds: 500ms, 30s, 1h30m; a unit is required except for 0 */
    DIRECTIVE_SWITCH,               /* bool */
    /* Int: index in `choices`, a NULL-terminated list; true and yes match "on", false and no match "off". */
    DIRECTIVE_CHOICE,
    DIRECTIVE_FLAGS,                /* unsigned: bit i for choices[i]; words */
    DIRECTIVE_TEMPLATE,             /* const struct template * */
    DIRECTIVE_WORDS,                /* struct conf_words: a list, or one scalar split into words (quotes group) */
    DIRECTIVE_TEMPLATES,            /* struct conf_templates: as WORDS, each word a template */
    /* Repeatable: struct conf_rows of `row_size`, each filled by `row` from one node, in order. */
    DIRECTIVE_REPEAT,
    DIRECTIVE_BLOCK,                /* a map read by the table `children`, whose offsets count from `offset` */
    DIRECTIVE_CUSTOM,               /* `row` reads the node into the field, which has `row_size` bytes */
};

enum directive_merge {
    MERGE_INHERIT,                  /* the inner scope's value replaces the outer one's */
    MERGE_APPEND,                   /* the outer scope's items precede the inner one's */
    MERGE_NONE,                     /* not inherited */
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
 * Reads one node into `out`, which is zeroed; only a CUSTOM field with MERGE_APPEND holds the outer scope's value
 * (shared: extend a copy). 0; -EINVAL (reported through the reader); or -ENOMEM.
 */
typedef int directive_row(struct conf_reader *reader, const struct conf_node *node, void *out);

/* A directive without effect: its value is checked and not stored. */
struct directive_ignored {
    /* Of a SWITCH: the reason, for the warning that `off` has no effect; NULL: no warning. */
    const char *off_reason;
    const char *off_hint;
};

struct directive {
    const char *name;
    unsigned scopes;
    enum directive_type type;
    enum directive_merge merge;
    size_t offset;
    const char *default_value;      /* default value in YAML; NULL: none (the field stays zero) */
    const char *help;               /* one line */
    const char *syntax;             /* CUSTOM and REPEAT: the syntax in the notation of nginx's documentation */
    const char *example;            /* an example in YAML, for the reference; NULL: name and default */
    const char *const *choices;
    /* NULL: the value is stored at `offset`. */
    const struct directive_ignored *ignored;
    /* Each use causes a warning with this text: "use b; version 2.0 rejects a"; NULL: not deprecated. */
    const char *deprecated;
    uint64_t low, high;             /* bounds of numbers, sizes, durations (ms); high 0: none */
    bool written;                   /* PATH: workers write to it; added to reader->directories if the file sets it */
    /* PATH, TEMPLATE: workers read it while they run, so their sandbox permits its directory. */
    bool opened;
    size_t row_size;
    directive_row *row;
    /* BLOCK. */
    const struct directive *children;
    bool line;                      /* part of a message head: line breaks and other control bytes are rejected */
    bool secret;                    /* TEXT, and conf_read_text in rows: messages show neither the value nor its line */
    const char *schema;             /* CUSTOM and REPEAT: the JSON Schema of one item; NULL: string */
};

/* A table ends with a row whose name is NULL. The server declares one group for the core and one per module. */
struct conf_group {
    const char *name;               /* the module's */
    const struct directive *directives;
    size_t size;                    /* of the group's struct */
    /* Runs after merging, per scope; NULL: none. */
    int (*check)(void *conf, struct conf_reader *reader, const struct conf_node *at);
};

struct upstreams;                   /* upstream/upstream.h */
struct user_variables;               /* site/user_variables.h */
struct caches;                      /* cache/cache_conf.h */
struct limits;                      /* limit/limit_conf.h */
struct acme;                        /* acme/acme.h */
struct otlp;                        /* otlp/otlp.h */

struct conf_reader {
    struct arena *arena;            /* the configuration's */
    struct conf_errors *errors;
    const struct variable_table *variables;
    struct str prefix;              /* -p, or empty */
    bool test_only;                 /* -t: perform nothing that needs privileges */
    enum conf_scope scope;          /* the current scope */
    bool is_overlay;                /* `when`: the scope inherits values with MERGE_NONE, too */
    struct upstreams *upstreams;    /* groups of servers, for rows that name one; opaque here */
    /* Variables and regular expressions of the file; opaque here. */
    struct user_variables *user_variables;
    struct caches *caches;          /* caches, for rows that name one; opaque here */
    struct limits *limits;          /* zones of limits; opaque here */
    const struct acme *acme;        /* certificates by ACME; complete after all servers are read; opaque here */
    struct otlp *otlp;              /* export of spans, set by the module otel; opaque here */
    struct conf_words *directories; /* directories that workers write to, without duplicates; NULL: not collected */
    /* Current directive, for messages; NULL: none. */
    const struct directive *directive;
};

/*
 * The position of byte `at` of `word`, a part of the node's text; the node's own position if the text was
 * transformed.
 */
struct conf_mark conf_mark_within(const struct conf_node *node, struct str word, size_t at);

/*
 * For custom rows. Each reports its errors (a missing value, an unexpected list, a text truncated by a comment) and
 * returns 0, -EINVAL or -ENOMEM. Outputs are in the arena of the reader or of the tree.
 */
MUST_CHECK int conf_read_text(struct conf_reader *reader, const struct conf_node *node, struct str *out_text);
/* An address, a range of addresses, or "unix:". */
MUST_CHECK int conf_read_cidr(struct conf_reader *reader, const struct conf_node *node, struct cidr *out_cidr);
MUST_CHECK int conf_read_path(struct conf_reader *reader, const struct conf_node *node, struct str *out_path);
/* high 0: no upper bound. */
MUST_CHECK int conf_read_number(struct conf_reader *reader, const struct conf_node *node, uint64_t low, uint64_t high,
                                uint64_t *out);
MUST_CHECK int conf_read_size(struct conf_reader *reader, const struct conf_node *node, uint64_t *out_bytes);
/* Parses a size at run time, without a report. 0, -EINVAL or -ERANGE. */
MUST_CHECK int conf_size_parse(struct str text, uint64_t *out_bytes);
/*
 * Parses numbers with descending units: "1h30m", "1h 30m". 0, -ENOMSG (a number without a unit), -ERANGE (too long) or
 * -EINVAL.
 */
MUST_CHECK int conf_duration_parse(struct str text, uint64_t *out_ms);
MUST_CHECK int conf_read_duration(struct conf_reader *reader, const struct conf_node *node, uint64_t *out_ms);
MUST_CHECK int conf_read_switch(struct conf_reader *reader, const struct conf_node *node, bool *out);
/* Parses on, off, true, false, yes, no. 0 or -EINVAL, without a report. */
MUST_CHECK int conf_switch_parse(struct str text, bool *out);
MUST_CHECK int conf_read_template(struct conf_reader *reader, const struct conf_node *node,
                                  const struct template **out_template);
/* Reads a template of a size: without variables, it must be one. */
directive_row conf_read_size_template;
/* Compiles a word of a scalar as a template; errors point at the node. */
MUST_CHECK int conf_read_template_word(struct conf_reader *reader, const struct conf_node *node, struct str word,
                                       const struct template **out_template);
/*
 * Reads a list of scalars, one word each, or one scalar split at blanks, in which quotes group and \", \', \\, \t,
 * \n, \r are escapes.
 */
MUST_CHECK int conf_read_words(struct conf_reader *reader, const struct conf_node *node, struct conf_words *out_words);
/* Returns a scalar with one word of the node, and its place, for the functions that read a path, number or size. */
struct conf_node conf_word_node(const struct conf_node *node, struct str word);
MUST_CHECK int conf_read_choice(struct conf_reader *reader, const struct conf_node *node, const char *const *choices,
                                int *out_index);
/*
 * Reads a map by a table of its keys into the struct `out`, defaults first. Unknown keys and missing values are
 * reported.
 */
MUST_CHECK int conf_read_block(struct conf_reader *reader, const struct conf_node *node,
                               const struct directive *children,
                               void *out);

#endif
