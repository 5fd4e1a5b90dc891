/*
 * An nginx configuration as a tree of directives, includes followed, each with its place and the comments around it.
 */
#ifndef IMPORT_NGINX_TREE_H
#define IMPORT_NGINX_TREE_H

#include "base/arena.h"

struct nginx_place {
    struct str file;                /* as the user would name it */
    unsigned line;
};

struct nginx_directive {
    struct str name;
    struct str *words;              /* what follows the name */
    size_t count;
    struct nginx_place place;
    struct str before;              /* comments above it, a line each; empty: none */
    struct str behind;              /* the comment behind it on its line */
    bool block;                     /* it has {}, which may be empty */
    struct str after;               /* a block: comments behind its last directive */
    struct nginx_directive *first, *last; /* a block: what stands in it */
    struct nginx_directive *next;
    bool dead;                      /* of the translator: nginx never comes to it */
    bool sets;                      /* of the translator: an `if` that becomes maps and `set` (import_set.c) */
};

/* Where files come from. */
struct nginx_files {
    /* The text of a file, into the arena. 0, -ENOMEM or another -errno. */
    int (*read)(void *owner, struct arena *arena, struct str path, struct str *out_text);
    /* The files that a pattern names, sorted, into the arena. 0 (perhaps with none), or -errno. */
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
 * Reads `path` with all that it includes, relative ones from its folder on. 0 with the root, a block without a name;
 * -ENOMEM; or -EINVAL with *out_fault: the first thing that is no such language. An `include` that names a file which
 * is not there stays in the tree as a directive. Everything lives in `arena`.
 */
MUST_CHECK int nginx_tree_read(struct arena *arena, const struct nginx_files *files, struct str path,
                               struct nginx_directive **out_root, struct nginx_fault *out_fault);

/* The first directive of that name directly in the block, or NULL. */
struct nginx_directive *nginx_tree_find(const struct nginx_directive *block, struct str name);

/* "name word word": as it would be written on a line, without its block. data NULL: out of memory. */
struct str nginx_tree_line(struct arena *arena, const struct nginx_directive *directive);

/* The folder of a path: "/etc/nginx" of "/etc/nginx/nginx.conf", "." of "nginx.conf". */
struct str nginx_folder(struct str path);

#endif
