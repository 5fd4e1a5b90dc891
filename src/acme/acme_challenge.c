/*
 * Stores, reads and removes challenges.
 */
#include "acme/acme_challenge.h"

#include "acme/acme.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SPACE = NAME_MAX + 1 };

static int open_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int write_file(int folder, const char *name, struct str text)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    ssize_t written;
    int error = 0;

    if (fd < 0)
        return -errno;
    written = write(fd, text.data, text.length);
    if (written < 0 || fchmod(fd, 0644) < 0)
        error = -errno;
    else if ((size_t)written < text.length)
        error = -ENOSPC;
    close(fd);
    return error;
}

int acme_challenge_file_write(const char *folder, const char *name, struct str text)
{
    char temporary[NAME_SPACE];
    int fd, error;

    if (snprintf(temporary, sizeof(temporary), ".%s", name) >= NAME_SPACE)
        return -ENAMETOOLONG;
    fd = open_folder(folder);
    if (fd < 0)
        return fd;
    error = write_file(fd, temporary, text);
    if (error == 0 && renameat(fd, temporary, fd, name) < 0)
        error = -errno;
    if (error < 0)
        unlinkat(fd, temporary, 0);
    close(fd);
    return error;
}

int acme_challenge_file_remove(const char *folder, const char *name)
{
    int fd = open_folder(folder), error = 0;

    if (fd < 0)
        return fd;
    if (unlinkat(fd, name, 0) < 0 && errno != ENOENT)
        error = -errno;
    close(fd);
    return error;
}

/* Reads a file in `folder`, which is not a link or a device. Returns its length or -errno. */
static ssize_t read_file(int folder, const char *name, char *into, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat state;
    ssize_t length;

    if (fd < 0)
        return -errno;
    length = fstat(fd, &state) < 0 || !S_ISREG(state.st_mode) ? -EINVAL : read(fd, into, size);
    if (length == -1)
        length = -errno;
    close(fd);
    return length;
}

ssize_t acme_challenge_file_read(const char *folder, const char *name, char *into, size_t size)
{
    ssize_t length;
    int fd = open_folder(folder);

    if (fd < 0)
        return fd;
    length = read_file(fd, name, into, size);
    close(fd);
    return length;
}

/* Writes the file name of a token. A name that begins with a dot, as a temporary one does, is no token. */
static bool name_file(struct str token, char name[NAME_SPACE])
{
    snprintf(name, NAME_SPACE, STR_FMT, STR_ARG(token));
    return acme_token_valid(token);
}

int acme_challenge_store(const char *folder, struct str token, struct str authorization)
{
    char name[NAME_SPACE];

    if (!name_file(token, name) || !acme_authorization_valid(authorization, token))
        return -EINVAL;
    return acme_challenge_file_write(folder, name, authorization);
}

int acme_challenge_remove(const char *folder, struct str token)
{
    char name[NAME_SPACE];

    return name_file(token, name) ? acme_challenge_file_remove(folder, name) : -EINVAL;
}

ssize_t acme_challenge_read(const char *folder, struct str token, char *into, size_t size)
{
    char name[NAME_SPACE];
    ssize_t length = name_file(token, name) ? acme_challenge_file_read(folder, name, into, size) : -EINVAL;

    return length < 0 || acme_authorization_valid(str_of(into, (size_t)length), token) ? length : -EINVAL;
}

void acme_challenge_clear(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;

    while (directory && (entry = readdir(directory))) {
        if (entry->d_type != DT_DIR)
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    if (directory)
        closedir(directory);
}
