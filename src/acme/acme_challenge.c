/*
 * Stores, reads and removes challenges; the hook of the client.
 */
#include "acme/acme_challenge.h"

#include "acme/acme.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SPACE = LIMIT_ACME_TOKEN + 8 };

/* Writes the file name of a token. Returns a descriptor of the folder, or -errno. */
static int open_folder(const char *folder, struct str token, char name[PATH_SPACE])
{
    int fd;

    if (!acme_token_valid(token))
        return -EINVAL;
    snprintf(name, PATH_SPACE, STR_FMT, STR_ARG(token));
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

int acme_challenge_store(const char *folder, struct str token, struct str authorization)
{
    char name[PATH_SPACE], temporary[PATH_SPACE];
    int fd, error;

    if (!acme_authorization_valid(authorization, token))
        return -EINVAL;
    fd = open_folder(folder, token, name);
    if (fd < 0)
        return fd;
    snprintf(temporary, sizeof(temporary), "." STR_FMT, STR_ARG(token)); /* not a token: workers do not send it */
    error = write_file(fd, temporary, authorization);
    if (error == 0 && renameat(fd, temporary, fd, name) < 0)
        error = -errno;
    if (error < 0)
        unlinkat(fd, temporary, 0);
    close(fd);
    return error;
}

int acme_challenge_remove(const char *folder, struct str token)
{
    char name[PATH_SPACE];
    int fd = open_folder(folder, token, name), error = 0;

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

ssize_t acme_challenge_read(const char *folder, struct str token, char *into, size_t size)
{
    char name[PATH_SPACE];
    ssize_t length;
    int fd = open_folder(folder, token, name);

    if (fd < 0)
        return fd;
    length = read_file(fd, name, into, size);
    close(fd);
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

static int hook_failed(const char *name, const char *token, int error)
{
    if (error < 0)
        fprintf(stderr, "%s: the challenge \"%.*s\" failed (%d: %s)\n", name, LIMIT_ACME_TOKEN, token, -error,
                strerror(-error));
    return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int acme_hook(int argc, char *const *argv)
{
    const char *folder = getenv(ACME_CHALLENGES);

    if (argc != 6 || !folder) {
        fprintf(stderr, "%s is called by the ACME client: METHOD TYPE IDENTIFIER TOKEN AUTHORIZATION, with %s\n",
                argv[0], ACME_CHALLENGES);
        return EXIT_FAILURE;
    }
    if (strcmp(argv[2], "http-01") != 0)
        return EXIT_FAILURE;
    if (strcmp(argv[1], "begin") == 0)
        return hook_failed(argv[0], argv[4], acme_challenge_store(folder, str_from(argv[4]), str_from(argv[5])));
    if (strcmp(argv[1], "done") == 0 || strcmp(argv[1], "failed") == 0)
        return hook_failed(argv[0], argv[4], acme_challenge_remove(folder, str_from(argv[4])));
    fprintf(stderr, "%s: unknown method \"%.16s\"\n", argv[0], argv[1]);
    return EXIT_FAILURE;
}
