/*
 * An nginx configuration as a tree of directives, with their positions and comments; includes are resolved.
 */
#ifndef IMPORT_NGINX_TREE_H
#define IMPORT_NGINX_TREE_H

#include "base/arena.h"

struct nginx_place {
    struct str file;                /* the main file as given by the user; an included file as it was opened */
    unsigned line;
};

struct nginx_directive {
    struct str name;
    struct str *words;              /* words after the name */
    size_t count;
    struct nginx_place place;
    struct str comments_above;      /* comments above, one per line; empty: none */
    struct str comment_beside;      /* comment on its line */
    bool block;                     /* has {}, possibly empty */
    struct str comments_below;      /* block: comments after its last directive */
    /* Block: its directives. */
    struct nginx_directive *first, *last;
    struct nginx_directive *next;
    bool unreachable;               /* set by check_order (import_order.c) */
    bool sets;                      /* set by the translation: an `if` that becomes maps and `set` (import_set.c) */
};

/* The source of files. */
struct nginx_files {
    /* Reads a file into the arena. 0, -ENOMEM or another -errno. */
    int (*read)(void *owner, struct arena *arena, struct str path, struct str *out_text);
    /* Lists the files that match a pattern, sorted, in the arena. 0 (possibly none), or -errno. */
    int (*match)(void *owner, struct arena *arena, struct str pattern, struct str **out_paths, size_t *out_count);
    void *owner;
};

/* The file system. */
extern const struct nginx_files nginx_files_of_system;

struct nginx_fault {
    struct nginx_place place;
    struct str message;             /* in the arena */
};

/*
 * Reads `path` with its includes, relative to its directory. 0 with the root, a block without a name; -ENOMEM; or
 * -EINVAL with *out_fault, the first syntax error. An `include` of a missing file stays in the tree as a directive.
 * Everything is in `arena`.
 */
MUST_CHECK int nginx_tree_read(struct arena *arena, const struct nginx_files *files, struct str path,
                               struct nginx_directive **out_root, struct nginx_fault *out_fault);

/* The first directive of that name in the block itself, or NULL. */
struct nginx_directive *nginx_tree_find(const struct nginx_directive *block, struct str name);

/* "name word word", without its block. data NULL: out of memory. */
struct str nginx_tree_line(struct arena *arena, const struct nginx_directive *directive);

/* The directory of a path: "/etc/nginx" of "/etc/nginx/nginx.conf", "." of "nginx.conf". */
struct str nginx_directory(struct str path);

#endif
