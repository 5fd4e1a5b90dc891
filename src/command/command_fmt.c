/*
 * `sluice fmt`: formats configuration files in one layout. A file is replaced atomically: the new text is written to
 * a temporary file with the same owner and mode, which is then renamed.
 */
#include "command/commands.h"

#include "base/limits.h"
#include "conf/format.h"
#include "log/error_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads a whole file ("-": standard input). Returns 0 or -errno. */
static int text_read(const char *path, struct buffer *out, struct stat *out_status)
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

static int text_write(int fd, struct str text)
{
    while (text.length) {
        ssize_t sent = write(fd, text.data, text.length);

        if (sent < 0 && errno != EINTR)
            return -errno;
        text = str_skip(text, sent < 0 ? 0 : (size_t)sent);
    }
    return 0;
}

/* Sets owner and mode before it writes the first byte. */
static int write_temporary_file(int fd, struct str text, const struct stat *old)
{
    struct stat new;
    int error;

    if (fstat(fd, &new) < 0)
        return -errno;
    if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) < 0)
        return -errno;
    if (fchmod(fd, old->st_mode & 07777) < 0)
        return -errno;
    error = text_write(fd, text);
    return error == 0 && fsync(fd) < 0 ? -errno : error;
}

/* Replaces the target of a symbolic link, not the link. Returns 0, or -errno with the file unchanged. */
static int file_replace(const char *path, struct str text, const struct stat *old)
{
    char real[PATH_MAX];
    char beside[PATH_MAX + 16];
    int fd, error;

    if (!realpath(path, real))
        return -errno;
    snprintf(beside, sizeof(beside), "%s.fmt-XXXXXX", real);
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    error = write_temporary_file(fd, text, old);
    if (close(fd) < 0 && error == 0)
        error = -errno;
    if (error == 0 && rename(beside, real) < 0)
        error = -errno;
    if (error < 0)
        unlink(beside);
    return error;
}

static bool report_failure(const char *doing, const char *path, int error)
{
    error_log_print(LOG_ERROR, "cannot %s %s: %s", doing, path, strerror(-error));
    return false;
}

static bool print_str(struct str text)
{
    return !text.length || fwrite(text.data, 1, text.length, stdout) == text.length ||
           report_failure("write", "the output", -errno);
}

/* Copies a text into a memory file, which diff(1) reads. Returns a descriptor or -errno. */
static int create_memory_file(struct str text)
{
    int fd = memfd_create("sluice-fmt", 0);
    int error = fd < 0 ? -errno : text_write(fd, text);

    if (fd >= 0 && error < 0)
        close(fd);
    return error < 0 ? error : fd;
}

/* Runs diff(1) on the two files with this process's output. Returns its exit status, or -errno. */
static int diff_run(const char *path, int before, int after)
{
    char old_label[PATH_MAX + 8], old[32], new[32];
    const char *const arguments[] = {"diff", "-u", "--label", old_label, "--label", path, old, new, NULL};
    pid_t child;
    int status;
    int error;

    snprintf(old_label, sizeof(old_label), "%s.orig", path);
    snprintf(old, sizeof(old), "/dev/fd/%d", before);
    snprintf(new, sizeof(new), "/dev/fd/%d", after);
    error = posix_spawnp(&child, "diff", NULL, NULL, (char *const *)arguments, environ);
    if (error != 0)
        return -error;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

/* Returns true if the texts are equal. */
static bool print_diff(const char *path, struct str text, struct str made)
{
    int before = create_memory_file(text);
    int after = create_memory_file(made);
    int result = before < 0 ? before : after < 0 ? after : fflush(stdout) != 0 ? -errno : diff_run(path, before, after);

    if (before >= 0)
        close(before);
    if (after >= 0)
        close(after);
    if (result == -ENOENT)
        error_log_print(LOG_ERROR, "--diff needs the program diff, which is not installed");
    else if (result < 0 || result > 1)
        report_failure("compare", path, result < 0 ? result : -EIO);
    return result == 0;
}

/* Applies the options to one file whose text and formatted text are known. */
static bool apply_result(const struct options *options, const char *path, const struct stat *status,
                       struct str text, struct str made)
{
    bool same = str_equal(text, made);
    int error;

    if (options->check) {
        if (!same)
            puts(path);
        return same;
    }
    if (options->diff)
        return print_diff(path, text, made);
    if (!options->write)
        return print_str(made);
    error = same ? 0 : file_replace(path, made, status);
    return error == 0 || report_failure("write", path, error);
}

static bool file_format(const struct options *options, const char *path)
{
    struct arena arena;
    struct conf_errors errors = {.arena = &arena};
    struct buffer text = {0}, made = {0}, diagnostics = {0};
    struct stat status;
    int error = text_read(path, &text, &status);
    bool good;

    arena_init(&arena, NULL, 0);
    if (error == 0)
        error = conf_format(&arena, str_from(path), text.data ? buffer_str(&text) : STR(""), &errors, &made);
    if (errors.failed && conf_errors_print(&errors, &diagnostics) == 0 &&
        fwrite(diagnostics.data, 1, diagnostics.length, stderr) != diagnostics.length)
        error = -EIO;
    if (error < 0)
        good = errors.failed ? false : report_failure("read", path, error);
    else
        good = apply_result(options, path, &status, buffer_str(&text), buffer_str(&made));
    buffer_finish(&diagnostics);
    buffer_finish(&made);
    buffer_finish(&text);
    arena_reset(&arena);
    return good;
}

int command_fmt(const struct options *options)
{
    bool good = options->file_count > 0;

    if (!good)
        error_log_print(LOG_EMERG, "fmt requires a file (see sluice -h)");
    for (size_t i = 0; i < options->file_count; i++)
        good &= file_format(options, options->files[i]);
    return good && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
