/*
 * Responses of the control socket: the report of a verb, or an error.
 */
#include "base/limits.h"
#include "control/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int control_fail(struct control_call *call, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(call->error, sizeof(call->error), format, args);
    va_end(args);
    return status;
}

static struct str content_type(const struct control_call *call)
{
    if (call->raw.data)
        return STR("text/plain; charset=utf-8");
    return call->report.table ? STR("text/tab-separated-values; charset=utf-8") : STR("application/json");
}

/* Responds with `text`, which is copied, or with call->raw. Returns 0 or -ENOMEM. */
static int respond_call(struct control_call *call, int status, struct str text)
{
    struct exchange *x = call->x;
    struct headers *fields = &x->response.headers;
    struct str body = call->raw.data ? call->raw : arena_copy(&x->arena, text);
    int error = body.data ? headers_add(fields, &x->arena, STR("Content-Type"), content_type(call)) : -ENOMEM;

    if (error == 0)
        error = headers_add(fields, &x->arena, STR("Cache-Control"), STR("no-store"));
    if (error == 0)
        x->response.body = body_bytes(&x->arena, body);
    x->response.status = status;
    return error == 0 && !x->response.body ? -ENOMEM : error;
}

static int respond_error(struct control_call *call, int status)
{
    static const char *const columns[] = {"error", NULL};
    struct report *report = &call->report;

    report->out.length = 0;
    report->error = 0;
    report->rows = report->column = 0;
    report->columns = columns;
    /* {"error": "..."}, or the message alone. */
    if (!report->table)
        report->error = buffer_append(&report->out, STR("{"));
    report_text(report, str_from(call->error));
    if (!report->table && report->error == 0)
        report->error = buffer_append(&report->out, STR("\n"));
    return report->error < 0 ? report->error : respond_call(call, status, buffer_str(&report->out));
}

enum outcome control_respond(struct control_call *call, int status)
{
    int error;

    if (status == 200 && call->report.error < 0)
        status = control_fail(call, 500, "out of memory, or more than %u bytes", LIMIT_CONTROL_RESPONSE);
    error = status == 200 ? respond_call(call, status, buffer_str(&call->report.out)) : respond_error(call, status);
    buffer_finish(&call->report.out);
    return error < 0 ? exchange_error_response(call->x, 500) : OUTCOME_RESPONDED;
}

void control_finish(struct control_call *call, int status)
{
    call->cancelled = NULL;
    exchange_resume(call->x, control_respond(call, status));
}
