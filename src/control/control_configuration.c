/*
 * GET /v1/configuration: the configuration of this worker. Only workers of the newest generation accept connections.
 */
#include "control/control.h"

int control_configuration(struct control_call *call)
{
    static const char *const columns[] = {"path", "generation", "loaded", "seconds", NULL};
    const struct configuration *configuration = call->worker->configuration;
    const struct conf_file *file = configuration->tree->mark.file;
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
