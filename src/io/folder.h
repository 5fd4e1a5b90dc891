/*
 * Reads a directory beneath a root, for listings. Blocks on the disk: call it on helper threads only.
 */
#ifndef IO_FOLDER_H
#define IO_FOLDER_H

#include "io/file_cache.h"

struct folder_item {
    struct str name;
    bool folder;                    /* true: directory; false: regular file */
    uint64_t size;
    int64_t modified_s;
};

struct folder {
    struct folder_item *items;      /* unordered */
    size_t count;
    bool cut;                       /* the directory has more */
    char *names;                    /* memory of the items' names */
};

/*
 * Reads `path` ("" or "a/b/") beneath `root`, opened as files are. Omits names that begin with a dot, links that
 * `symlinks` refuses, other file types, and everything past `most` items. 0 or -errno; the caller finishes it.
 */
MUST_CHECK int folder_read(const struct root_directories *granted, const char *root, const char *path, enum symlinks symlinks,
                           size_t most, struct folder *out_folder);
/* Frees the items. Accepts a zeroed struct. */
void folder_finish(struct folder *folder);

#endif
