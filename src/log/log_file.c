/*
 * Opens logs so that no write blocks. An inherited regular file is used as it is; inherited pipes and terminals are
 * opened again with O_NONBLOCK.
 */
#include "log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Opens a standard stream. A regular file keeps its shared offset, so that later output of the shell does not overwrite
 * these lines.
 */
static int open_standard(int standard)
{
    char path[32];
    struct stat status;
    int fd;

    if (fstat(standard, &status) < 0)
        return -errno;
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", standard);
        fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    fd = fcntl(standard, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

int log_file_open(struct str path)
{
    char name[PATH_MAX];
    struct stat status;
    int access = O_WRONLY;
    int fd;

    if (str_equal(path, STR("stderr")))
        return open_standard(STDERR_FILENO);
    if (str_equal(path, STR("stdout")))
        return open_standard(STDOUT_FILENO);
    if (path.length >= sizeof(name) || memchr(path.data, 0, path.length))
        return -ENAMETOOLONG;
    memcpy(name, path.data, path.length);
    name[path.length] = 0;
    /* open(2) of a FIFO without a reader fails with O_WRONLY. Linux allows O_RDWR: the FIFO then fills up. */
    if (stat(name, &status) == 0 && S_ISFIFO(status.st_mode))
        access = O_RDWR;
    fd = open(name, access | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd;
}

/* True if a write will not block. A description shared with other processes may lack O_NONBLOCK: poll(2) decides. */
static bool file_has_room(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    int mode = fcntl(fd, F_GETFL);

    if (mode < 0 || (mode & O_NONBLOCK))
        return mode >= 0;
    return poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT);
}

bool log_file_write(int fd, struct str bytes)
{
    ssize_t written;

    if (fd < 0)
        return false;
    do {
        written = send(fd, bytes.data, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (written < 0 && errno == EINTR);
    if (written >= 0 || errno != ENOTSOCK)
        return written == (ssize_t)bytes.length;
    if (!file_has_room(fd))
        return false;
    do {
        written = write(fd, bytes.data, bytes.length);
    } while (written < 0 && errno == EINTR);
    return written == (ssize_t)bytes.length;
}
