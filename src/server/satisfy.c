/*
 * `satisfy`, kept by the visit: one module that is content is enough, or a refusal that waits for the others.
 */
#include "server/satisfy.h"

#include "server/trace.h"

static bool is_refusal(int status)
{
    return status == 401 || status == 403;
}

void satisfy_begin(struct visit *visit)
{
    visit->allowed = false;
    visit->denied = 0;
}

/* 401 tells what would help, so it is the one that is kept; the first of a kind stays. */
static void keep_refusal(struct visit *visit)
{
    struct response *response = &visit->x->response;

    if (!visit->denied || (response->status == 401 && visit->denied != 401)) {
        visit->denied = response->status;
        visit->denied_headers = response->headers;
    }
    response->headers = (struct headers){0};
    response->status = 0;
}

static enum outcome refuse(struct visit *visit)
{
    struct response *response = &visit->x->response;

    response->status = visit->denied;
    response->headers = visit->denied_headers;
    visit->denied = 0;
    return OUTCOME_ANSWERED;
}

enum outcome satisfy_judge(struct visit *visit, enum outcome outcome)
{
    if (visit->location->site->satisfy != SATISFY_ANY || visit->parent ||
        !module_table[visit->next_module - 1]->access)
        return outcome;
    if (outcome == OUTCOME_ALLOW) {
        visit->allowed = true;
        visit->denied = 0;
    } else if (outcome == OUTCOME_ANSWERED && is_refusal(visit->x->response.status)) {
        keep_refusal(visit);
        return OUTCOME_PASS;
    }
    return outcome;
}

enum outcome satisfy_answer(struct visit *visit, unsigned index)
{
    return module_table[index]->answer(visit->x, visit->location->module_conf[index],
                                       visit->worker->module_states[index]);
}

enum outcome satisfy_ask(struct visit *visit, unsigned index)
{
    const struct module *module = module_table[index];

    if (module->access && (visit->allowed || visit->parent)) /* a child asks for its parent, who was looked at */
        return OUTCOME_PASS;
    if (!module->access && visit->denied)
        return refuse(visit);
    if (visit->worker->trace)
        return satisfy_judge(visit, visit->worker->trace->ask(visit->worker->trace, visit, index));
    return satisfy_judge(visit, satisfy_answer(visit, index));
}

enum outcome satisfy_end(struct visit *visit)
{
    return visit->denied ? refuse(visit) : exchange_refuse(visit->x, 404);
}
