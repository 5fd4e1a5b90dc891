/*
 * Resolves a path component by component with O_NOFOLLOW and follows links by their text: for kernels and sandboxes
 * without openat2(2), and for `if_not_owner`, which no system call supports. All directories of the path stay open, so
 * that ".." leads to the directory that the walk came from, despite concurrent renames. ".." in the first directory
 * (the root, or "/" after an absolute link) is allowed only if links may leave the root.
 */
#include "io/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEPTH_MAX 64
#define LINKS_MAX 40                /* the kernel's own limit */

/* The owner of a link, to be compared with the owner of its target when at most `rest` bytes of the path are left. */
struct owned_link {
    size_t rest;
    uid_t owner;
};

struct walk {
    enum symlinks symlinks;
    bool beneath;
    int root;                       /* not owned */
    int directories[DEPTH_MAX];     /* the first is the root, or the directory outside it where the walk restarted */
    int depth;
    char path[2 * PATH_MAX];        /* the unresolved rest, from `at` on */
    size_t at;
    int links;
    struct owned_link owned[LINKS_MAX];
    int owned_count;
};

static const char *rest_of(const struct walk *walk)
{
    return walk->path + walk->at;
}

/* Copies the next component to `name`; false at the end of the path. */
static bool next_component(struct walk *walk, char name[NAME_MAX + 1], int *out_error)
{
    size_t length;

    walk->at += strspn(rest_of(walk), "/");
    length = strcspn(rest_of(walk), "/");
    *out_error = length > NAME_MAX ? -ENAMETOOLONG : 0;
    if (length == 0 || length > NAME_MAX)
        return false;
    memcpy(name, rest_of(walk), length);
    name[length] = '\0';
    walk->at += length;
    return true;
}

static void leave_directory(struct walk *walk)
{
    int directory = walk->directories[--walk->depth];

    if (directory != walk->root)
        close(directory);
}

/* Starts again at a directory outside the root. */
static int restart_walk(struct walk *walk, int from, const char *name)
{
    int directory = openat(from, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0)
        return -errno;
    while (walk->depth > 0)
        leave_directory(walk);
    walk->directories[walk->depth++] = directory;
    return 0;
}

/* True for every link of /proc. Among them are the magic links of openat2(2), whose target differs from their text. */
static bool is_magic(int link)
{
    struct statfs system;

    return fstatfs(link, &system) < 0 || system.f_type == PROC_SUPER_MAGIC;
}

/* Inserts the link's text before the unresolved rest. */
static int follow_link(struct walk *walk, int link, const struct stat *stat)
{
    char target[PATH_MAX];
    size_t rest = strlen(rest_of(walk));
    ssize_t length;

    if (walk->symlinks == SYMLINKS_NONE || walk->links == LINKS_MAX || is_magic(link))
        return -ELOOP;
    length = readlinkat(link, "", target, sizeof(target));
    if (length <= 0)
        return length < 0 ? -errno : -ENOENT;
    if (target[0] == '/' && walk->beneath)
        return -EXDEV;
    if ((size_t)length == sizeof(target) || (size_t)length + rest + 1 > sizeof(walk->path))
        return -ENAMETOOLONG;
    memmove(walk->path + length, rest_of(walk), rest + 1);
    memcpy(walk->path, target, (size_t)length);
    walk->at = 0;
    walk->links++;
    walk->owned[walk->owned_count++] = (struct owned_link){rest, stat->st_uid};
    return target[0] == '/' ? restart_walk(walk, AT_FDCWD, "/") : 0;
}

/* Compares the owners of links whose target is reached (`stat`) with the owner of the target. */
static bool owners_agree(struct walk *walk, const struct stat *stat)
{
    size_t rest = strlen(rest_of(walk));

    while (walk->owned_count > 0 && walk->owned[walk->owned_count - 1].rest >= rest) {
        walk->owned_count--;
        if (walk->symlinks == SYMLINKS_OWNER && walk->owned[walk->owned_count].owner != stat->st_uid)
            return false;
    }
    return true;
}

/* Returns the current directory as the result; compares owners, because a link may have led there. */
static int current_directory(struct walk *walk, struct stat *stat)
{
    if (fstat(walk->directories[walk->depth - 1], stat) < 0)
        return -errno;
    return owners_agree(walk, stat) ? 0 : -ELOOP;
}

static int step_up(struct walk *walk, struct stat *stat)
{
    int error = 0;

    if (walk->depth > 1)
        leave_directory(walk);
    else if (walk->beneath)
        error = -EXDEV;
    else
        error = restart_walk(walk, walk->directories[0], "..");
    return error < 0 ? error : current_directory(walk, stat);
}

static int step_down(struct walk *walk, int directory)
{
    if (walk->depth == DEPTH_MAX)
        return -ENAMETOOLONG;
    walk->directories[walk->depth++] = directory;
    return 0;
}

/* Opens the file that was examined by an O_PATH descriptor. -ENOENT if the name now refers to another file. */
static int open_seen(int directory, const char *name, const struct stat *seen)
{
    struct stat now;
    int fd = openat(directory, name, FILE_OPEN_FLAGS | O_NOFOLLOW);

    if (fd < 0)
        return -errno;
    if (fstat(fd, &now) == 0 && now.st_ino == seen->st_ino && now.st_dev == seen->st_dev)
        return fd;
    close(fd);
    return -ENOENT;
}

/* Resolves one component other than "." and "..". 1: continue; a descriptor in *out_fd: found; or -errno. */
static int walk_component(struct walk *walk, const char *name, struct stat *stat, int *out_fd)
{
    int directory = walk->directories[walk->depth - 1];
    int seen = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int result;

    if (seen < 0)
        return -errno;
    if (fstat(seen, stat) < 0)
        result = -errno;
    else if (S_ISLNK(stat->st_mode))
        result = follow_link(walk, seen, stat);
    else if (!owners_agree(walk, stat))
        result = -ELOOP;
    else if (S_ISDIR(stat->st_mode))
        result = step_down(walk, seen);
    else if (*rest_of(walk) != '\0')
        result = -ENOTDIR;
    else if (!S_ISREG(stat->st_mode))
        result = -EACCES;
    else
        result = *out_fd = open_seen(directory, name, stat);
    if (result < 0 || !S_ISDIR(stat->st_mode))
        close(seen);
    return result < 0 ? result : 1;
}

static int walk_components(struct walk *walk, struct stat *stat, bool *out_directory)
{
    char name[NAME_MAX + 1];
    int fd = -1;
    int error;

    while (fd < 0 && next_component(walk, name, &error)) {
        int result;

        if (strcmp(name, "..") == 0)
            result = step_up(walk, stat);
        else if (strcmp(name, ".") == 0)
            result = current_directory(walk, stat);
        else
            result = walk_component(walk, name, stat, &fd);
        if (result < 0)
            return result;
    }
    if (fd >= 0 || error < 0)
        return fd >= 0 ? fd : error;
    *out_directory = true;
    return current_directory(walk, stat);
}

/* Starts at the root with the whole path. */
static int walk_begin(struct walk *walk, int root, const char *path, enum symlinks symlinks, bool beneath)
{
    walk->symlinks = symlinks;
    walk->beneath = beneath;
    walk->root = walk->directories[0] = root;
    walk->depth = 1;
    walk->at = 0;
    walk->links = walk->owned_count = 0;
    if (path[0] == '/')
        return -EXDEV;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(walk->path, path, strlen(path) + 1);
    return 0;
}

static void walk_end(struct walk *walk)
{
    while (walk->depth > 0)
        leave_directory(walk);
}

int file_walk(int root, const char *path, enum symlinks symlinks, bool beneath, struct stat *out_stat,
              bool *out_directory)
{
    struct walk walk;
    int result = walk_begin(&walk, root, path, symlinks, beneath);

    *out_directory = false;
    if (result < 0)
        return result;
    result = walk_components(&walk, out_stat, out_directory);
    walk_end(&walk);
    return result;
}

int directory_walk(int root, const char *path, enum symlinks symlinks, bool beneath)
{
    struct walk walk;
    struct stat stat;
    bool directory = false;
    int result = walk_begin(&walk, root, path, symlinks, beneath);

    if (result < 0)
        return result;
    result = walk_components(&walk, &stat, &directory);
    if (directory && result >= 0) {
        result = openat(walk.directories[walk.depth - 1], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        result = result < 0 ? -errno : result;
    } else if (result >= 0) {
        close(result);
        result = -ENOTDIR;
    }
    walk_end(&walk);
    return result;
}
