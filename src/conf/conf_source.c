/*
 * Reads a source and reports invalid bytes at their position, since libyaml reports invalid UTF-8 always in line 1.
 */
#include "conf/conf_source.h"

#include "base/utf8.h"
#include "conf/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_AT_ONCE 65536

static int file_read(int fd, struct buffer *out)
{
    for (;;) {
        ssize_t got;
        int error = buffer_reserve(out, READ_AT_ONCE);

        if (error < 0)
            return error;
        got = read(fd, out->data + out->length, READ_AT_ONCE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        out->length += (size_t)got;
        if (out->length > LIMIT_CONF_FILE)
            return -EFBIG;
    }
}

/* Opens and reads a path: any type for the main file (a pipe, for example), only regular files for an include. */
static int path_read(struct conf_file *file, struct buffer *out)
{
    const char *path = file->path.data;
    struct stat status;
    bool included = file->included_at.file;
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (included ? O_NONBLOCK : 0);
    int fd =
        strcmp(path, "-") == 0 && !included ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, flags);
    int error;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) < 0)
        error = -errno;
    else if (S_ISDIR(status.st_mode))
        error = -EISDIR;
    else if (included && !S_ISREG(status.st_mode))
        error = -ENODEV;
    else
        error = file_read(fd, out);
    if (error == 0) {
        file->device = status.st_dev;
        file->inode = status.st_ino;
    }
    close(fd);
    return error;
}

/* The directory for relative paths of this file, absolute. */
static struct str directory_of(struct arena *arena, struct str path, bool in_memory)
{
    char here[PATH_MAX];
    ssize_t slash = in_memory ? -1 : str_rfind(path, '/');
    struct str directory = str_slice(path, 0, slash > 0 ? (size_t)slash : 0);

    if (slash == 0)
        return STR("/");
    if (slash > 0 && path.data[0] == '/')
        return arena_copy(arena, directory);
    if (!getcwd(here, sizeof(here)))
        return STR("/");
    if (slash < 0)
        return arena_copy(arena, str_from(here));
    return arena_printf(arena, "%s/" STR_FMT, strcmp(here, "/") == 0 ? "" : here, STR_ARG(directory));
}

static int lines_count(struct arena *arena, struct conf_file *file)
{
    size_t count = 1;
    size_t *lines;

    for (size_t i = 0; i < file->text.length; i++)
        count += file->text.data[i] == '\n' || file->text.data[i] == '\r';
    lines = arena_zalloc(arena, count, sizeof(*lines));
    file->secret_lines = arena_zalloc(arena, count, sizeof(*file->secret_lines));
    if (!lines || !file->secret_lines)
        return -ENOMEM;
    count = 1;
    for (size_t i = 0; i < file->text.length; i++) {
        char c = file->text.data[i];
        bool crlf = c == '\r' && i + 1 < file->text.length && file->text.data[i + 1] == '\n';

        if ((c == '\n' || c == '\r') && !crlf)
            lines[count++] = i + 1;
    }
    file->lines = lines;
    file->line_count = count;
    return 0;
}

static bool text_check(struct conf_loader *loader, const struct conf_file *file)
{
    struct conf_mark mark = {file, 1, 1};
    size_t at = 0;

    while (at < file->text.length) {
        uint32_t code = 0;
        size_t length = utf8_decode(str_skip(file->text, at), &code);

        while (mark.line < file->line_count && at >= file->lines[mark.line]) {
            mark.line++;
            mark.column = 1;
        }
        if (length == 0) {
            conf_error(loader->errors, mark, STR("save the file as UTF-8"), "byte 0x%02X is not valid UTF-8",
                       (unsigned char)file->text.data[at]);
            return false;
        }
        if (!source_allowed(code)) {
            conf_error(loader->errors, mark, STR("delete it, or write it as an escape in double quotes"),
                       "the control character U+%04X is not allowed in YAML", code);
            return false;
        }
        at += length;
        mark.column++;
    }
    return true;
}

static const char *reading_problem(int error)
{
    if (error == -ENODEV)
        return "it is not a regular file";
    return error == -EFBIG ? "it is larger than 16 MiB" : strerror(-error);
}

static struct str reading_hint(int error, struct conf_mark included_at)
{
    if (error != -ENOENT)
        return STR("");
    return included_at.file ? STR("a path is relative to the directory of the file that includes it")
                            : STR("name another file: by -c, or after `lint` or `fmt`; "
                                  "`sluice serve DIRECTORY` needs none");
}

static int text_append(struct conf_loader *loader, struct conf_file *file, struct str text)
{
    struct buffer bytes = {0};
    int error = 0;

    if (!text.data) {
        error = path_read(file, &bytes);
        text = buffer_str(&bytes);
    } else if (text.length > LIMIT_CONF_FILE) {
        error = -EFBIG;
    }
    if (error == 0) {
        file->bytes = arena_copy(loader->arena, text);
        file->text = str_starts(text, STR("\xEF\xBB\xBF")) ? str_skip(file->bytes, 3) : file->bytes;
        error = file->bytes.data ? lines_count(loader->arena, file) : -ENOMEM;
    }
    buffer_finish(&bytes);
    return error;
}

struct conf_file *source_open(struct conf_loader *loader, struct str path, struct str text,
                              struct conf_mark included_at)
{
    struct conf_file *file = arena_zalloc(loader->arena, 1, sizeof(*file));
    int error;

    if (!file) {
        conf_error(loader->errors, included_at, STR(""), "out of memory");
        return NULL;
    }
    file->path = arena_copy(loader->arena, path);
    file->order = loader->files++;
    file->included_at = included_at;
    file->directory = directory_of(loader->arena, path, text.data || str_equal(path, STR("-")));
    error = file->path.data && file->directory.data ? text_append(loader, file, text) : -ENOMEM;
    if (error < 0) {
        conf_error(loader->errors, included_at, reading_hint(error, included_at),
                   "cannot read " STR_FMT ": %s", STR_ARG(path), reading_problem(error));
        return NULL;
    }
    if (loader->last)
        loader->last->next = file;
    loader->last = file;
    return text_check(loader, file) ? file : NULL;
}
