/*
 * The requests and the output of `sluice ctl configuration diff`: a list of the files, then the lines in which changed
 * ones differ from their texts in the server.
 */
#include "command/ctl.h"

#include "base/limits.h"
#include "command/ctl_connection.h"
#include "command/ctl_files.h"
#include "command/file_text.h"
#include "log/error_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { FAILURE = 2 }; /* as of diff(1) */

static int report_error(int error)
{
    error_log_print(LOG_ERROR, "the configuration cannot be compared (%d: %s)", -error, strerror(-error));
    return error;
}

/* Requests a resource. `out` gets the whole response, `out_body` a slice of it. -1 after an error message. */
static int get_resource(const char *socket, const char *target, struct buffer *out, struct str *out_body)
{
    struct buffer request = {0};
    int status = 0;
    int error = buffer_printf(&request, "GET %s HTTP/1.0\r\n\r\n", target);

    out->max = LIMIT_CONTROL_RESPONSE + 2 * 65536;
    if (error == 0)
        error = ctl_exchange(socket, buffer_str(&request), false, out);
    buffer_finish(&request);
    if (error < 0)
        return -1;
    error = ctl_response_parse(buffer_str(out), &status, out_body);
    if (error < 0)
        return report_error(error);
    if (status == 200)
        return 0;
    error_log_print(LOG_ERROR, STR_FMT, STR_ARG(str_trim(*out_body)));
    return -1;
}

static int print_files(const struct ctl_files *files, bool json)
{
    struct buffer lines = {0};
    struct buffer table = {0};
    struct buffer *out = json ? &lines : &table;
    int error = ctl_files_print(files, json, &lines);

    if (error == 0 && !json)
        error = ctl_table_print(buffer_str(&lines), &table);
    if (error == 0 && (fwrite(out->data, 1, out->length, stdout) != out->length || fflush(stdout) != 0))
        error = -EIO;
    buffer_finish(&lines);
    buffer_finish(&table);
    return error < 0 ? report_error(error) : 0;
}

/* Prints the lines in which two texts of a file differ. -1 after an error message. */
static int compare_texts(const struct ctl_file *file, struct str loaded, struct str text)
{
    char label[PATH_MAX + 16];
    int error;

    snprintf(label, sizeof(label), "%s (running)", file->path.data);
    error = file_text_diff(label, loaded, file->path.data, text);
    if (error == -ENOENT)
        error_log_print(LOG_ERROR, "the lines that differ cannot be printed: the program diff is not installed");
    else if (error < 0)
        report_error(error);
    return error < 0 ? -1 : 0;
}

/* Prints the difference of a changed file. -1 after an error message. */
static int print_difference(const char *socket, const struct ctl_file *file)
{
    char target[128];
    struct buffer response = {0};
    struct buffer text = {0};
    struct stat status;
    struct str loaded;
    int error;

    snprintf(target, sizeof(target), "/v1/configuration/text?sha256=%s&format=table", file->digest.data);
    if (get_resource(socket, target, &response, &loaded) < 0)
        error = -1;
    else if ((error = file_text_read(file->path.data, &text, &status)) < 0)
        report_error(error);
    else
        error = compare_texts(file, loaded, text.data ? buffer_str(&text) : STR(""));
    buffer_finish(&response);
    buffer_finish(&text);
    return error < 0 ? -1 : 0;
}

static int print_differences(const char *socket, const struct ctl_files *files)
{
    bool first = true;
    int error = 0;

    for (const struct ctl_file *file = files->first; file && error == 0; file = file->next) {
        if (file->state != CTL_CHANGED)
            continue;
        if (first)
            putchar('\n');
        first = false;
        error = print_difference(socket, file);
    }
    return error;
}

static int compare_files(const char *socket, struct ctl_files *files)
{
    struct buffer response = {0};
    struct str rows;
    int error = get_resource(socket, "/v1/configuration/files?format=table", &response, &rows);

    if (error == 0) {
        error = ctl_files_compare(files, rows);
        if (error < 0)
            report_error(error);
    }
    buffer_finish(&response);
    return error;
}

int ctl_configuration_diff(const char *socket, bool json)
{
    struct arena arena;
    struct ctl_files files = {.arena = &arena};
    int status = FAILURE;

    arena_init(&arena, NULL, 0);
    if (compare_files(socket, &files) == 0 && print_files(&files, json) == 0 &&
        (json || print_differences(socket, &files) == 0))
        status = ctl_files_status(&files);
    if (files.incomplete)
        error_log_print(LOG_WARN, "the files on disk have errors, which sluice -t prints: new and unused files may be "
                        "absent from this list");
    arena_reset(&arena);
    return status;
}
