/*
 * The worker's trace: each module called, the state before, and its result.
 */
#include "explain/explain.h"

#include "server/request_state.h"
#include "server/satisfy.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct explain_step *step_begin(struct explain *explain, const struct request_state *request, unsigned index)
{
    struct explain_step *step = &explain->steps[explain->step_count];

    if (explain->step_count == EXPLAIN_STEPS)
        return NULL;
    explain->step_count++;
    *step = (struct explain_step){.location = request->location,
                                  .module = index,
                                  .path = arena_copy(&explain->arena, request->x->request.path),
                                  .query = arena_copy(&explain->arena, request->x->request.query)};
    return step;
}

/* The assumed outcome of a skipped module: the request continues, or it ends if an upstream server would respond. */
static enum outcome outcome_of_skipped(struct request_state *request, const struct module *module)
{
    return module->explain_mode == EXPLAIN_UPSTREAM ? exchange_close_without_response(request->x) : OUTCOME_DECLINED;
}

enum outcome explain_step(struct trace *trace, struct request_state *request, unsigned index)
{
    struct explain *explain = (struct explain *)trace;
    const struct module *module = module_table[index];
    struct explain_step *step = step_begin(explain, request, index);
    bool not_called = module->explain_mode != EXPLAIN_CALL;
    enum outcome outcome = not_called ? outcome_of_skipped(request, module) : satisfy_call_module(request, index);

    if (step) {
        step->not_called = not_called;
        step->outcome = outcome;
        step->status = request->x->response.status;
    }
    return outcome;
}

void explain_finished(struct trace *trace, struct request_state *request)
{
    struct explain *explain = (struct explain *)trace;
    struct buffer text = {0};
    bool good = explain_print(explain, request, &text) == 0 &&
                fwrite(text.data, 1, text.length, stdout) == text.length && fflush(stdout) == 0;

    _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}
