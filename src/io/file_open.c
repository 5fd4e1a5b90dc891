/*
 * Opens by openat2(2) beneath a root, checks for a regular file or a directory, and reads small files into memory.
 */
#include "io/file_open.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One and a half times the coarsest timestamp granularity of file systems (2 s of FAT). */
#define SETTLED_MS 3000

/* Retries after EAGAIN: a concurrent rename prevented the kernel from checking "..". */
#define OPEN_RETRIES 8

static int open_how(int directory, const char *path, uint64_t flags, uint64_t resolve, bool wait)
{
    struct open_how how = {.flags = flags, .resolve = resolve | (wait ? 0 : RESOLVE_CACHED)};
    long fd;

    for (int i = 0; i < OPEN_RETRIES; i++) {
        fd = syscall(SYS_openat2, directory, path, &how, sizeof(how));
        if (fd >= 0)
            return (int)fd;
        if (errno != EINTR && !(errno == EAGAIN && wait))
            break;
    }
    if (errno == EINVAL && !wait) /* before 5.12 RESOLVE_CACHED is unknown: a helper thread opens the file */
        return -EAGAIN;
    return errno == EPERM ? -ENOSYS : -errno; /* sandboxes answer unknown calls with EPERM */
}

static int open_known_root(const struct root_directories *roots, const char *root)
{
    int granted_fd = roots ? root_directories_find(roots, str_from(root)) : -ENOENT;
    int fd = granted_fd < 0 ? -1 : fcntl(granted_fd, F_DUPFD_CLOEXEC, 0);

    if (granted_fd < 0)
        return -EACCES;
    return fd < 0 ? -errno : fd;
}

int root_open(const char *root, const struct root_directories *roots, bool wait)
{
    int fd = open_how(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, wait);

    if (fd == -ENOSYS) {
        fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            fd = -errno;
    }
    return fd == -EACCES ? open_known_root(roots, root) : fd;
}

/* Examines a path that cannot be opened for reading: such a directory is valid, for redirects and index files. */
static int open_unreadable(int root, const char *path, uint64_t resolve, bool wait, struct opened_file *file)
{
    int fd = open_how(root, path, O_PATH | O_CLOEXEC, resolve, wait);

    if (fd < 0)
        return fd == -EAGAIN ? -EAGAIN : -EACCES;
    file->error = -EACCES;
    if (fstat(fd, &file->stat) == 0 && S_ISDIR(file->stat.st_mode))
        file->error = 0;
    close(fd);
    return file->error;
}

/* True if links must not leave the root: by the policy, or because the path has "..", which a client may control. */
static bool stays_beneath(enum symlinks symlinks, const char *path)
{
    size_t length;

    if (symlinks == SYMLINKS_BENEATH || symlinks == SYMLINKS_NONE || *path == '/')
        return true;
    for (; *path; path += length) {
        path += strspn(path, "/");
        length = strcspn(path, "/");
        if (length == 2 && path[0] == '.' && path[1] == '.')
            return true;
    }
    return false;
}

static int open_by_kernel(int root, const char *path, enum symlinks symlinks, bool wait, struct opened_file *file)
{
    uint64_t resolve = RESOLVE_NO_MAGICLINKS | (stays_beneath(symlinks, path) ? RESOLVE_BENEATH : 0);
    int fd;

    if (symlinks == SYMLINKS_NONE)
        resolve |= RESOLVE_NO_SYMLINKS;
    fd = open_how(root, path, FILE_OPEN_FLAGS, resolve, wait);
    if (fd == -EACCES)
        return open_unreadable(root, path, resolve, wait, file);
    if (fd < 0)
        return fd;
    if (fstat(fd, &file->stat) < 0) {
        int error = -errno;

        close(fd);
        return error;
    }
    file->fd = fd;
    return 0;
}

static int open_by_walk(int root, const char *path, enum symlinks symlinks, bool wait, struct opened_file *file)
{
    bool directory;
    int fd;

    if (!wait)
        return -EAGAIN;
    fd = file_walk(root, path, symlinks, stays_beneath(symlinks, path), &file->stat, &directory);
    if (fd < 0)
        return fd;
    file->fd = directory ? -1 : fd;
    return 0;
}

static ssize_t read_whole_content(int fd, char *into, size_t length, bool wait)
{
    ssize_t count;

    if (!wait) {
        count = loop_read_cached(fd, 0, &(struct iovec){into, length}, 1);
        return count >= 0 && (size_t)count < length ? -EAGAIN : count; /* the rest may not be in memory */
    }
    do {
        count = pread(fd, into, length, 0);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

/*
 * Reads the contents of a small file. -EAGAIN: they are not in memory. 0 without contents if the length differs from
 * stat's: the file is being changed, and is read when it is sent.
 */
static int read_content(struct opened_file *file, bool wait)
{
    size_t length = (size_t)file->stat.st_size;
    char *content;
    ssize_t count;

    if (file->stat.st_size <= 0 || file->stat.st_size > LIMIT_FILE_CACHE_CONTENT)
        return 0;
    content = malloc(length);
    if (!content)
        return 0;
    count = read_whole_content(file->fd, content, length, wait);
    if (count == (ssize_t)length)
        file->content = content;
    else
        free(content);
    return count == -EAGAIN ? -EAGAIN : 0;
}

/* Closes the descriptor of a directory, and rejects other types than regular files and directories. */
static void check_kind(struct opened_file *file)
{
    if (S_ISREG(file->stat.st_mode))
        return;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    if (!S_ISDIR(file->stat.st_mode))
        file->error = -EACCES;
}

int file_open(int root, const char *path, enum symlinks symlinks, bool wait, bool walk, struct opened_file *out_file)
{
    struct opened_file file = {.fd = -1};
    int error;

    if (*path == '\0')
        path = ".";
    if (walk || symlinks == SYMLINKS_OWNER)
        error = open_by_walk(root, path, symlinks, wait, &file);
    else
        error = open_by_kernel(root, path, symlinks, wait, &file);
    if (error == -EAGAIN || error == -ENOSYS)
        return error;
    file.error = error == -ENXIO ? -EACCES : error; /* ENXIO: a socket */
    if (error == 0)
        check_kind(&file);
    if (file.fd >= 0 && read_content(&file, wait) == -EAGAIN) {
        close(file.fd);
        return -EAGAIN;
    }
    *out_file = file;
    return 0;
}

int directory_open(int root, const char *path, enum symlinks symlinks)
{
    uint64_t resolve = RESOLVE_NO_MAGICLINKS | (stays_beneath(symlinks, path) ? RESOLVE_BENEATH : 0) |
                       (symlinks == SYMLINKS_NONE ? RESOLVE_NO_SYMLINKS : 0);
    int fd = -ENOSYS;

    if (*path == '\0')
        path = ".";
    if (symlinks != SYMLINKS_OWNER)
        fd = open_how(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, resolve, true);
    return fd == -ENOSYS ? directory_walk(root, path, symlinks, stays_beneath(symlinks, path)) : fd;
}

void opened_file_close(struct opened_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->content);
}

bool file_is_unchanging(const struct stat *stat, int64_t wall_ms)
{
    int64_t changed_s = stat->st_mtim.tv_sec > stat->st_ctim.tv_sec ? stat->st_mtim.tv_sec : stat->st_ctim.tv_sec;

    return wall_ms - changed_s * 1000 > SETTLED_MS;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}
