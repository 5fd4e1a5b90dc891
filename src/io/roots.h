/*
 * Root folders that were opened while the process still had the rights to reach
 * them: a site may lie below a folder that the worker's user may not enter (a checkout in
 * root's home), and is served all the same, because its root was named by the
 * administrator. Only the way to the root is granted: every file beneath it is opened with the worker's own rights.
 */
#ifndef IO_ROOTS_H
#define IO_ROOTS_H

#include "base/str.h"

/* Zero-initialised is valid: none. */
struct roots {
    struct root {
        struct str path;            /* not owned: the configuration's */
        int fd;                     /* O_PATH */
    } *items;
    size_t count;
};

/* Opens `path` (absolute) and keeps it; nothing happens where it cannot be opened or is there already. 0 or -ENOMEM. */
MUST_CHECK int roots_keep(struct roots *roots, struct str path);
/* The kept descriptor of `path`, or -ENOENT. It stays the roots' own. */
int roots_find(const struct roots *roots, struct str path);
void roots_finish(struct roots *roots);

#endif
