/*
 * The YAML that comes of an import, while it is being made: maps, lists and texts with their comments, each knowing the
 * directive that it was made of. A NULL draft takes anything and gives NULL, so that whoever builds looks once, at the end.
 */
#ifndef IMPORT_DRAFT_H
#define IMPORT_DRAFT_H

#include "base/buffer.h"
#include "import/nginx_tree.h"

enum draft_kind { DRAFT_TEXT, DRAFT_LIST, DRAFT_MAP };

struct draft {
    enum draft_kind kind;
    struct str key;                 /* of a map's child; data NULL in a list */
    struct str text;                /* DRAFT_TEXT */
    struct str before;              /* comments above, a line each, with their '#' */
    struct str behind;              /* on the same line */
    struct str after;               /* behind the last child */
    struct draft *first, *last, *parent, *next;
    struct draft **chains, *chained; /* draft.c's own: children by their keys, once there are many */
    size_t count, chain_count;      /* of children, and of chains */
    const struct nginx_directive *origin; /* NULL: it was not in nginx's file */
    unsigned scope;                 /* a map: the enum conf_scope that it is; 0: none */
    bool left_out;                  /* it is printed as a comment */
    unsigned line, last_line;       /* where it was printed last, with all in it */
};

/* An empty map of its own: the root. NULL: out of memory. */
struct draft *draft_root(struct arena *arena);
/* The child of that name; NULL: none. */
struct draft *draft_find(const struct draft *map, struct str key);
/* A child of a map (key with data, else nobody finds it) or of a list (without), last; its comments are those of `origin`, which may be NULL. */
struct draft *draft_add(struct arena *arena, struct draft *parent, enum draft_kind kind, struct str key,
                        const struct nginx_directive *origin);
/* The child of that name and kind, made where there is none; NULL where it is of another kind. */
struct draft *draft_open(struct arena *arena, struct draft *map, enum draft_kind kind, struct str key);
/* Takes a child that is the last one to the front. */
void draft_lead(struct draft *parent);

/* True where it is printed as more than comments. */
bool draft_prints(const struct draft *draft);
/* The whole as YAML, appended; notes the lines in the drafts. 0, -ENOMEM. */
MUST_CHECK int draft_print(struct draft *root, struct buffer *out);
/* Appends a text of somebody else's, on one line: with '?' for what may not stand in a source. 0 or -ENOMEM. */
MUST_CHECK int draft_print_text(struct buffer *out, struct str text);
/* The innermost draft that was made of a directive and was printed in this line; NULL: none. */
struct draft *draft_at(struct draft *root, unsigned line);

#endif
