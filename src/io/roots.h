/*
 * Root directories opened before privileges are dropped. A site may lie below a directory that the worker's user may
 * not enter (a checkout in root's home); it is served because the administrator configured its root. Only the path
 * to the root is covered: files beneath it are opened with the worker's own rights.
 */
#ifndef IO_ROOTS_H
#define IO_ROOTS_H

#include "base/str.h"

/* A zeroed struct is valid and empty. */
struct roots {
    struct root {
        struct str path;            /* not owned: part of the configuration */
        int fd;                     /* O_PATH */
    } *items;
    size_t count;
};

/*
 * Opens `path` (absolute) and keeps the descriptor; no effect if it cannot be opened or is there already. 0 or
 * -ENOMEM.
 */
MUST_CHECK int roots_keep(struct roots *roots, struct str path);
/* The kept descriptor of `path`, still owned by roots, or -ENOENT. */
int roots_find(const struct roots *roots, struct str path);
void roots_finish(struct roots *roots);

#endif
