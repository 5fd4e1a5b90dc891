/*
 * `sluice fmt`: formats configuration files in one layout. A file is replaced atomically: the new text is written to
 * a temporary file with the same owner and mode, which is then renamed.
 */
#include "command/commands.h"

#include "base/write_all.h"
#include "command/file_text.h"
#include "conf/format.h"
#include "log/error_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
    error = write_all(fd, text);
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

/* Returns true if the texts are equal. */
static bool print_diff(const char *path, struct str text, struct str made)
{
    char label[PATH_MAX + 8];
    int result;

    snprintf(label, sizeof(label), "%s.orig", path);
    result = file_text_diff(label, text, path, made);
    if (result == -ENOENT)
        error_log_print(LOG_ERROR, "--diff needs the program diff, which is not installed");
    else if (result < 0)
        report_failure("compare", path, result);
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
    int error = file_text_read(path, &text, &status);
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
