/*
 * The YAML that comes of an import, while it is being made: maps, lists and texts with their comments, each knowing the
 * directive that it was made of. A NULL builder takes anything and gives NULL, so that whoever builds looks once, at the end.
 */
#ifndef IMPORT_YAML_BUILDER_H
#define IMPORT_YAML_BUILDER_H

#include "base/buffer.h"
#include "import/nginx_tree.h"

enum yaml_builder_kind { YAML_BUILDER_TEXT, YAML_BUILDER_LIST, YAML_BUILDER_MAP };

struct yaml_builder {
    enum yaml_builder_kind kind;
    struct str key;                 /* of a map's child; data NULL in a list */
    struct str text;                /* YAML_BUILDER_TEXT */
    struct str before;              /* comments above, a line each, with their '#' */
    struct str behind;              /* on the same line */
    struct str after;               /* behind the last child */
    struct yaml_builder *first, *last, *parent, *next;
    struct yaml_builder **chains, *chained; /* yaml_builder.c's own: children by their keys, once there are many */
    size_t count, chain_count;      /* of children, and of chains */
    const struct nginx_directive *origin; /* NULL: it was not in nginx's file */
    unsigned scope;                 /* a map: the enum conf_scope that it is; 0: none */
    bool left_out;                  /* it is printed as a comment */
    unsigned line, last_line;       /* where it was printed last, with all in it */
};

/* An empty map of its own: the root. NULL: out of memory. */
struct yaml_builder *yaml_builder_root(struct arena *arena);
/* The child of that name; NULL: none. */
struct yaml_builder *yaml_builder_find(const struct yaml_builder *map, struct str key);
/* A child of a map (key with data, else nobody finds it) or of a list (without), last; its comments are those of `origin`, which may be NULL. */
struct yaml_builder *yaml_builder_add(struct arena *arena, struct yaml_builder *parent, enum yaml_builder_kind kind, struct str key,
                                      const struct nginx_directive *origin);
/* The child of that name and kind, made where there is none; NULL where it is of another kind. */
struct yaml_builder *yaml_builder_open(struct arena *arena, struct yaml_builder *map, enum yaml_builder_kind kind, struct str key);
/* Takes a child that is the last one to the front. */
void yaml_builder_move_first(struct yaml_builder *parent);

/* True where it is printed as more than comments. */
bool yaml_builder_has_output(const struct yaml_builder *builder);
/* The whole as YAML, appended; notes the lines in the builders. 0, -ENOMEM. */
MUST_CHECK int yaml_builder_print(struct yaml_builder *root, struct buffer *out);
/* Appends a text of somebody else's, on one line: with '?' for what may not stand in a source. 0 or -ENOMEM. */
MUST_CHECK int yaml_builder_print_text(struct buffer *out, struct str text);
/* The innermost builder that was made of a directive and was printed in this line; NULL: none. */
struct yaml_builder *yaml_builder_at(struct yaml_builder *root, unsigned line);

#endif
