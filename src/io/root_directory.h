/*
 * Root directories that are opened before privileges are dropped. A site may be below a directory that the worker's
 * user may not enter (for example root's home): the open descriptor gives access to the configured root itself. Files
 * beneath it are opened with the permissions of the worker.
 */
#ifndef IO_ROOT_DIRECTORY_H
#define IO_ROOT_DIRECTORY_H

#include "base/str.h"

/* A zeroed struct is valid and empty. */
struct root_directories {
    struct root_directory {
        struct str path;            /* not owned: part of the configuration */
        int fd;                     /* O_PATH */
    } *items;
    size_t count;
};

/*
 * Opens `path` (absolute) and keeps the descriptor; no effect if it cannot be opened or is there already. 0 or
 * -ENOMEM.
 */
MUST_CHECK int root_directories_open(struct root_directories *roots, struct str path);
/* The kept descriptor of `path`, still owned by roots, or -ENOENT. */
int root_directories_find(const struct root_directories *roots, struct str path);
/* Closes the descriptors. Accepts a zeroed struct. */
void root_directories_close(struct root_directories *roots);

#endif
