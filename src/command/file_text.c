/*
 * Reading of whole files, and the child process diff: see file_text.h.
 */
#include "command/file_text.h"

#include "base/limits.h"
#include "base/memory_file.h"
#include "base/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int file_text_read(const char *path, struct buffer *out, struct stat *out_status)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                    : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int error = fd < 0 || fstat(fd, out_status) < 0 ? -errno : 0;
    ssize_t got = 1;

    while (error == 0 && got > 0 && out->length <= LIMIT_CONF_FILE) {
        error = buffer_reserve(out, 65536);
        got = error == 0 ? read(fd, out->data + out->length, 65536) : 0;
        if (got < 0)
            error = -errno;
        else
            out->length += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return error;
}

/* Copies a text into a memory file, which diff(1) reads. Returns a descriptor or -errno. */
static int create_memory_file(struct str text)
{
    int fd = memory_file_create("sluice-diff", 0);
    int error = fd < 0 ? -errno : write_all(fd, text);

    if (fd >= 0 && error < 0)
        close(fd);
    return error < 0 ? error : fd;
}

/* Runs diff(1) on the two files with this process's output. Returns its exit status, or -errno. */
static int diff_run(const char *old_label, int old_fd, const char *new_label, int new_fd)
{
    char old[32], new[32];
    const char *const arguments[] = {"diff", "-u", "--label", old_label, "--label", new_label, old, new, NULL};
    pid_t child;
    int status;
    int error;

    snprintf(old, sizeof(old), "/dev/fd/%d", old_fd);
    snprintf(new, sizeof(new), "/dev/fd/%d", new_fd);
    error = posix_spawnp(&child, "diff", NULL, NULL, (char *const *)arguments, environ);
    if (error != 0)
        return -error;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? WEXITSTATUS(status) : -EIO;
}

int file_text_diff(const char *old_label, struct str old, const char *new_label, struct str new)
{
    int old_fd = create_memory_file(old);
    int new_fd = create_memory_file(new);
    int result = old_fd < 0            ? old_fd
                 : new_fd < 0          ? new_fd
                 : fflush(stdout) != 0 ? -errno
                                       : diff_run(old_label, old_fd, new_label, new_fd);

    if (old_fd >= 0)
        close(old_fd);
    if (new_fd >= 0)
        close(new_fd);
    return result;
}
