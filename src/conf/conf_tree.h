/*
 * A configuration file as a tree of nodes with positions: libyaml's events after includes, anchors and merges,
 * without interpretation.
 */
#ifndef CONF_CONF_TREE_H
#define CONF_CONF_TREE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/limits.h"

struct conf_file;

/* The position of a node; line and column count from 1 (column in characters). file NULL: none. */
struct conf_mark {
    const struct conf_file *file;
    unsigned line;
    unsigned column;
};

struct conf_file {
    struct str path;                /* as given by the user */
    struct str directory;           /* its directory, absolute: the start of relative paths */
    struct str bytes;               /* the whole file */
    struct str text;                /* the same without a byte order mark, for the excerpts of messages */
    const size_t *lines;            /* offsets in `text` of the lines */
    bool *secret_lines;             /* for each line: messages do not show it, since it has a secret (conf_mark_hide) */
    size_t line_count;
    unsigned order;                 /* number in reading order */
    dev_t device;                   /* identity of the file; both 0 for text in memory */
    ino_t inode;
    struct conf_mark included_at;   /* position of the include; file NULL: the main file */
    const struct conf_file *next;   /* in reading order; NULL: none */
};

enum conf_kind { CONF_SCALAR, CONF_LIST, CONF_MAP };

struct conf_pair {
    struct conf_node *key;          /* a scalar */
    struct conf_node *value;
};

/* Only the loader and conf_tree_overlay change nodes. An alias is its anchor's node, so a node may occur repeatedly. */
struct conf_node {
    enum conf_kind kind;
    struct conf_mark mark;
    bool quoted;                    /* scalar: quoted or a block scalar */
    bool absent;                    /* scalar: a key without a value (mark: the key's) */
    bool flow;                      /* inside [] or {} */
    bool include;                   /* used by the loader: tagged !include */
    bool visited;                   /* used by the loader: includes are resolved */
    unsigned height;                /* depth of the tree below */
    size_t size;                    /* nodes of the tree, itself included, aliases expanded */
    struct str text;                /* scalar, environment references expanded */
    struct str key;                 /* if absent: the text of the key without a value */
    struct str comment;             /* plain scalar: the comment after it on the same line, from '#' */
    struct conf_node **items;       /* list */
    struct conf_pair *pairs;        /* map, in the order of the file */
    size_t count;
};

/* All errors and warnings, up to LIMIT_CONF_ERRORS, in the order found. */
struct conf_errors {
    struct arena *arena;
    struct conf_error {
        struct conf_mark mark;                  /* file NULL: no position */
        struct str message;
        struct str hint;                        /* remedy, or empty */
        bool warning;
    } items[LIMIT_CONF_ERRORS];
    unsigned count;                             /* stored */
    unsigned dropped;                           /* beyond the cap */
    struct conf_mark muted[LIMIT_CONF_ERRORS];  /* by conf_errors_mute */
    unsigned muted_count;
    bool failed;                                /* at least one is an error */
};

/* Adds an error (the text is copied; control bytes become '?'). Duplicates at the same position are ignored. */
void conf_error(struct conf_errors *errors, struct conf_mark mark, struct str hint, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Ignores further messages at this position, which are consequences of an error that was added. */
void conf_errors_mute(struct conf_errors *errors, struct conf_mark mark);
/* As conf_error, without setting errors->failed. */
void conf_warning(struct conf_errors *errors, struct conf_mark mark, struct str hint, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Excludes the line of the mark from all messages, because it has a secret. No effect if the mark has no file. */
void conf_mark_hide(struct conf_mark mark);
/* Formats a hint in the errors' arena; empty when out of memory. */
struct str conf_hint(struct conf_errors *errors, const char *format, ...) PRINTF_LIKE(2, 3);
/*
 * Appends "file:line:column: error: message", the line, a caret and the hint of each error, ordered by file and
 * line. 0 or -ENOMEM.
 */
MUST_CHECK int conf_errors_print(const struct conf_errors *errors, struct buffer *out);

/*
 * Loads `path` ("-": standard input) with its includes. The tree is in `arena`, which must outlive `errors`: marks
 * point into it. After errors (errors->failed) the result is the part that could be read, for further checks, or NULL.
 */
struct conf_node *conf_tree_load(struct arena *arena, struct str path, struct conf_errors *errors);
/* Loads a text in memory, named `name` (-g, tests, `sluice serve`). */
struct conf_node *conf_tree_parse(struct arena *arena, struct str name, struct str text,
                                  struct conf_errors *errors);
/* Merges `over` into `base` (-g): keys are replaced or added; nested maps are merged. 0 or -ENOMEM. */
MUST_CHECK int conf_tree_overlay(struct arena *arena, struct conf_node *base, const struct conf_node *over);

/*
 * The main file of a tree, and by `next` all files that were read with it. A file that several places include occurs
 * several times. NULL: the tree has no file.
 */
const struct conf_file *conf_tree_files(const struct conf_node *tree);
/* The value of a key, or NULL; also NULL if `map` is not a map. */
struct conf_node *conf_map_get(const struct conf_node *map, struct str key);

#endif
