/*
 * Opens a directory by the same rules as files, and examines each entry. A link is resolved by a walk from the root,
 * since its target may be outside this directory.
 */
#include "io/directory.h"

#include "base/buffer.h"
#include "io/file_open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct reading {
    int root;
    const char *path;
    enum symlinks symlinks;
    size_t max;
    struct buffer items; /* struct directory_entry; names are offsets until the buffer stops growing */
    struct buffer names;
    size_t count;
    bool truncated;
};

/* Resolves a link's target, if the link may be followed. */
static bool follow_link(const struct reading *reading, const char *name, struct stat *out)
{
    struct buffer path = {0};
    bool directory = false;
    int fd = -ENOMEM;

    if (buffer_printf(&path, "%s/%s", *reading->path ? reading->path : ".", name) == 0 &&
        buffer_append(&path, str_of("", 1)) == 0)
        fd = file_walk(reading->root, path.data, reading->symlinks, reading->symlinks == SYMLINKS_BENEATH,
                       out, &directory);
    buffer_finish(&path);
    if (fd > 0 && !directory)
        close(fd);
    return fd >= 0;
}

static bool stat_item(const struct reading *reading, int directory, const char *name, struct stat *out)
{
    if (fstatat(directory, name, out, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(out->st_mode) && !follow_link(reading, name, out))
        return false;
    return S_ISREG(out->st_mode) || S_ISDIR(out->st_mode);
}

static int add_item(struct reading *reading, const char *name, const struct stat *stat)
{
    struct directory_entry item = {
        .name = {NULL, strlen(name)},
        .is_directory = S_ISDIR(stat->st_mode),
        .size = S_ISDIR(stat->st_mode) ? 0 : (uint64_t)stat->st_size,
        .modified_s = stat->st_mtim.tv_sec,
    };

    if (buffer_append(&reading->items, str_of((const char *)&item, sizeof(item))) < 0 ||
        buffer_append(&reading->names, item.name.length ? str_of(name, item.name.length) : STR("")) < 0)
        return -ENOMEM;
    reading->count++;
    return 0;
}

static int read_items(struct reading *reading, DIR *directory)
{
    const struct dirent *entry;
    struct stat stat;

    while (errno = 0, (entry = readdir(directory))) {
        if (entry->d_name[0] == '.' || !stat_item(reading, dirfd(directory), entry->d_name, &stat))
            continue;
        if (reading->count == reading->max) {
            reading->truncated = true;
            return 0;
        }
        if (add_item(reading, entry->d_name, &stat) < 0)
            return -ENOMEM;
    }
    return -errno;
}

static int read_directory(struct reading *reading)
{
    int fd = directory_open(reading->root, reading->path, reading->symlinks);
    DIR *directory;
    int error;

    if (fd < 0)
        return fd;
    directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        return -ENOMEM;
    }
    error = read_items(reading, directory);
    closedir(directory);
    return error;
}

/* The name buffer no longer moves: converts offsets to pointers. */
static void build_directory(struct reading *reading, struct directory *out)
{
    const char *name = reading->names.data;

    *out = (struct directory){.items = (struct directory_entry *)(void *)reading->items.data,
                           .count = reading->count,
                           .truncated = reading->truncated,
                           .names = reading->names.data};
    for (size_t i = 0; i < out->count; i++) {
        out->items[i].name.data = name;
        name += out->items[i].name.length;
    }
}

int directory_read(const struct root_directories *roots, const char *root, const char *path, enum symlinks symlinks,
                size_t max, struct directory *out_directory)
{
    struct reading reading = {.path = path, .symlinks = symlinks, .max = max};
    int error;

    reading.root = root_open(root, roots, true);
    if (reading.root < 0)
        return reading.root;
    error = read_directory(&reading);
    close(reading.root);
    if (error < 0) {
        buffer_finish(&reading.items);
        buffer_finish(&reading.names);
        return error;
    }
    build_directory(&reading, out_directory);
    return 0;
}

void directory_finish(struct directory *directory)
{
    free(directory->items);
    free(directory->names);
    *directory = (struct directory){0};
}
