/*
 * The module of the control socket: finds the resource of a request, calls its verb, and responds with its report or
 * with an error as JSON.
 */
#include "control/control.h"

#include "base/limits.h"
#include "http/pairs.h"
#include "server/module.h"

#include <stdarg.h>
#include <stdio.h>

static control_verb list_resources;

static const struct control_resource resources[] = {
    {"/v1", METHOD_GET, list_resources, "this list"},
    {"/v1/workers", METHOD_GET, control_workers, "the worker processes of all generations"},
    {"/v1/upstreams", METHOD_GET, control_upstreams, "the servers of all upstream groups"},
    {"/v1/certificates", METHOD_GET, control_certificates, "the certificates in use, with the days left"},
    {"/v1/configuration", METHOD_GET, control_configuration, "the configuration that runs"},
};

#define RESOURCES (sizeof(resources) / sizeof(resources[0]))

int control_fail(struct control_call *call, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(call->error, sizeof(call->error), format, args);
    va_end(args);
    return status;
}

static int list_resources(struct control_call *call)
{
    static const char *const columns[] = {"method", "path", "help", NULL};

    report_begin(&call->report, "resources", columns);
    for (size_t i = 0; i < RESOURCES; i++) {
        report_row(&call->report);
        report_text(&call->report, resources[i].method == METHOD_GET ? STR("GET") : STR("POST"));
        report_text(&call->report, str_from(resources[i].path));
        report_text(&call->report, str_from(resources[i].help));
    }
    report_end(&call->report);
    return 200;
}

/* Responds with `text`, which is copied. Returns 0 or -ENOMEM. */
static int respond(struct control_call *call, int status, struct str text)
{
    struct exchange *x = call->x;
    struct headers *fields = &x->response.headers;
    struct str type = call->report.table ? STR("text/tab-separated-values; charset=utf-8") : STR("application/json");
    struct str body = arena_copy(&x->arena, text);
    int error = body.data ? headers_add(fields, &x->arena, STR("Content-Type"), type) : -1;

    if (error == 0)
        error = headers_add(fields, &x->arena, STR("Cache-Control"), STR("no-store"));
    if (error == 0)
        x->response.body = body_bytes(&x->arena, body);
    x->response.status = status;
    return error == 0 && x->response.body ? 0 : -1;
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
    return report->error < 0 ? report->error : respond(call, status, buffer_str(&report->out));
}

static int refuse_method(struct control_call *call, const struct control_resource *resource)
{
    struct exchange *x = call->x;
    bool get = resource->method == METHOD_GET;

    if (headers_add(&x->response.headers, &x->arena, STR("Allow"), get ? STR("GET, HEAD") : STR("POST")) < 0)
        return control_fail(call, 500, "out of memory");
    return control_fail(call, 405, "%s takes %s", resource->path, get ? "GET" : "POST");
}

/* Returns the status of the response. */
static int call_verb(struct control_call *call)
{
    const struct request *request = &call->x->request;
    enum method method = request->method == METHOD_HEAD ? METHOD_GET : request->method;

    for (size_t i = 0; i < RESOURCES; i++) {
        if (!str_equal(request->path, str_from(resources[i].path)))
            continue;
        if (resources[i].method != method)
            return refuse_method(call, &resources[i]);
        return resources[i].verb(call);
    }
    return control_fail(call, 404, "there is no " STR_FMT "; GET /v1 lists the resources", STR_ARG(request->path));
}

static enum outcome control_handler(struct exchange *x, const void *conf, void *state)
{
    struct control_call *call = arena_zalloc(&x->arena, 1, sizeof(*call));
    int status;
    int error;

    if (!call)
        return exchange_error_response(x, 500);
    call->x = x;
    call->worker = exchange_worker(x);
    call->report.table = str_equal(query_find(x->request.query, STR("format")), STR("table"));
    call->report.out.max = LIMIT_CONTROL_RESPONSE;
    status = call_verb(call);
    if (status == 200 && call->report.error < 0)
        status = control_fail(call, 500, "out of memory, or more than %u bytes", LIMIT_CONTROL_RESPONSE);
    error = status == 200 ? respond(call, status, buffer_str(&call->report.out)) : respond_error(call, status);
    buffer_finish(&call->report.out);
    return error < 0 ? exchange_error_response(x, 500) : OUTCOME_RESPONDED;
}

const struct module module_control = {
    .name = "control",
    .control = true,
    .handler = control_handler,
    .explain_mode = EXPLAIN_SKIP,
};
