/*
 * GET /v1/configuration, and /files and /text below it: the configuration of this worker, and the files it was loaded
 * from, as they were then. Only workers of the newest generation accept connections.
 */
#include "control/control.h"

#include "http/pairs.h"
#include "site/configuration_files.h"

int control_configuration(struct control_call *call)
{
    static const char *const columns[] = {"path", "generation", "loaded", "seconds", NULL};
    const struct configuration *configuration = call->worker->configuration;
    const struct conf_file *file = conf_tree_files(configuration->tree);
    int64_t seconds = clock_wall_s(&call->worker->loop.clock) - configuration->loaded_s;

    report_begin(&call->report, "configuration", columns);
    report_row(&call->report);
    report_text(&call->report, file ? file->path : STR("(none)"));
    report_number(&call->report, configuration->number);
    report_time(&call->report, configuration->loaded_s);
    report_number(&call->report, seconds > 0 ? (uint64_t)seconds : 0);
    report_end(&call->report);
    return 200;
}

/* True if the file is in the list already: several places include it, and it did not change in between. */
static bool is_repeated(const struct conf_file *first, const struct conf_file *file)
{
    for (; first != file; first = first->next) {
        if (str_equal(first->path, file->path) && str_equal(first->bytes, file->bytes))
            return true;
    }
    return false;
}

static int write_file(struct control_call *call, const struct conf_file *file)
{
    char digest[CONFIGURATION_DIGEST];
    struct str path = configuration_file_path(&call->x->arena, file);

    if (!path.data || configuration_file_digest(file->bytes, digest) < 0)
        return control_fail(call, 500, "out of memory");
    report_row(&call->report);
    report_text(&call->report, path);
    report_number(&call->report, file->bytes.length);
    report_text(&call->report, str_from(digest));
    return 200;
}

int control_configuration_files(struct control_call *call)
{
    static const char *const columns[] = {"path", "bytes", "sha256", NULL};
    const struct conf_file *first = conf_tree_files(call->worker->configuration->tree);
    int status = 200;

    report_begin(&call->report, "files", columns);
    for (const struct conf_file *file = first; file && status == 200; file = file->next) {
        if (!is_repeated(first, file))
            status = write_file(call, file);
    }
    report_end(&call->report);
    return status;
}

int control_configuration_text(struct control_call *call)
{
    struct str wanted = query_find(call->x->request.query, STR("sha256"));
    const struct conf_file *file = conf_tree_files(call->worker->configuration->tree);
    char digest[CONFIGURATION_DIGEST];

    for (; file; file = file->next) {
        if (configuration_file_digest(file->bytes, digest) < 0)
            return control_fail(call, 500, "out of memory");
        if (str_equal(wanted, str_from(digest))) {
            call->raw = file->bytes;
            return 200;
        }
    }
    return control_fail(call, 404, "no file of the configuration has this sha256; /v1/configuration/files lists them, "
                        "and ?sha256= selects one");
}
