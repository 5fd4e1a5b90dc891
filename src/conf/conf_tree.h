/*
 * A configuration file as a tree of nodes, each with the place where it stands:
 * what libyaml's events say, after includes, anchors and merges, before any meaning.
 */
#ifndef CONF_CONF_TREE_H
#define CONF_CONF_TREE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/limits.h"

struct conf_file;

/* Where a node stands; line and column count from one (column in characters). file NULL: nowhere. */
struct conf_mark {
    const struct conf_file *file;
    unsigned line;
    unsigned column;
};

struct conf_file {
    struct str path;                /* as the user would name it */
    struct str folder;              /* where it stands, absolute: relative paths start here */
    struct str text;                /* the whole source, for carets */
    const size_t *lines;            /* offsets in `text` at which lines begin */
    size_t line_count;
    unsigned order;                 /* files are numbered as they are read */
    dev_t device;                   /* which file it is, however it is named; both 0 for text in memory */
    ino_t inode;
    struct conf_mark included_at;   /* the place of the include; file NULL for the main file */
};

enum conf_kind { CONF_SCALAR, CONF_LIST, CONF_MAP };

struct conf_pair {
    struct conf_node *key;          /* a scalar */
    struct conf_node *value;
};

/* Immutable once loaded. An alias is the very node that its anchor names: two places may hold one node. */
struct conf_node {
    enum conf_kind kind;
    struct conf_mark mark;
    bool quoted;                    /* scalar: it stood in quotes or was a block scalar */
    bool absent;                    /* scalar: a key without a value (mark: the key's) */
    bool flow;                      /* it stood inside [] or {} */
    bool include;                   /* of the loader: tagged !include */
    bool visited;                   /* of the loader: its includes are done */
    unsigned height;                /* levels below */
    size_t size;                    /* nodes below and itself, aliases expanded */
    struct str text;                /* scalar, environment already expanded */
    struct str key;                 /* absent: the key that has no value */
    struct str comment;             /* plain scalar: a comment that follows on its line, from the '#' */
    struct conf_node **items;       /* list */
    struct conf_pair *pairs;        /* map, in the order of the file */
    size_t count;
};

/* Everything that is wrong, up to LIMIT_CONF_ERRORS, in the order found. */
struct conf_errors {
    struct arena *arena;
    struct conf_error {
        struct conf_mark mark;      /* file NULL: about no place */
        struct str message;
        struct str hint;            /* the way out, or empty */
        bool warning;
    } items[LIMIT_CONF_ERRORS];
    unsigned count;                 /* kept */
    unsigned dropped;               /* past the cap */
    bool failed;                    /* at least one is no warning */
};

/* Adds one (the text is copied; control bytes become '?'). The same text at the same place is added only once. */
void conf_error(struct conf_errors *errors, struct conf_mark mark, struct str hint, const char *format, ...)
    PRINTF_LIKE(4, 5);
void conf_warning(struct conf_errors *errors, struct conf_mark mark, struct str hint, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* A hint made up like printf, in the errors' arena; empty when out of memory. */
struct str conf_hint(struct conf_errors *errors, const char *format, ...) PRINTF_LIKE(2, 3);
/*
 * "file:line:column: error: message", the line, a caret, the hint; appended to `out`, in the order of
 * files and lines. 0 or -ENOMEM.
 */
MUST_CHECK int conf_errors_print(const struct conf_errors *errors, struct buffer *out);

/*
 * Reads `path` ("-": standard input) with its includes. The tree lives in `arena`, which outlives the errors.
 * After errors the tree is what could be read (so that more errors can be found), or NULL; see errors->failed.
 */
struct conf_node *conf_tree_load(struct arena *arena, struct str path, struct conf_errors *errors);
/* The same from text in memory, named `name` (the -g option, tests, `sluice serve`). */
struct conf_node *conf_tree_parse(struct arena *arena, struct str name, struct str text,
                                  struct conf_errors *errors);
/* Lays the keys of `over` over `base` (the -g option): replaced, or added; maps in maps likewise. 0 or -ENOMEM. */
MUST_CHECK int conf_tree_overlay(struct arena *arena, struct conf_node *base, const struct conf_node *over);

/* The value of a key in a map, or NULL; NULL too where `map` is none. */
struct conf_node *conf_map_get(const struct conf_node *map, struct str key);

#endif
