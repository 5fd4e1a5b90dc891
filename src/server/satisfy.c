/*
 * `satisfy` of a request: with `any` one allowing module is enough; a denial is stored until the other access modules
 * have run.
 */
#include "server/satisfy.h"

#include "server/trace.h"

static bool is_denial(int status)
{
    return status == 401 || status == 403;
}

void satisfy_reset(struct request_state *request)
{
    request->access_allowed = false;
    request->access_denied_status = 0;
}

/* 401 contains a challenge, so it replaces a 403; otherwise the first denial is kept. */
static void save_denied(struct request_state *request)
{
    struct response *response = &request->x->response;

    if (!request->access_denied_status || (response->status == 401 && request->access_denied_status != 401)) {
        request->access_denied_status = response->status;
        request->denied_headers = response->headers;
    }
    response->headers = (struct headers){0};
    response->status = 0;
}

static enum outcome respond_denied(struct request_state *request)
{
    struct response *response = &request->x->response;

    response->status = request->access_denied_status;
    response->headers = request->denied_headers;
    request->access_denied_status = 0;
    return OUTCOME_RESPONDED;
}

enum outcome satisfy_combine(struct request_state *request, enum outcome outcome)
{
    if (request->location->site->satisfy != SATISFY_ANY || request->parent ||
        !module_table[request->next_module - 1]->access)
        return outcome;
    if (outcome == OUTCOME_ALLOWED) {
        request->access_allowed = true;
        request->access_denied_status = 0;
    } else if (outcome == OUTCOME_RESPONDED && is_denial(request->x->response.status)) {
        save_denied(request);
        return OUTCOME_DECLINED;
    }
    return outcome;
}

enum outcome satisfy_call_module(struct request_state *request, unsigned index)
{
    return module_table[index]->handler(request->x, request->location->module_conf[index],
                                       request->worker->module_states[index]);
}

enum outcome satisfy_run_module(struct request_state *request, unsigned index)
{
    const struct module *module = module_table[index];

    if (module->access && (request->access_allowed || request->parent)) /* access was checked for the parent */
        return OUTCOME_DECLINED;
    if (!module->access && request->access_denied_status)
        return respond_denied(request);
    if (request->worker->trace)
        return satisfy_combine(request, request->worker->trace->call_module(request->worker->trace, request, index));
    return satisfy_combine(request, satisfy_call_module(request, index));
}

enum outcome satisfy_result(struct request_state *request)
{
    return request->access_denied_status ? respond_denied(request) : exchange_error_response(request->x, 404);
}
