/*
 * The module of the control socket: finds the resource of a request, reads its body, and calls the verb of the
 * resource.
 */
#include "control/control.h"

#include "base/limits.h"
#include "http/pairs.h"

#include <errno.h>
#include <string.h>

static control_verb list_resources;

extern const struct module module_control;

static const struct control_resource resources[] = {
    {"/v1", METHOD_GET, list_resources, NULL, "this list"},
    {"/v1/workers", METHOD_GET, control_workers, NULL, "the worker processes of all generations"},
    {"/v1/upstreams", METHOD_GET, control_upstreams, NULL, "the servers of all upstream groups"},
    {"/v1/upstreams", METHOD_PATCH, control_upstreams_change, control_upstreams_fields,
     "change the state or the weight of a server of a group"},
    {"/v1/upstreams/add", METHOD_POST, control_upstreams_add, control_upstreams_add_fields,
     "add a server to a group with a zone, until the next reload"},
    {"/v1/upstreams/remove", METHOD_POST, control_upstreams_remove, control_upstreams_remove_fields,
     "remove a server from a group with a zone, until the next reload"},
    {"/v1/caches", METHOD_GET, control_caches, NULL, "the caches: entries, bytes, limit"},
    {"/v1/caches/entries", METHOD_GET, control_caches_entries, NULL,
     "the responses of a cache, by ?cache=, &prefix= of their keys and &cursor="},
    {"/v1/caches/purge", METHOD_POST, control_caches_purge, control_caches_purge_fields,
     "remove the response of a key, those of all keys with a prefix, or all"},
    {"/v1/log-level", METHOD_GET, control_log_level, NULL, "the level of the error log"},
    {"/v1/log-level", METHOD_PATCH, control_log_level_change, control_log_level_fields,
     "change it in all processes, until the next reload"},
    {"/v1/ticket-keys", METHOD_GET, control_ticket_keys, NULL, "the generated keys of session tickets"},
    {"/v1/ticket-keys/rotate", METHOD_POST, control_ticket_keys_rotate, control_ticket_keys_fields,
     "generate the next key; the previous one still decrypts"},
    {"/v1/limits", METHOD_GET, control_limits, NULL, "the zones of limit_req and limit_conn"},
    {"/v1/limits/keys", METHOD_GET, control_limits_keys, NULL, "the keys that were limited last"},
    {"/v1/certificates", METHOD_GET, control_certificates, NULL, "the certificates in use, with the days left"},
    {"/v1/connections", METHOD_GET, control_connections, NULL, "client connections of all workers"},
    {"/v1/connections/close", METHOD_POST, control_connections_close, control_connections_close_fields,
     "close a connection"},
    {"/v1/configuration", METHOD_GET, control_configuration, NULL, "the configuration that runs"},
    {"/v1/configuration/files", METHOD_GET, control_configuration_files, NULL, "the files it was loaded from"},
    {"/v1/configuration/text", METHOD_GET, control_configuration_text, NULL, "one of them, by ?sha256="},
};

#define RESOURCES (sizeof(resources) / sizeof(resources[0]))

static struct str method_name(enum method method)
{
    switch (method) {
    case METHOD_POST:
        return STR("POST");
    case METHOD_PATCH:
        return STR("PATCH");
    case METHOD_DELETE:
        return STR("DELETE");
    case METHOD_HEAD:
    case METHOD_PUT:
    case METHOD_OPTIONS:
    case METHOD_CONNECT:
    case METHOD_TRACE:
    case METHOD_OTHER:
    case METHOD_GET:
        break;
    }
    return STR("GET");
}

/* The names of fields, with commas. data NULL: none, or out of memory. */
static struct str field_names(struct arena *arena, const struct control_field *fields)
{
    struct str names = {NULL, 0};

    for (; fields && fields->name; fields++)
        names = arena_printf(arena, STR_FMT "%s%s", STR_ARG(str_or_empty(names)), names.data ? ", " : "",
                             fields->name);
    return names;
}

static int list_resources(struct control_call *call)
{
    static const char *const columns[] = {"method", "path", "fields", "help", NULL};

    report_begin(&call->report, "resources", columns);
    for (size_t i = 0; i < RESOURCES; i++) {
        report_row(&call->report);
        report_text(&call->report, method_name(resources[i].method));
        report_text(&call->report, str_from(resources[i].path));
        report_text(&call->report, field_names(&call->x->arena, resources[i].fields));
        report_text(&call->report, str_from(resources[i].help));
    }
    report_end(&call->report);
    return 200;
}

/* The methods of a path: "GET, HEAD, PATCH" for Allow, or "GET and PATCH". */
static struct str methods_of(struct arena *arena, struct str path, bool allow)
{
    struct str names = STR("");

    for (size_t i = 0; i < RESOURCES && names.data; i++) {
        if (str_equal(path, str_from(resources[i].path)))
            names = arena_printf(arena, STR_FMT "%s" STR_FMT "%s", STR_ARG(names),
                                 str_empty(names) ? "" : allow ? ", " : " and ",
                                 STR_ARG(method_name(resources[i].method)),
                                 allow && resources[i].method == METHOD_GET ? ", HEAD" : "");
    }
    return names;
}

static int refuse_method(struct control_call *call, struct str path)
{
    struct exchange *x = call->x;
    struct str allowed = methods_of(&x->arena, path, true);

    if (!allowed.data || headers_add(&x->response.headers, &x->arena, STR("Allow"), allowed) < 0)
        return control_fail(call, 500, "out of memory");
    return control_fail(call, 405, STR_FMT " takes " STR_FMT, STR_ARG(path),
                        STR_ARG(methods_of(&x->arena, path, false)));
}

/* Sets the resource of the request. Returns 200 or the result of control_fail. */
static int find_resource(struct control_call *call)
{
    const struct request *request = &call->x->request;
    enum method method = request->method == METHOD_HEAD ? METHOD_GET : request->method;
    bool found = false;

    for (size_t i = 0; i < RESOURCES; i++) {
        if (!str_equal(request->path, str_from(resources[i].path)))
            continue;
        found = true;
        if (resources[i].method != method)
            continue;
        call->resource = &resources[i];
        return 200;
    }
    return found ? refuse_method(call, request->path)
                 : control_fail(call, 404, "there is no " STR_FMT "; GET /v1 lists the resources",
                                STR_ARG(str_slice(request->path, 0, 128)));
}

static int refuse_body(struct control_call *call, int status)
{
    return status == 413 ? control_fail(call, 413, "the body has more than %u bytes", LIMIT_CONTROL_REQUEST)
                         : control_fail(call, status, "the body is incomplete or malformed");
}

/* Reads what has arrived. 200: complete; -EAGAIN; or the result of control_fail. */
static int read_body(struct control_call *call)
{
    struct body *body = call->x->request.body;
    struct chunk chunk;
    int result;

    while ((result = body->ops->next(body, CHUNK_BYTES, LIMIT_RECEIVE_BYTES, &chunk)) == 1) {
        if (chunk.bytes.length > LIMIT_CONTROL_REQUEST - call->body_length)
            return refuse_body(call, 413);
        memcpy(call->body + call->body_length, chunk.bytes.data, chunk.bytes.length);
        call->body_length += chunk.bytes.length;
    }
    return result == 0 ? 200 : result == -EAGAIN ? result : refuse_body(call, exchange_body_status(result));
}

/* Continues with the verb when the body is complete. */
static enum outcome continue_call(struct control_call *call)
{
    int status = call->resource->fields ? read_body(call) : 200;

    if (status == -EAGAIN)
        return OUTCOME_PENDING;
    if (status == 200 && call->resource->fields)
        status = control_fields_read(call, str_of(call->body, call->body_length));
    if (status == 200)
        status = call->resource->verb(call);
    return status == CONTROL_PENDING ? OUTCOME_PENDING : control_respond(call, status);
}

static void wake_done(struct op *op, int result)
{
    struct control_call *call = container_of(op, struct control_call, wake);
    struct exchange *x = call->x;
    enum outcome outcome = OUTCOME_PENDING;

    if (!x->cancelled && result != -ECANCELED)
        outcome = result < 0 ? exchange_error_response(x, 503) : continue_call(call);
    if (outcome != OUTCOME_PENDING)
        exchange_resume(x, outcome);
    exchange_release(x);
}

/* More of the body has arrived. Called inside the session, so the work is only queued. */
static void body_arrived(void *owner)
{
    struct control_call *call = owner;

    if (!op_idle(&call->wake))
        return;
    exchange_hold(call->x);
    worker_timer(call->worker, &call->wake, 0);
}

/* Prepares to read a body. 200 or the result of control_fail. */
static int begin_body(struct control_call *call)
{
    struct exchange *x = call->x;

    if (exchange_limit_body(x, LIMIT_CONTROL_REQUEST) != 0)
        return refuse_body(call, 413);
    call->body = arena_alloc(&x->arena, LIMIT_CONTROL_REQUEST);
    if (!call->body)
        return control_fail(call, 500, "out of memory");
    call->wake.done = wake_done;
    x->request.body->wake = body_arrived;
    x->request.body->owner = call;
    return 200;
}

static enum outcome control_handler(struct exchange *x, const void *conf, void *state)
{
    struct control_call *call = exchange_state(x, &module_control, sizeof(*call));
    int status;

    if (!call)
        return exchange_error_response(x, 500);
    call->x = x;
    call->worker = exchange_worker(x);
    call->report.table = str_equal(query_find(x->request.query, STR("format")), STR("table"));
    call->report.out.max = LIMIT_CONTROL_RESPONSE;
    status = find_resource(call);
    if (status == 200 && call->resource->fields)
        status = begin_body(call);
    return status == 200 ? continue_call(call) : control_respond(call, status);
}

/* The client disconnected before its body was complete, or while a verb is pending. */
static void control_cancel(struct exchange *x, void *state)
{
    struct control_call *call = exchange_state_found(x, &module_control);

    worker_cancel(call->worker, &call->wake);
    if (call->cancelled)
        call->cancelled(call);
}

const struct module module_control = {
    .name = "control",
    .control = true,
    .handler = control_handler,
    .cancel = control_cancel,
    .explain_mode = EXPLAIN_SKIP,
};
