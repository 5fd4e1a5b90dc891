/*
 * Opens one file beneath a root without the cache: on the loop's thread if nothing blocks, or on a helper thread.
 * Private to io/.
 */
#ifndef IO_FILE_OPEN_H
#define IO_FILE_OPEN_H

#include "io/file_cache.h"

/* Result of an open; the owner closes fd and frees content. */
struct opened_file {
    int error;
    int fd;                         /* -1 for directories and errors */
    struct stat stat;
    char *content;                  /* stat.st_size bytes, or NULL */
};

/*
 * Opens `path` beneath the directory descriptor `root`. With `walk` true, openat2(2) is not used. Returns 0 and fills
 * in *out_file, also if the open failed (`error`); -EAGAIN if `wait` is false and the disk must be read; or -ENOSYS if
 * openat2 is missing and `walk` must be set.
 */
MUST_CHECK int file_open(int root, const char *path, enum symlinks symlinks, bool wait, bool walk,
                         struct opened_file *out_file);

/*
 * Opens the directory `root` with O_PATH. If access is denied, duplicates its descriptor in `roots` (may be NULL).
 * Returns a descriptor or -errno; -EAGAIN only without `wait`.
 */
MUST_CHECK int root_open(const char *root, const struct root_directories *roots, bool wait);

/*
 * Opens a path component by component. Follows links as `symlinks` allows; with `beneath` never outside the root.
 * Returns an O_RDONLY descriptor of a regular file, 0 for a directory (*out_directory is true), or -errno. *out_stat
 * describes the file.
 */
MUST_CHECK int file_walk(int root, const char *path, enum symlinks symlinks, bool beneath, struct stat *out_stat,
                         bool *out_directory);

/*
 * Opens the directory `path` beneath `root` for reading by the same rules. Waits for the disk. Returns a descriptor or
 * -errno. directory_walk resolves the path component by component.
 */
MUST_CHECK int directory_open(int root, const char *path, enum symlinks symlinks);
MUST_CHECK int directory_walk(int root, const char *path, enum symlinks symlinks, bool beneath);

/* Closes the descriptor, if any, and frees the contents. */
void opened_file_close(struct opened_file *file);

/* True if the last change is so long before `wall_ms` that another change would alter the timestamps. */
bool file_is_unchanging(const struct stat *stat, int64_t wall_ms);
/* True if both describe the same unchanged file. */
bool file_same(const struct stat *a, const struct stat *b);

/* Flags of every open here. O_NONBLOCK: a FIFO or a device must not block before it is rejected. */
#define FILE_OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#endif
