/*
 * Opening one file beneath a root, without the cache: in the loop's own thread
 * where nothing must be waited for, or on a helper thread. Inside io only.
 */
#ifndef IO_FILE_OPEN_H
#define IO_FILE_OPEN_H

#include "io/file_cache.h"

/* What was opened; whoever has it closes fd and frees content. */
struct opened_file {
    int error;
    int fd;                         /* -1 for directories and errors */
    struct stat stat;
    char *content;                  /* stat.st_size bytes, or NULL */
};

/*
 * `path` beneath the directory `root` (a descriptor). With `wait` false nothing is done that could need a disk:
 * -EAGAIN then. With `walk` true openat2(2) is not used. 0 with *out_file filled, its own `error` included; or -EAGAIN;
 * or -ENOSYS where openat2 is missing and `walk` must be set.
 */
MUST_CHECK int file_open(int root, const char *path, enum symlinks symlinks, bool wait, bool walk,
                         struct opened_file *out_file);

/* The directory itself, by an O_PATH descriptor; where the way to it is denied, the one in `granted` (may be NULL). fd or -errno; -EAGAIN only without `wait`. */
MUST_CHECK int root_open(const char *root, const struct roots *granted, bool wait);

/*
 * The same by components, following links itself as far as `symlinks` allows, with `beneath` never out of the root.
 * *out_stat is what was found; the result is an O_RDONLY descriptor of a regular file, or 0 for a directory with
 * *out_directory true, or -errno.
 */
MUST_CHECK int file_walk(int root, const char *path, enum symlinks symlinks, bool beneath, struct stat *out_stat,
                         bool *out_directory);

/*
 * The folder `path` beneath `root`, opened for reading by the same rules, from a helper thread: fd or -errno. And the same by components.
 */
MUST_CHECK int folder_open(int root, const char *path, enum symlinks symlinks);
MUST_CHECK int folder_walk(int root, const char *path, enum symlinks symlinks, bool beneath);

/* Closes its descriptor, where it has one. */
void opened_file_drop(struct opened_file *file);

/* The file was last changed so long before `wall_ms` that another change would show in its times. */
bool file_settled(const struct stat *stat, int64_t wall_ms);
/* Nothing tells that the one is not the other, unchanged. */
bool file_same(const struct stat *a, const struct stat *b);

/* Of every open in this folder: O_NONBLOCK, since a FIFO or a device must not hold us up before it is refused. */
#define FILE_OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#endif
