/*
 * Reads a directory beneath a root, for listings. Waits for the disk: call it on helper threads only.
 */
#ifndef IO_DIRECTORY_H
#define IO_DIRECTORY_H

#include "io/file_cache.h"

struct directory_entry {
    struct str name;
    bool is_directory;              /* false: regular file */
    uint64_t size;
    int64_t modified_s;
};

struct directory {
    struct directory_entry *items;  /* unordered */
    size_t count;
    bool truncated;                 /* the directory has more entries than `items` */
    char *names;                    /* memory of the items' names */
};

/*
 * Reads `path` ("" or "a/b/") beneath `root`, opened as files are. Omits names that begin with a dot, links that
 * `symlinks` rejects, other file types, and everything past `max` items. Returns 0 or -errno. After success the caller
 * calls directory_finish.
 */
MUST_CHECK int directory_read(const struct root_directories *roots, const char *root, const char *path,
                              enum symlinks symlinks,
                           size_t max, struct directory *out_directory);
/* Frees the items. Accepts a zeroed struct. */
void directory_finish(struct directory *directory);

#endif
