/*
 * Requests to the master, for verbs that change something in all processes.
 */
#include "control/control.h"

#include <errno.h>

static void master_responded(struct worker_request *request)
{
    struct control_call *call = container_of(request, struct control_call, request);

    control_finish(call, call->master_responded(call));
}

static void master_call_cancelled(struct control_call *call)
{
    worker_request_cancel(&call->request);
}

int control_request_master(struct control_call *call, enum channel_kind kind, uint32_t index, control_verb *responded)
{
    int error;

    call->request.done = master_responded;
    error = worker_request_send(call->worker, &call->request, kind, index);
    if (error < 0)
        return control_fail(call, 503, "the master process does not take requests (%d: %s); repeat the command", -error,
                            strerror(-error));
    call->master_responded = responded;
    call->cancelled = master_call_cancelled;
    return CONTROL_PENDING;
}
