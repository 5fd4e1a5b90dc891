/*
 * The pid file and its lock (flock(2)). The kernel releases the lock when the last descriptor is closed, also after
 * a crash; workers close their copies, so only the master holds it.
 */
#include "master/pid_file.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the number in the file; -EINVAL if there is none. */
static long read_number(int fd)
{
    char text[32];
    ssize_t length = pread(fd, text, sizeof(text), 0);
    uint64_t number;

    if (length < 0)
        return -errno;
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    if (str_to_u64(str_of(text, (size_t)length), &number) < 0 || number == 0 || number > INT32_MAX)
        return -EINVAL;
    return (long)number;
}

long pid_file_owner(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    long number;

    if (fd < 0)
        return -errno;
    number = read_number(fd);
    /* If the lock can be acquired, the file is stale. */
    if (number > 0 && flock(fd, LOCK_SH | LOCK_NB) == 0)
        number = 0;
    close(fd);
    return number;
}

static int write_temporary_file(struct pid_file *file, const char *beside)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    int fd;

    unlink(beside);
    fd = open(beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || write(fd, text, (size_t)length) != length ||
        rename(beside, file->path) < 0) {
        int error = errno ? -errno : -EIO;

        unlink(beside);
        close(fd);
        return error;
    }
    file->fd = fd;
    return 0;
}

int pid_file_write(struct pid_file *file, const char *path)
{
    char beside[sizeof(file->path) + 32];
    struct stat status;
    int result;

    file->fd = -1;
    if (strlen(path) >= sizeof(file->path))
        return -ENAMETOOLONG;
    if (pid_file_owner(path) > 0)
        return -EEXIST;
    /* rename() would replace a device: only a regular file may exist at the path. */
    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return -EINVAL;
    snprintf(file->path, sizeof(file->path), "%s", path);
    snprintf(beside, sizeof(beside), "%s.%ld", path, (long)getpid());
    result = write_temporary_file(file, beside);
    if (result < 0)
        file->path[0] = 0;
    return result;
}

/* Changes the times of the file first: `-s upgrade` compares them. */
static int rename_to(struct pid_file *file, const char *path)
{
    if (futimens(file->fd, NULL) < 0 || rename(file->path, path) < 0)
        return -errno;
    memmove(file->path, path, strlen(path) + 1);
    return 0;
}

int pid_file_set_aside(struct pid_file *file)
{
    char path[sizeof(file->path) + sizeof(PID_FILE_OLD)];

    if (!file->path[0])
        return 0;
    snprintf(path, sizeof(path), "%s" PID_FILE_OLD, file->path);
    return strlen(path) < sizeof(file->path) ? rename_to(file, path) : -ENAMETOOLONG;
}

int pid_file_restore(struct pid_file *file)
{
    size_t length = strlen(file->path), suffix = sizeof(PID_FILE_OLD) - 1;
    char path[sizeof(file->path)];

    if (length <= suffix || strcmp(file->path + length - suffix, PID_FILE_OLD) != 0)
        return 0;
    snprintf(path, sizeof(path), "%.*s", (int)(length - suffix), file->path);
    return rename_to(file, path);
}

void pid_file_remove(struct pid_file *file)
{
    struct stat opened;
    struct stat there;

    if (!file->path[0])
        return;
    if (fstat(file->fd, &opened) == 0 && lstat(file->path, &there) == 0 && opened.st_ino == there.st_ino &&
        opened.st_dev == there.st_dev)
        unlink(file->path);
    close(file->fd);
    *file = (struct pid_file){.fd = -1};
}

void pid_file_close(struct pid_file *file)
{
    if (file->fd > STDERR_FILENO)
        close(file->fd);
    *file = (struct pid_file){.fd = -1};
}
