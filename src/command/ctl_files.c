/*
 * Compares the files of the running configuration with those on disk. New and unused files are found by loading the
 * main file as the server would, in the environment of this command.
 */
#include "command/ctl_files.h"

#include "base/table.h"
#include "command/file_text.h"
#include "conf/template.h"
#include "log/error_log.h"
#include "site/configuration_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const state_names[] = {
    [CTL_UNCHANGED] = "unchanged", [CTL_CHANGED] = "changed", [CTL_MISSING] = "missing",
    [CTL_NEW] = "new",             [CTL_UNUSED] = "unused",   [CTL_UNREADABLE] = "unreadable",
};

static int add_file(struct ctl_files *files, struct str path, struct str digest, enum ctl_file_state state)
{
    struct ctl_file *file = arena_zalloc(files->arena, 1, sizeof(*file));

    if (!file)
        return -ENOMEM;
    file->path = arena_copy(files->arena, path);
    file->digest = arena_copy(files->arena, digest);
    file->state = state;
    if (!file->path.data || !file->digest.data)
        return -ENOMEM;
    if (files->last)
        files->last->next = file;
    else
        files->first = file;
    files->last = file;
    return 0;
}

/* Adds the rows of the server: path, bytes, digest. */
static int add_rows(struct ctl_files *files, struct str rows)
{
    int error = str_equal(str_cut(&rows, '\n'), STR("path\tbytes\tsha256")) ? 0 : -EPROTO;

    while (error == 0 && !str_empty(rows)) {
        struct str line = str_cut(&rows, '\n');
        struct str path = str_cut(&line, '\t');

        str_cut(&line, '\t');
        error = !line.data || line.length != CONFIGURATION_DIGEST - 1
                    ? -EPROTO
                    : add_file(files, path, line, CTL_UNCHANGED);
    }
    return error == 0 && !files->first ? -EPROTO : error;
}

/* Reads a file on disk. Returns 0, -ENODEV: it is not a regular file, or another -errno. */
static int read_file(const char *path, struct buffer *out)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return -errno;
    return S_ISREG(status.st_mode) ? file_text_read(path, out, &status) : -ENODEV;
}

static int compare_file(struct ctl_file *file)
{
    struct buffer text = {0};
    char digest[CONFIGURATION_DIGEST];
    int error = read_file(file->path.data, &text);

    if (error == -ENOENT || error == -ENOTDIR) {
        file->state = CTL_MISSING;
        error = 0;
    } else if (error < 0) {
        file->state = CTL_UNREADABLE;
        error_log_print(LOG_ERROR, "cannot read " STR_FMT ": %s", STR_ARG(file->path),
                        error == -ENODEV ? "it is not a regular file" : strerror(-error));
        error = 0;
    } else {
        error = configuration_file_digest(text.data ? buffer_str(&text) : STR(""), digest);
        if (error == 0 && !str_equal(file->digest, str_from(digest)))
            file->state = CTL_CHANGED;
    }
    buffer_finish(&text);
    return error;
}

/* Adds the files that the main file includes now; `seen` gets all of them. */
static int add_included(struct ctl_files *files, const struct conf_node *tree, const struct table *known,
                        struct table *seen)
{
    int error = 0;

    for (const struct conf_file *file = conf_tree_files(tree); file && error == 0; file = file->next) {
        struct str path = configuration_file_path(files->arena, file);

        if (!path.data)
            return -ENOMEM;
        if (table_get(seen, path))
            continue;
        error = table_set(seen, path, files);
        if (error == 0 && !table_get(known, path))
            error = add_file(files, path, STR(""), CTL_NEW);
    }
    return error;
}

static void mark_unused(struct ctl_files *files, const struct table *seen)
{
    for (struct ctl_file *file = files->first; file; file = file->next) {
        if (file->state != CTL_MISSING && !table_get(seen, file->path))
            file->state = CTL_UNUSED;
    }
}

/* Finds new and unused files. After errors in the files on disk some are unknown. */
static int compare_includes(struct ctl_files *files)
{
    struct conf_errors *errors = calloc(1, sizeof(*errors));
    const struct conf_node *tree;
    struct table known, seen;
    int error = 0;

    if (!errors)
        return -ENOMEM;
    errors->arena = files->arena;
    table_init(&known, false);
    table_init(&seen, false);
    for (struct ctl_file *file = files->first; file && error == 0; file = file->next)
        error = table_set(&known, file->path, file);
    tree = error == 0 ? conf_tree_load(files->arena, files->first->path, errors) : NULL;
    files->incomplete = errors->failed;
    if (tree)
        error = add_included(files, tree, &known, &seen);
    if (error == 0 && tree && !errors->failed)
        mark_unused(files, &seen);
    table_finish(&known);
    table_finish(&seen);
    free(errors);
    return error;
}

int ctl_files_compare(struct ctl_files *files, struct str rows)
{
    int error = add_rows(files, rows);

    for (struct ctl_file *file = files->first; file && error == 0; file = file->next)
        error = compare_file(file);
    if (error == 0 && (files->first->state == CTL_UNCHANGED || files->first->state == CTL_CHANGED))
        error = compare_includes(files);
    return error;
}

/* Control characters of file names are replaced, because terminals interpret them. */
static int print_line(struct buffer *out, const struct ctl_file *file)
{
    int error = buffer_printf(out, "%s\t", state_names[file->state]);

    for (size_t i = 0; i < file->path.length && error == 0; i++) {
        unsigned char c = (unsigned char)file->path.data[i];

        error = buffer_append(out, c < 32 || c == 127 ? STR("?") : str_slice(file->path, i, i + 1));
    }
    return error == 0 ? buffer_append(out, STR("\n")) : error;
}

static int print_object(struct buffer *out, const struct ctl_file *file)
{
    int error = buffer_append(out, STR("\n  {\"path\": \""));

    if (error == 0)
        error = template_escape_json(out, file->path);
    return error == 0 ? buffer_printf(out, "\", \"state\": \"%s\"}%s", state_names[file->state], file->next ? "," : "")
                      : error;
}

int ctl_files_print(const struct ctl_files *files, bool json, struct buffer *out)
{
    int error = buffer_append(out, json ? STR("{\"files\": [") : STR("state\tpath\n"));

    for (const struct ctl_file *file = files->first; file && error == 0; file = file->next)
        error = json ? print_object(out, file) : print_line(out, file);
    return error == 0 && json ? buffer_append(out, STR("\n]}\n")) : error;
}

int ctl_files_status(const struct ctl_files *files)
{
    int status = 0;

    for (const struct ctl_file *file = files->first; file; file = file->next) {
        if (file->state == CTL_UNREADABLE)
            return 2;
        if (file->state != CTL_UNCHANGED)
            status = 1;
    }
    return status;
}
