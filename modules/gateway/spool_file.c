/*
 * A temporary file: O_TMPFILE, or on file systems without it a named file that is unlinked at once, so that no
 * file remains after a crash.
 */
#include "spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int make_named(const char *directory)
{
    char name[4096];
    int fd;

    if (snprintf(name, sizeof(name), "%s/sluice-XXXXXX", directory) >= (int)sizeof(name))
        return -ENAMETOOLONG;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)unlink(name);
    return fd;
}

/* Kernels and file systems without O_TMPFILE also return EISDIR and ENOENT (open(2)). */
static int open_temporary(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
    return errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ? make_named(directory) : -errno;
}

static void skip_written(struct iovec **parts, unsigned *count, size_t written)
{
    while (written > 0 && written >= (*parts)->iov_len) {
        written -= (*parts)->iov_len;
        (*parts)++;
        (*count)--;
    }
    if (written > 0) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + written;
        (*parts)->iov_len -= written;
    }
}

static int write_parts(struct spool_file *file)
{
    struct iovec *parts = file->parts;
    unsigned count = file->count;
    size_t whole = 0;

    while (count > 0) {
        ssize_t result = pwritev(file->fd, parts, (int)count, (off_t)(file->end + whole));

        if (result < 0 && errno == EINTR)
            continue;
        if (result <= 0)
            return whole > 0 ? (int)whole : result < 0 ? -errno : -EIO;
        whole += (size_t)result;
        skip_written(&parts, &count, (size_t)result);
    }
    return (int)whole;
}

int spool_file_write(void *argument)
{
    struct spool_file *file = argument;

    if (file->fd < 0) {
        int fd = open_temporary(file->directory);

        if (fd < 0)
            return fd;
        file->fd = fd;
    }
    return write_parts(file);
}

static ssize_t read_once(const struct spool_file *file, int flags)
{
    ssize_t result;

    do {
        result = preadv2(file->fetch_fd, &file->into, 1, (off_t)file->fetch_at, flags);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

int spool_file_fetch(void *argument)
{
    return (int)read_once(argument, 0);
}

int spool_file_peek(const struct spool_file *file)
{
    ssize_t result = read_once(file, RWF_NOWAIT);

    /*
     * Without RWF_NOWAIT the pages are in memory (tmpfs before Linux 6.6), or their state cannot be determined.
     */
    if (result == -EOPNOTSUPP || result == -ENOSYS)
        result = read_once(file, 0);
    return (int)result;
}

int spool_file_close(void *argument)
{
    struct spool_file *file = argument;

    (void)close(file->fd);
    file->fd = -1;
    return 0;
}
