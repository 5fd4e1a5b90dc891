/*
 * `satisfy`, kept by the request: one module that is content is enough, or a refusal that waits for the others.
 */
#include "server/satisfy.h"

#include "server/trace.h"

static bool is_refusal(int status)
{
    return status == 401 || status == 403;
}

void satisfy_begin(struct request_state *request)
{
    request->allowed = false;
    request->denied = 0;
}

/* 401 tells what would help, so it is the one that is kept; the first of a kind stays. */
static void keep_refusal(struct request_state *request)
{
    struct response *response = &request->x->response;

    if (!request->denied || (response->status == 401 && request->denied != 401)) {
        request->denied = response->status;
        request->denied_headers = response->headers;
    }
    response->headers = (struct headers){0};
    response->status = 0;
}

static enum outcome refuse(struct request_state *request)
{
    struct response *response = &request->x->response;

    response->status = request->denied;
    response->headers = request->denied_headers;
    request->denied = 0;
    return OUTCOME_ANSWERED;
}

enum outcome satisfy_judge(struct request_state *request, enum outcome outcome)
{
    if (request->location->site->satisfy != SATISFY_ANY || request->parent ||
        !module_table[request->next_module - 1]->access)
        return outcome;
    if (outcome == OUTCOME_ALLOW) {
        request->allowed = true;
        request->denied = 0;
    } else if (outcome == OUTCOME_ANSWERED && is_refusal(request->x->response.status)) {
        keep_refusal(request);
        return OUTCOME_PASS;
    }
    return outcome;
}

enum outcome satisfy_answer(struct request_state *request, unsigned index)
{
    return module_table[index]->answer(request->x, request->location->module_conf[index],
                                       request->worker->module_states[index]);
}

enum outcome satisfy_ask(struct request_state *request, unsigned index)
{
    const struct module *module = module_table[index];

    if (module->access && (request->allowed || request->parent)) /* a child asks for its parent, who was looked at */
        return OUTCOME_PASS;
    if (!module->access && request->denied)
        return refuse(request);
    if (request->worker->trace)
        return satisfy_judge(request, request->worker->trace->ask(request->worker->trace, request, index));
    return satisfy_judge(request, satisfy_answer(request, index));
}

enum outcome satisfy_end(struct request_state *request)
{
    return request->denied ? refuse(request) : exchange_error_response(request->x, 404);
}
