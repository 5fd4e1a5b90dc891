/*
 * Builds the YAML of an import: maps, lists and texts with comments, each with the directive of nginx from which it is
 * translated. The functions that find, add or move a child accept a NULL builder, and return NULL for it, so that
 * callers check once at the end.
 */
#ifndef IMPORT_YAML_BUILDER_H
#define IMPORT_YAML_BUILDER_H

#include "base/buffer.h"
#include "import/nginx_tree.h"

enum yaml_builder_kind { YAML_BUILDER_TEXT, YAML_BUILDER_LIST, YAML_BUILDER_MAP };

struct yaml_builder {
    enum yaml_builder_kind kind;
    struct str key;                         /* of a map's child; data NULL in a list */
    struct str text;                        /* YAML_BUILDER_TEXT */
    struct str comments_above;              /* comments above, one per line, with '#' */
    struct str comment_beside;              /* comment on the same line */
    struct str comments_below;              /* comments after the last child */
    struct yaml_builder *first, *last, *parent, *next;
    struct yaml_builder **chains, *chained; /* private to yaml_builder.c: hash chains over many children */
    size_t count, chain_count;              /* number of children, and of chains */
    const struct nginx_directive *origin;   /* NULL: added by the import */
    unsigned scope;                         /* a map: its enum conf_scope; 0: none */
    bool omitted;                           /* printed as a comment */
    unsigned line, last_line;               /* lines of the latest output, contents included */
};

/* Creates the root, an empty map. NULL: out of memory. */
struct yaml_builder *yaml_builder_root(struct arena *arena);
/* The child of that name; NULL: none. */
struct yaml_builder *yaml_builder_find(const struct yaml_builder *map, struct str key);
/*
 * Appends a child to a map (with `key`) or to a list (data NULL); its comments are those of `origin`, which may be
 * NULL.
 */
struct yaml_builder *yaml_builder_add(struct arena *arena, struct yaml_builder *parent, enum yaml_builder_kind kind,
                                      struct str key, const struct nginx_directive *origin);
/* The child of that name and kind, created if missing; NULL if it has another kind. */
struct yaml_builder *yaml_builder_open(struct arena *arena, struct yaml_builder *map, enum yaml_builder_kind kind,
                                       struct str key);
/* Moves the last child to the front. */
void yaml_builder_move_first(struct yaml_builder *parent);

/* True if the builder is printed, not only its comments. */
bool yaml_builder_has_output(const struct yaml_builder *builder);
/* Appends the whole tree as YAML, and records line numbers in the builders. 0 or -ENOMEM. */
MUST_CHECK int yaml_builder_print(struct yaml_builder *root, struct buffer *out);
/* Appends a text of nginx's file on one line, with '?' for bytes that YAML does not allow. 0 or -ENOMEM. */
MUST_CHECK int yaml_builder_print_text(struct buffer *out, struct str text);
/* The innermost builder with a directive that was printed in this line; NULL: none. */
struct yaml_builder *yaml_builder_at(struct yaml_builder *root, unsigned line);

#endif
