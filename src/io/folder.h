/*
 * What is in a folder beneath a root: for listings. It waits for the disk: helper threads alone call it.
 */
#ifndef IO_FOLDER_H
#define IO_FOLDER_H

#include "io/file_cache.h"

struct folder_item {
    struct str name;
    bool folder;                    /* else a regular file */
    uint64_t size;
    int64_t modified_s;
};

struct folder {
    struct folder_item *items;      /* in no order */
    size_t count;
    bool cut;                       /* there are more */
    char *names;                    /* what the items' names point into */
};

/*
 * Reads `path` ("" or "a/b/") beneath `root`, opened as files are; names that begin with a dot, links that `symlinks` refuses and
 * what is neither a file nor a folder are left out, and so is all past `most` items. 0 or -errno; the caller finishes it.
 */
MUST_CHECK int folder_read(const struct roots *granted, const char *root, const char *path, enum symlinks symlinks,
                           size_t most, struct folder *out_folder);
/* Accepts a zeroed one. */
void folder_finish(struct folder *folder);

#endif
