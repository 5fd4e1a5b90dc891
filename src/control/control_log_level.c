/*
 * The level of the error log: that of this worker, and a change of it in all processes.
 */
#include "control/control.h"

enum { FIELD_LEVEL };

const struct control_field control_log_level_fields[] = {
    [FIELD_LEVEL] = {.name = "level", .type = CONTROL_CHOICE, .required = true, .choices = log_level_names},
    {.name = NULL},
};

static int report_level(struct control_call *call, enum log_level level)
{
    static const char *const columns[] = {"level", "configured", NULL};

    report_begin(&call->report, "log_level", columns);
    report_row(&call->report);
    report_text(&call->report, str_from(log_level_name(level)));
    report_text(&call->report, str_from(log_level_name(call->worker->configuration->main->error_log.level)));
    report_end(&call->report);
    return 200;
}

int control_log_level(struct control_call *call)
{
    return report_level(call, call->worker->log->level);
}

static int level_changed(struct control_call *call)
{
    return report_level(call, (enum log_level)call->values[FIELD_LEVEL].number);
}

int control_log_level_change(struct control_call *call)
{
    return control_request_master(call, CHANNEL_LOG_LEVEL, (uint32_t)call->values[FIELD_LEVEL].number, level_changed);
}
